// Command xsld is a stand-in for IBM WebSphere eXtreme Scale Liberty Deployment: it speaks the same admin and data
// contract, keeps its state on a volume, really holds grid data in its members, and fails when told to.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
)

const usage = `usage: xsld COMMAND
  member                                          one member, set by its environment
  many --count N --addresses CIDR --vol DIR       N groups of one member each, in one process
  ij                                              SQL from standard input, put to the member of this machine
  stop                                            stop the member of this machine, and wait until it has
  recover ALIAS IP HOST [ALIAS IP HOST]...        write the addresses of other members into this one's records`

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	if name != "ij" && name != catalogProcess && len(args) > 0 {
		name, args = args[0], args[1:]
	}
	if err := run(name, args); err != nil {
		fmt.Fprintln(os.Stderr, "xsld:", err)
		os.Exit(1)
	}
}

// run chooses by the name under which the program was started, so that ij and cs-default are links to it.
func run(name string, args []string) error {
	switch name {
	case "member":
		return runMember()
	case "many":
		return runMany(args)
	case "ij":
		return runIJ(os.Stdin, os.Stdout, volume())
	case "recover":
		return runRecover(args, os.Stdout, volume())
	case "stop":
		return runStop(os.Stdout, volume())
	case catalogProcess:
		waitForSignal()
		return nil
	}
	return fmt.Errorf("no command %q\n%s", name, usage)
}

func runMember() error {
	if code, err := strconv.Atoi(os.Getenv("XSLD_EXIT")); err == nil {
		fmt.Fprintln(os.Stderr, "xsld: XSLD_EXIT says to end at once")
		os.Exit(code)
	}
	settings, err := settingsFrom(os.Getenv)
	if err != nil {
		return err
	}
	member, err := newMember(settings)
	if err != nil {
		return err
	}
	if err := member.start(); err != nil {
		return err
	}
	waitForSignal()
	member.stop()
	return nil
}

func waitForSignal() os.Signal {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	return <-signals
}
