// The hook of OpenCGA's pods: the first process of a server's container, and what its probes ask; and the agent's own
// probe. One static binary, which does what it is called by, or what its first argument says.
//
//	version-upgrade                  the first process
//	version-upgrade started|alive    asks the first process; what a probe runs
//	version-upgrade serving          the same: whether there is a server, for a Service to send queries to
//	version-upgrade shell [WORD...]  a command line beside the MASTER, or one command; what a person runs
//	version-upgrade copy FROM=TO...  what an init container runs
//	readinessprobe                   whether the agent has reached its goal, and the server works
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := called(filepath.Base(os.Args[0]), os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

func called(name string, args []string) error {
	if name == "readinessprobe" {
		return ready(probeFromEnvironment())
	}
	switch {
	case len(args) == 0:
		return first(settingsFromEnvironment())
	case args[0] == "copy":
		return copied(args[1:])
	case args[0] == "shell":
		return shell(settingsFromEnvironment(), args[1:])
	case args[0] == "started" || args[0] == "alive" || args[0] == "serving":
		return well(os.Getenv("OPENCGA_HOOK"), args[0])
	}
	return fmt.Errorf("%q is no request; there are: copy, shell, started, alive, serving, and none for the first process", args[0])
}

// copied copies files to where they can be run, each whole or not at all.
func copied(pairs []string) error {
	for _, pair := range pairs {
		from, to, ok := strings.Cut(pair, "=")
		if !ok || from == "" || to == "" {
			return fmt.Errorf("%q is not FROM=TO", pair)
		}
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		half := to + ".new"
		if err := os.WriteFile(half, content, 0o755); err != nil {
			return err
		}
		if err := os.Rename(half, to); err != nil {
			return err
		}
	}
	return nil
}
