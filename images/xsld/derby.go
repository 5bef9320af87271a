package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The member's database is reached by SQL from its own machine alone, as soon as its ports are open. Three statements are
// understood, and answered as ij prints them.
var (
	countMembers  = regexp.MustCompile(`(?i)^SELECT\s+COUNT\(\*\)\s+FROM\s+XSADMIN\.MEMBER$`)
	selectAddress = regexp.MustCompile(`(?i)^SELECT\s+IP_ADDRESS\s+FROM\s+XSADMIN\.MEMBER\s+WHERE\s+MEMBER_NAME\s*=\s*'([^']*)'$`)
	updateAddress = regexp.MustCompile(`(?i)^UPDATE\s+XSADMIN\.MEMBER\s+SET\s+IP_ADDRESS\s*=\s*'([^']*)'\s+WHERE\s+MEMBER_NAME\s*=\s*'([^']*)'$`)
)

const socketFile = "derby.sock"

// serveSQL answers one statement per line on a socket on the volume.
func (m *member) serveSQL() error {
	if m.lightweight {
		return nil
	}
	_ = os.Remove(m.store.path(socketFile))
	listener, err := net.Listen("unix", m.store.path(socketFile))
	if err != nil {
		return err
	}
	m.closeLater(listener)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				if line, err := bufio.NewReader(connection).ReadString('\n'); err == nil {
					_, _ = io.WriteString(connection, m.execute(strings.TrimSpace(line)))
				}
			}()
		}
	}()
	return nil
}

func (m *member) execute(statement string) string {
	m.mu.Lock()
	up, members := m.state != starting, len(m.db.Members)
	m.mu.Unlock()
	switch {
	case statement == "STOP":
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		<-m.done
		return ""
	case !up:
		return "ERROR 08001: the database is not up yet.\n"
	case countMembers.MatchString(statement):
		return table("1", 11, strconv.Itoa(members))
	}
	if words := selectAddress.FindStringSubmatch(statement); words != nil {
		return m.selected(words[1])
	}
	if words := updateAddress.FindStringSubmatch(statement); words != nil {
		return m.updated(words[2], words[1])
	}
	if words := strings.Fields(statement); len(words) > 3 && words[0] == "RECOVER" {
		return m.recovered(words[1:])
	}
	return fmt.Sprintf("ERROR 42X01: Syntax error: Encountered \"%s\".\n", statement)
}

func (m *member) selected(name string) string {
	rows := []string{}
	m.mu.Lock()
	if name == m.name {
		rows = append(rows, m.identity.Address)
	} else if other := m.db.member(name); other != nil {
		rows = append(rows, other.Address)
	}
	m.mu.Unlock()
	return table("IP_ADDRESS", 15, rows...)
}

// table is a result of one column.
func table(column string, width int, rows ...string) string {
	text := fmt.Sprintf("%-*s\n%s\n", width, column, strings.Repeat("-", width))
	for _, row := range rows {
		text += fmt.Sprintf("%-*s\n", width, row)
	}
	word := "rows"
	if len(rows) == 1 {
		word = "row"
	}
	return fmt.Sprintf("%s\n%d %s selected\n", text, len(rows), word)
}

// updated writes an address into this member's own records; the group's follow when the primary hears of it.
func (m *member) updated(name, address string) string {
	if net.ParseIP(address) == nil {
		return "ERROR 22001: the value is not an address.\n"
	}
	if !m.setAddress(func(r record) bool { return r.Name == name }, address) {
		return "0 rows inserted/updated/deleted\n"
	}
	return "1 row inserted/updated/deleted\n"
}

// recovered takes (alias, address, host) of each other member. The host name has no part in how members find each other.
func (m *member) recovered(words []string) string {
	text := ""
	for ; len(words) >= 3; words = words[3:] {
		alias, address := words[0], words[1]
		done := net.ParseIP(address) != nil && m.setAddress(func(r record) bool { return r.Alias == alias || r.Name == alias }, address)
		text += fmt.Sprintf("%s %s %s: %v\n", alias, address, words[2], done)
	}
	return text
}

func (m *member) setAddress(which func(record) bool, address string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.db.clone()
	for i := range next.Members {
		r := &next.Members[i]
		if !which(*r) {
			continue
		}
		if r.Name == m.name {
			m.identity.Address = address
			if m.save("member.json", m.identity) != nil {
				return false
			}
		}
		r.Address = address
		if next.Primary == m.name {
			next.Revision++
		}
		m.say("the record of %s says %s now", r.Name, address)
		return m.install(next) == nil
	}
	return false
}

// ask puts one statement to the member of this machine.
func ask(folder, statement string) (string, error) {
	connection, err := net.DialTimeout("unix", store{folder}.path(socketFile), 5*time.Second)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	if _, err := fmt.Fprintln(connection, statement); err != nil {
		return "", err
	}
	text, err := io.ReadAll(connection)
	return string(text), err
}

// runIJ is the SQL tool: statements from the input, each ended by a semicolon.
func runIJ(in io.Reader, out io.Writer, folder string) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "ij version 10.8")
	for _, statement := range strings.Split(string(text), ";") {
		statement = strings.Join(strings.Fields(statement), " ")
		first, _, _ := strings.Cut(strings.ToLower(statement), " ")
		switch first {
		case "":
			continue
		case "connect":
			statement = "" // there is one database here, whatever it is called
		case "disconnect", "exit", "quit":
			return nil
		}
		fmt.Fprint(out, "ij> ")
		if statement == "" {
			if _, err := ask(folder, ""); err != nil {
				return fmt.Errorf("ERROR 08001: no connection: %w", err)
			}
			continue
		}
		answer, err := ask(folder, statement)
		if err != nil {
			return fmt.Errorf("ERROR 08001: no connection: %w", err)
		}
		fmt.Fprint(out, answer)
	}
	fmt.Fprintln(out, "ij> ")
	return nil
}

// runRecover is what recoverXSLD.sh calls.
func runRecover(args []string, out io.Writer, folder string) error {
	if len(args) == 0 || len(args)%3 != 0 {
		return fmt.Errorf("give alias, address and host name of every other member")
	}
	answer, err := ask(folder, "RECOVER "+strings.Join(args, " "))
	fmt.Fprint(out, answer)
	return err
}

// runStop is what stopXSLD.sh calls; it returns when the server has ended.
func runStop(out io.Writer, folder string) error {
	connection, err := net.DialTimeout("unix", store{folder}.path(socketFile), 5*time.Second)
	if err != nil {
		fmt.Fprintln(out, "the server is not running")
		return nil
	}
	connection.Close()
	_, _ = ask(folder, "STOP") // however the connection ends, it ends with the server
	fmt.Fprintln(out, "the server has stopped")
	return nil
}
