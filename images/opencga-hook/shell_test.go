package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// becomes lets the test's own binary be the hook that a person calls.
const becomes = "HOOK_TEST_SHELL"

func TestMain(m *testing.M) {
	if words, is := os.LookupEnv(becomes); is {
		s := settings{laid: os.Getenv("HOOK_TEST_LAID")}
		if err := shell(s, strings.Fields(words)); err != nil {
			os.Stdout.WriteString(err.Error())
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// people is what somebody gets who asks for these words, with that search path of the container's own.
func people(t *testing.T, input, words, path string, environment ...string) (string, error) {
	t.Helper()
	at := filepath.Join(t.TempDir(), "laid")
	if err := os.MkdirAll(filepath.Join(at, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	tool := "#!/bin/sh\necho $1 home=$OPENCGA_HOME heap=$JAVA_HEAP java=$JDK_JAVA_OPTIONS other=$OTHER\nexit 7\n"
	if err := os.WriteFile(filepath.Join(at, "bin", "opencga.sh"), []byte(tool), 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0])
	command.Env = append([]string{becomes + "=" + words, "HOOK_TEST_LAID=" + at, "PATH=" + path}, environment...)
	command.Stdin = strings.NewReader(input)
	told, err := command.CombinedOutput()
	return strings.ReplaceAll(string(told), at, "LAID"), err
}

func TestAPersonsCommandHasTheServersFilesAndAHeapOfItsOwn(t *testing.T) {
	told, err := people(t, "", "opencga.sh users", os.Getenv("PATH"),
		"OPENCGA_SHELL=on", "OPENCGA_HOME=/image", "JAVA_HEAP=90g", "OTHER=kept", "HOME=/people",
		"JDK_JAVA_OPTIONS=-Dtrust=x")

	if told != "users home=LAID heap=512m java=-Dtrust=x -Duser.home=/people other=kept\n" {
		t.Error(told)
	}
	if ended, is := err.(*exec.ExitError); !is || ended.ExitCode() != 7 {
		t.Errorf("its exit code is the command's, and not that of %v", err)
	}
}

func TestWithoutACommandItIsAShell(t *testing.T) {
	told, err := people(t, "opencga.sh asked\n", "", os.Getenv("PATH"), "OPENCGA_SHELL=on")

	if !strings.HasPrefix(told, "asked home=LAID heap=512m") {
		t.Error(told, err)
	}
}

func TestWhoGetsNoShellIsToldWhy(t *testing.T) {
	for _, each := range []struct{ words, path, on, says string }{
		{"", os.Getenv("PATH"), "", "spec.client.shell is false"},
		{"", "/nowhere", "on", "name a command"},
		{"nothing.sh", os.Getenv("PATH"), "on", "nothing.sh"},
	} {
		told, err := people(t, "", each.words, each.path, "OPENCGA_SHELL="+each.on)
		if err == nil || !strings.Contains(told, each.says) {
			t.Errorf("%q does not say %q", told, each.says)
		}
	}
}
