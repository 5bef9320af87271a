package main

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// pings tells whether a server says that it is well. Of HTTP the first line is all that is needed: the library for it
// would make this binary three times as large.
func pings(address string) bool {
	where, err := url.Parse(address)
	if err != nil || where.Host == "" {
		return false
	}
	line, err := net.DialTimeout("tcp", where.Host, 2*time.Second)
	if err != nil {
		return false
	}
	defer line.Close()
	_ = line.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprintf(line, "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", where.RequestURI(), where.Host); err != nil {
		return false
	}
	first, err := bufio.NewReaderSize(line, 512).ReadSlice('\n')
	if err != nil {
		return false
	}
	words := strings.Fields(string(first))
	return len(words) >= 2 && strings.HasPrefix(words[0], "HTTP/1.") && len(words[1]) == 3 && words[1][0] == '2'
}
