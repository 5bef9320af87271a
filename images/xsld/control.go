package main

import (
	"encoding/json"
	"net"
	"net/http"
)

// serveControl is plain HTTP without a password: the way in which tests reach a member, not a part of the contract.
func (m *member) serveControl() error {
	listener, err := net.Listen("tcp", m.at(m.ports.control))
	if err != nil {
		return err
	}
	calls := http.NewServeMux()
	calls.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		answer(w, m.faults, nil)
	})
	calls.HandleFunc("PUT /faults", func(w http.ResponseWriter, r *http.Request) {
		var next faults
		decoder := json.NewDecoder(r.Body)
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&next)
		if err != nil {
			err = bad(err.Error())
		} else {
			err = m.setFaults(next)
		}
		answer(w, next, err)
	})
	calls.HandleFunc("DELETE /faults", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, faults{}, m.setFaults(faults{}))
	})
	calls.HandleFunc("GET /trace", func(w http.ResponseWriter, _ *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		answer(w, append([]exchange{}, m.trace...), nil)
	})
	calls.HandleFunc("DELETE /trace", func(w http.ResponseWriter, _ *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.trace = nil
		answer(w, []exchange{}, nil)
	})
	calls.HandleFunc("GET /placement", func(w http.ResponseWriter, _ *http.Request) { answer(w, m.placed(), nil) })
	calls.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { answer(w, m.stateShown(), nil) })
	m.serve(listener, calls)
	return nil
}

// shown is a member's own view, for tests.
type shown struct {
	Member      string `json:"member"`
	State       string `json:"state"`
	Address     string `json:"address"`
	Registered  string `json:"registered"`
	Primary     string `json:"primary"`
	GroupID     string `json:"groupId"`
	Term        int    `json:"term"`
	Revision    int    `json:"revision"`
	Incarnation string `json:"incarnation"`
	Stale       string `json:"stale,omitempty"`
}

func (m *member) stateShown() shown {
	m.mu.Lock()
	defer m.mu.Unlock()
	return shown{m.name, m.state, m.address, m.identity.Address, m.db.Primary, m.db.ID, m.db.Term, m.db.Revision,
		m.incarnation, m.identity.Stale}
}
