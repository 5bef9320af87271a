package main

import (
	"bytes"
	"encoding/json"
	"regexp"
)

// exchange is one admin request and how it was answered; 0 when the connection was cut instead.
type exchange struct {
	Time   int64           `json:"time"` // milliseconds since the epoch
	Member string          `json:"member"`
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
	Status int             `json:"status"`
}

const (
	mask      = "********"
	traceSize = 20000
)

var (
	secretNames = map[string]bool{"secretKey": true, "adminPwd": true, "password": true}
	secretField = regexp.MustCompile(`("(?:secretKey|adminPwd|password)"\s*:\s*)"(?:[^"\\]|\\.)*"`)
)

func maskBody(body []byte) json.RawMessage {
	if len(body) == 0 {
		return nil
	}
	var compact bytes.Buffer
	if json.Compact(&compact, body) != nil {
		return json.RawMessage(`"not JSON"`)
	}
	return secretField.ReplaceAll(compact.Bytes(), []byte(`$1"`+mask+`"`))
}

// note keeps an exchange, of which the oldest fall out.
func (m *member) note(entry exchange) {
	m.say("%s %s %d", entry.Method, entry.Path, entry.Status)
	m.mu.Lock()
	defer m.mu.Unlock()
	most := traceSize
	if m.lightweight {
		most /= 20
	}
	if len(m.trace) >= most {
		m.trace = append([]exchange{}, m.trace[most/10:]...)
	}
	m.trace = append(m.trace, entry)
}

// decodeStrictly refuses fields that mean nothing, which in a test are spelling mistakes.
func decodeStrictly(text []byte, value any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(value)
}
