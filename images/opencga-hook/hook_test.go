package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hooked is a hook at work in a folder of its own, and what it is asked by.
func hooked(t *testing.T) (*hook, func(request) answer) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"home/conf/configuration.yml": "logLevel: info\n",
		"home/conf/log4j2.xml":        "<xml/>",
		"home/bin/tool":               "#!/bin/sh\n" + tool,
		"own/configuration.yml":       "{}",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := settings{
		socket:  filepath.Join(folder, "s"),
		home:    filepath.Join(folder, "home"),
		conf:    filepath.Join(folder, "own"),
		laid:    filepath.Join(folder, "laid"),
		startup: time.Hour,
	}
	if err := laid(s.home, s.conf, s.laid); err != nil {
		t.Fatal(err)
	}
	h := newHook(s)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-children:
				h.processes.reap()
			case <-ended:
				return
			}
		}
	}()
	listener, err := net.Listen("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	go h.serve(listener)
	t.Cleanup(func() {
		for _, each := range h.end() {
			each.signal(syscall.SIGKILL)
			<-each.done
		}
		listener.Close()
		signal.Stop(children)
		close(ended)
	})
	return h, func(asked request) answer { return ask(t, s.socket, asked) }
}

// tool does what its first argument says.
const tool = `
case $1 in
  serve) trap 'echo in order; exit 0' TERM; echo up; while :; do sleep 0.01; done ;;
  hold) while [ ! -e "$2" ]; do sleep 0.01; done; echo let go ;;
  echo) cat ;;
  home) echo "$OPENCGA_HOME"; echo "$0" ;;
  fail) echo why; exit 3 ;;
esac
`

func ask(t *testing.T, socket string, asked request) answer {
	t.Helper()
	line, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	text, _ := json.Marshal(asked)
	if _, err := line.Write(append(text, '\n')); err != nil {
		t.Fatal(err)
	}
	var told answer
	if err := json.NewDecoder(line).Decode(&told); err != nil {
		t.Fatal(err)
	}
	return told
}

func (h *hook) tool(words ...string) []string {
	return append([]string{h.home + "/bin/tool"}, words...)
}

// until asks for the state until it is as it should be.
func until(t *testing.T, asks func(request) answer, right func(answer) bool) answer {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		told := asks(request{Do: "state"})
		if right(told) {
			return told
		}
		if time.Now().After(deadline) {
			t.Fatalf("it stays %+v", told)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestAServerIsStartedOnceAndStopsInOrder(t *testing.T) {
	h, asks := hooked(t)
	asks(request{Do: "start", Args: h.tool("serve")})
	until(t, asks, func(told answer) bool { return told.Running })
	pid := h.server.pid
	asks(request{Do: "start", Args: h.tool("serve")})
	if h.server.pid != pid {
		t.Error("it was started twice")
	}
	for !strings.Contains(h.server.output.String(), "up") {
		time.Sleep(5 * time.Millisecond)
	}
	asks(request{Do: "stop"})
	until(t, asks, func(told answer) bool { return !told.Running })
	for !strings.Contains(h.server.output.String(), "in order") {
		time.Sleep(5 * time.Millisecond)
	}
	if h.server.exit != 0 {
		t.Errorf("it ended with %d", h.server.exit)
	}
}

func TestACommandRunsOnceAndIsRemembered(t *testing.T) {
	h, asks := hooked(t)
	gate := filepath.Join(t.TempDir(), "gate")
	asks(request{Do: "run", ID: "a", Args: h.tool("hold", gate)})
	told := asks(request{Do: "run", ID: "a", Args: h.tool("fail")})
	if told.Error != "" {
		t.Errorf("the same once more is no error: %s", told.Error)
	}
	told = asks(request{Do: "run", ID: "b", Args: h.tool("fail")})
	if !strings.Contains(told.Error, "command a runs") {
		t.Errorf("another began beside it: %q", told.Error)
	}
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	told = until(t, asks, func(told answer) bool { return !told.Command.Running && told.Command.Output != "" })
	if told.Command.ID != "a" || told.Command.Exit != 0 || told.Command.Output != "let go\n" {
		t.Errorf("%+v", told.Command)
	}
	asks(request{Do: "run", ID: "b", Args: h.tool("fail")})
	told = until(t, asks, func(told answer) bool { return !told.Command.Running && told.Command.Output != "" })
	if told.Command.ID != "b" || told.Command.Exit != 3 {
		t.Errorf("%+v", told.Command)
	}
}

func TestWhatIsRefused(t *testing.T) {
	h, asks := hooked(t)
	for want, asked := range map[string]request{
		"--force":             {Do: "run", ID: "x", Args: h.tool("echo", "--force")},
		"nothing to start":    {Do: "start"},
		"a command has an id": {Do: "run", Args: h.tool("echo")},
		"is no request":       {Do: "dance"},
		"no such file":        {Do: "start", Args: []string{"/nowhere/tool"}},
		"did not end within":  {Do: "ask", Args: h.tool("serve"), Seconds: 1},
	} {
		if told := asks(asked); !strings.Contains(told.Error, want) {
			t.Errorf("%q of %+v", told.Error, asked)
		}
	}
}

func TestACommandReadsThePasswordAndRunsInTheHomeThatIsLaidOut(t *testing.T) {
	h, asks := hooked(t)
	if told := asks(request{Do: "ask", Args: h.tool("echo"), Stdin: "secret\n", Seconds: 20}); told.Output != "secret\n" {
		t.Errorf("%q", told.Output)
	}
	told := asks(request{Do: "ask", Args: h.tool("home"), Seconds: 20})
	if want := fmt.Sprintf("%s\n%s/bin/tool\n", h.laid, h.laid); told.Output != want {
		t.Errorf("%q, not %q", told.Output, want)
	}
}

func TestFilesOfTheAgentTakeThePlaceOfTheImages(t *testing.T) {
	h, asks := hooked(t)
	laidOver, err := os.ReadFile(filepath.Join(h.laid, "conf/configuration.yml"))
	if err != nil || string(laidOver) != "{}" {
		t.Errorf("%q, %v", laidOver, err)
	}
	if other, err := os.ReadFile(filepath.Join(h.laid, "conf/log4j2.xml")); err != nil || string(other) != "<xml/>" {
		t.Errorf("%q, %v", other, err)
	}
	told := asks(request{Do: "files"})
	if len(told.Files) != 1 || told.Files["configuration.yml"] != "logLevel: info\n" {
		t.Errorf("%v", told.Files)
	}
	h.trusted = filepath.Join(h.home, "ca-certificates.crt")
	if err := os.WriteFile(h.trusted, []byte("PEM"), 0o644); err != nil {
		t.Fatal(err)
	}
	if told := asks(request{Do: "files"}); len(told.Files) != 2 || told.Files["authorities.pem"] != "PEM" {
		t.Errorf("%v", told.Files)
	}
	if err := laid(h.home, h.conf, h.laid); err != nil {
		t.Errorf("once more, as after a restart of the container: %v", err)
	}
}

func TestNothingIsBegunOnceTheContainerIsToEnd(t *testing.T) {
	h, asks := hooked(t)
	asks(request{Do: "start", Args: h.tool("serve")})
	until(t, asks, func(told answer) bool { return told.Running })
	for _, each := range h.end() {
		<-each.done
	}
	if told := asks(request{Do: "start", Args: h.tool("serve")}); !strings.Contains(told.Error, "about to end") {
		t.Errorf("%q", told.Error)
	}
}

func TestAServerServesOnUntilServicesHaveForgottenItsPod(t *testing.T) {
	h, asks := hooked(t)
	h.linger = time.Hour
	h.lingers() // there is none
	h.mu.Lock()
	h.ending = false
	h.mu.Unlock()
	asks(request{Do: "start", Args: h.tool("serve")})
	until(t, asks, func(told answer) bool { return told.Running })
	over := make(chan struct{})
	go func() {
		h.lingers()
		close(over)
	}()
	// Each of these is begun anew, unlike a command, which is remembered by its ID once it was.
	until(t, func(request) answer { return asks(request{Do: "ask", Args: h.tool("echo"), Seconds: 20}) }, func(told answer) bool {
		return strings.Contains(told.Error, "about to end")
	})
	if !asks(request{Do: "state"}).Running {
		t.Error("it was stopped")
	}
	asks(request{Do: "stop"})
	<-over // with the server, which has ended by itself
}

func TestProbesAreHeldBackWhileNoServerIsToRun(t *testing.T) {
	h, asks := hooked(t)
	serving, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer serving.Close()
	status := make(chan string, 16)
	go func() {
		for {
			line, err := serving.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(line, "HTTP/1.1 %s\r\n\r\n", <-status)
			line.Close()
		}
	}()
	h.ping = "http://" + serving.Addr().String() + "/ping"
	check := func(what string, want bool) {
		t.Helper()
		err := well(h.socket, what)
		if (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("started", true) // nothing is to run
	check("alive", true)
	check("serving", false) // no Service is to send it queries
	asks(request{Do: "start", Args: h.tool("serve")})
	until(t, asks, func(told answer) bool { return told.Running })
	status <- "503 no"
	check("started", false)
	status <- "503 no"
	check("alive", true)   // it has time to come up
	check("serving", true) // whether it is up is for the agent's probe
	status <- "200 OK"
	check("started", true)
	status <- "503 no"
	check("alive", false) // it was up
	h.mu.Lock()
	h.answered, h.since = false, time.Now().Add(-2*h.startup)
	h.mu.Unlock()
	status <- "503 no"
	check("alive", false) // it never came up
}

func TestCopies(t *testing.T) {
	folder := t.TempDir()
	from, to := filepath.Join(folder, "a"), filepath.Join(folder, "b")
	if err := os.WriteFile(from, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := called("version-upgrade-hook", []string{"copy", from + "=" + to}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(to)
	if err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Errorf("%v, %v", info, err)
	}
	for _, wrong := range []string{"a", "=b", "a=", "/nowhere=" + to} {
		if copied([]string{wrong}) == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
	if called("version-upgrade", []string{"dance"}) == nil {
		t.Error("no such request")
	}
}
