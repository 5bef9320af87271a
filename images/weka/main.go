// Command weka is a stand-in for the proprietary storage product: the command line that moorage speaks to, an agent per
// container behind it, a cluster whose members agree by majority, and drives that hold blocks until they are lost.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	switch name {
	case "weka-agent":
		if err := runAgent(); err != nil {
			fmt.Fprintln(os.Stderr, "weka-agent:", err)
			os.Exit(1)
		}
	case "weka-sign-drive":
		os.Exit(runSign(args, os.Stdout, os.Stderr, devicesFolder()))
	default:
		os.Exit(runCLI(args))
	}
}

// settings are what an agent is started with.
type settings struct {
	data    string        // a folder of the container's own
	socket  string        // where the command line finds the agent
	address string        // where other members do
	version string        // of the product, as it calls itself
	devices string        // the marked folder with the node's drives
	tick    time.Duration // between two looks at other members
}

func settingsFrom(env func(string) string) settings {
	or := func(name, otherwise string) string {
		if text := env(name); text != "" {
			return text
		}
		return otherwise
	}
	image := env("IMAGE_NAME")
	return settings{
		data:    or("WEKA_STANDIN_DATA", "/opt/weka/standin"),
		socket:  or("WEKA_STANDIN_SOCKET", "/tmp/weka-agent.sock"),
		address: or("MANAGEMENT_IP", "127.0.0.1"),
		version: or("WEKA_STANDIN_VERSION", image[strings.LastIndex(image, ":")+1:]),
		devices: or("DEVICES", "/devices"),
		tick:    500 * time.Millisecond,
	}
}

func devicesFolder() string { return settingsFrom(os.Getenv).devices }

func runAgent() error {
	a, err := newAgent(settingsFrom(os.Getenv))
	if err != nil {
		return err
	}
	if err := a.serve(); err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	<-signals
	a.close()
	return nil
}
