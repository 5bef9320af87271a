package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// besideTheServer is the heap of a command that a person runs: the launcher would else give it the server's once more,
// and the container has memory for one.
const besideTheServer = "512m"

// javaOptions is what every JVM reads that is started.
const javaOptions = "JDK_JAVA_OPTIONS"

// shells are what a person gets who names no command.
var shells = []string{"bash", "sh"}

// shell becomes what a person runs beside the server, with the files that the server has; the product's tools are found by
// their names.
func shell(s settings, args []string) error {
	if os.Getenv("OPENCGA_SHELL") != "on" {
		return errors.New("this is no MASTER, or its spec.client.shell is false")
	}
	path := filepath.Join(s.laid, "bin") + string(os.PathListSeparator) + os.Getenv("PATH")
	if err := os.Setenv("PATH", path); err != nil {
		return err
	}
	program, err := found(args)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{filepath.Base(program)}
	}
	return syscall.Exec(program, args, beside(s, path))
}

func found(args []string) (string, error) {
	if len(args) > 0 {
		return exec.LookPath(args[0])
	}
	for _, name := range shells {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", errors.New("the image has no shell: name a command, such as -- opencga.sh --help")
}

func beside(s settings, path string) []string {
	// a JVM takes its user's folder from the image's list of users, and not from HOME
	options := strings.TrimSpace(os.Getenv(javaOptions) + " -Duser.home=" + os.Getenv("HOME"))
	own := map[string]string{
		"OPENCGA_HOME": s.laid, "PATH": path, "JAVA_HEAP": besideTheServer, javaOptions: options,
	}
	made := []string{}
	for name, value := range own {
		made = append(made, name+"="+value)
	}
	for _, each := range os.Environ() {
		name, _, _ := strings.Cut(each, "=")
		if _, is := own[name]; !is {
			made = append(made, each)
		}
	}
	return made
}
