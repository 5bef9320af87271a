package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ports of one member. All members of a group use the same admin port.
type ports struct{ admin, data, ui, catalog, control int }

// settings of one member, from its environment.
type settings struct {
	name, group, alias string
	secret, password   string
	capacity           int
	volume             string
	listen             string // the address to listen on; empty is all
	address            string // the address under which this member registers
	host               string
	ports              ports
	speed              float64
	task, startUp      time.Duration // at speed 1
	silence            time.Duration // after which a member that does not answer is given up; real time
	selfHeal           bool
	faults             string
	version, nannyLog  string
	hosts              string // a file like /etc/hosts that goes before the name service
	catalogCommand     string
	quiet, lightweight bool
}

var special = regexp.MustCompile("[~!@#$%^&*()_\\-+=:;'\\[\\]{}|<>,.?/]")

// checkSecret holds the vendor's rule for the admin password and the secret key alike.
func checkSecret(name, value string) error {
	switch {
	case len(value) < 10:
		return fmt.Errorf("%s must have at least 10 characters", name)
	case !strings.ContainsAny(value, "0123456789"):
		return fmt.Errorf("%s must have a digit", name)
	case strings.ToLower(value) == value:
		return fmt.Errorf("%s must have an upper-case letter", name)
	case !special.MatchString(value):
		return fmt.Errorf("%s must have one of ~!@#$%%^&*()_-+=:;'[]{}|<>,.?/", name)
	case strings.Contains(value, `"`):
		return fmt.Errorf("%s must not have a double quote", name)
	}
	return nil
}

func settingsFrom(env func(string) string) (settings, error) {
	or := func(name, fallback string) string {
		if value := env(name); value != "" {
			return value
		}
		return fallback
	}
	if env("LICENSE") != "accept" {
		return settings{}, errors.New("the licence is not accepted; set LICENSE=accept")
	}
	hostname, _ := os.Hostname()
	s := settings{
		name:           or("MEMBER_NAME", hostname),
		group:          or("CACHE_GROUP", "cg1"),
		secret:         env("SECRET_KEY"),
		password:       env("XSADMIN_PWD"),
		volume:         or("XSLD_VOL", "/vol"),
		listen:         env("XSLD_ADDRESS"),
		selfHeal:       env("XSLD_SELF_HEAL") == "true",
		faults:         env("XSLD_FAULTS"),
		version:        or("XSLD_VERSION", "8.6.1.3"),
		nannyLog:       env("XSLD_NANNY_LOG"),
		catalogCommand: env("XSLD_CATALOG_COMMAND"),
		hosts:          env("XSLD_HOSTS"),
	}
	s.alias = or("XSLD_CONTAINER_ALIAS", alphanumeric(s.name))
	s.address = s.listen
	if s.address == "" {
		s.address = ownAddress()
	}
	s.host = or("XSLD_HOST", fullName(hostname, s.address))

	problems := []error{checkSecret("SECRET_KEY", s.secret), checkSecret("XSADMIN_PWD", s.password)}
	number := func(name, fallback string) float64 {
		value, err := strconv.ParseFloat(or(name, fallback), 64)
		if err != nil || value < 0 {
			problems = append(problems, fmt.Errorf("%s must be a number, not %q", name, env(name)))
		}
		return value
	}
	s.capacity = int(number("MEMBER_CAP", "1"))
	s.speed = number("XSLD_SPEED", "1")
	if s.speed == 0 {
		problems = append(problems, errors.New("XSLD_SPEED must be above 0"))
	}
	s.task = time.Duration(number("XSLD_TASK_SECONDS", "20") * float64(time.Second))
	s.startUp = time.Duration(number("XSLD_START_SECONDS", "10") * float64(time.Second))
	// A busy machine keeps a process waiting for seconds, whatever the speed of the clock.
	s.silence = max(time.Duration(20/max(s.speed, 1)*float64(time.Second)), 5*time.Second)
	if env("XSLD_SILENCE_SECONDS") != "" {
		s.silence = time.Duration(number("XSLD_SILENCE_SECONDS", "") * float64(time.Second))
	}
	var err error
	s.ports, err = portsFrom(or("XSLD_PORTS", "9445,9444,9443,4809,9446"))
	return s, errors.Join(append(problems, err)...)
}

func portsFrom(text string) (ports, error) {
	words := strings.Split(text, ",")
	numbers := make([]int, len(words))
	for i, word := range words {
		number, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			return ports{}, fmt.Errorf("XSLD_PORTS must be five numbers, not %q", text)
		}
		numbers[i] = number
	}
	if len(numbers) != 5 {
		return ports{}, fmt.Errorf("XSLD_PORTS must be admin,data,ui,catalog,control, not %q", text)
	}
	return ports{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]}, nil
}

func volume() string {
	if value := os.Getenv("XSLD_VOL"); value != "" {
		return value
	}
	return "/vol"
}

// ownAddress is the first address of this machine that is not loopback: in a pod, the pod's.
func ownAddress() string {
	addresses, _ := net.InterfaceAddrs()
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && !network.IP.IsLoopback() && network.IP.To4() != nil {
			return network.IP.String()
		}
	}
	return "127.0.0.1"
}

// dial looks names up in the hosts file at each call, so that a test can move them.
func (s settings) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if host, port, err := net.SplitHostPort(address); err == nil && s.hosts != "" {
		eachHost(s.hosts, func(ip string, names []string) {
			if slices.Contains(names, host) {
				address = net.JoinHostPort(ip, port)
			}
		})
	}
	return (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, network, address)
}

// eachHost reads a file like /etc/hosts.
func eachHost(file string, do func(ip string, names []string)) {
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 1 {
			do(words[0], words[1:])
		}
	}
}

// fullName is how /etc/hosts calls this machine; the kubelet writes the name within the headless service there.
func fullName(hostname, address string) string {
	name := address
	eachHost("/etc/hosts", func(ip string, names []string) {
		if ip == address && strings.HasPrefix(names[0], hostname) {
			name = names[0]
		}
	})
	return name
}

func alphanumeric(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 128 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return -1
	}, name)
}
