package main

import (
	"crypto/tls"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// catalogProcess is the name of the process that stands for the catalog server. The vendor's advice for a stop that
// hangs is to kill the process of this name.
const catalogProcess = "cs-default"

// catalog is what shows that a member runs a catalog server: a port and a process.
type catalog struct {
	mu       sync.Mutex
	listener io.Closer
	process  *exec.Cmd
	dead     chan struct{}
}

// runCatalog opens or closes the port for Java clients, whose protocol is not spoken here.
func (m *member) runCatalog(wanted bool) error {
	c := &m.catalog
	if !wanted {
		c.close()
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener != nil || m.lightweight {
		return nil
	}
	listener, err := tls.Listen("tcp", m.at(m.ports.catalog), m.tls())
	if err != nil {
		return err
	}
	c.listener = listener
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(io.Discard, connection)
				connection.Close()
			}()
		}
	}()
	if m.catalogCommand == "" {
		return nil
	}
	process, dead := exec.Command(m.catalogCommand), make(chan struct{})
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		return err
	}
	c.process, c.dead = process, dead
	go func() {
		_ = process.Wait()
		close(dead)
	}()
	return nil
}

// wait returns when the process was killed, or when there is none.
func (c *catalog) wait() {
	c.mu.Lock()
	dead := c.dead
	c.mu.Unlock()
	if dead != nil {
		<-dead
	}
}

func (c *catalog) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener != nil {
		c.listener.Close()
	}
	if c.process != nil {
		_ = c.process.Process.Kill()
	}
	c.listener, c.process, c.dead = nil, nil, nil
}
