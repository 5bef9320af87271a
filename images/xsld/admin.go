package main

import (
	"bytes"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	base      = "/wxsadmin/v1"
	adminUser = "xsadmin"
)

// refusal is an answer other than 2xx, with its code.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

var errNotMaster = &refusal{http.StatusServiceUnavailable, "not the master"}

func bad(text string) error { return &refusal{http.StatusBadRequest, text} }

// answer writes a value or an error as JSON.
func answer(w http.ResponseWriter, value any, err error) {
	code := http.StatusOK
	if err != nil {
		code = http.StatusInternalServerError
		var refused *refusal
		if errors.As(err, &refused) {
			code = refused.code
		}
		value = map[string]string{"error": err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

type call func(r *http.Request) (any, error)

func (m *member) adminCalls() map[string]call {
	return map[string]call{
		"GET /version":                m.getVersion,
		"GET /task":                   m.getTasks,
		"POST /task":                  m.postTask,
		"GET /task/{id}/status":       m.getTask,
		"PUT /task/cancel/{id}/force": m.putCancel,
		"GET /cacheMemberGroup":       m.getGroup,
		"GET /grid":                   m.getGrids,
		"GET /grid/{name}":            m.getGrid,
		"POST /grid/{name}":           m.postGrid,
		"PUT /grid/{name}":            m.putGrid,
		"DELETE /grid/{name}":         m.deleteGrid,
		"GET /gridTemplate":           m.getTemplates,
		"GET /gridTemplate/{name}":    m.getTemplate,
		"PUT /gridTemplate/{name}":    m.putTemplate,
		"DELETE /gridTemplate/{name}": m.deleteTemplate,
	}
}

func (m *member) serveAdmin() error {
	calls := http.NewServeMux()
	for pattern, do := range m.adminCalls() {
		method, path, _ := strings.Cut(pattern, " ")
		calls.HandleFunc(method+" "+base+path, func(w http.ResponseWriter, r *http.Request) {
			value, err := do(r)
			answer(w, value, err)
		})
	}
	calls.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, nil, &refusal{http.StatusNotFound, "there is no such path"})
	})
	all := http.NewServeMux()
	all.HandleFunc("POST /peer/{call}", m.peerHandler())
	all.Handle("/", m.recorded(m.faulty(m.authorized(calls))))

	config := m.tls()
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if hello.ServerName == peerServer && m.faults.CutPeers || hello.ServerName != peerServer && m.faults.Refuse {
			hello.Conn.Close()
			return nil, errors.New("refused by a fault")
		}
		return nil, nil
	}
	return m.serveTLS(m.ports.admin, all, config)
}

// authorized lets the administrator through. The password is the group's: it is in the database, as digest.
func (m *member) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !m.knows(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="wxsadmin"`)
			answer(w, nil, &refusal{http.StatusUnauthorized, "user name or password is wrong"})
			return
		}
		w.Header().Set("Server", "XSLD/"+m.version)
		next.ServeHTTP(w, r)
	})
}

func (m *member) knows(r *http.Request) bool {
	user, password, _ := r.BasicAuth()
	return user == adminUser && subtle.ConstantTimeCompare([]byte(digest(password)), []byte(m.database().Password)) == 1
}

// recorded answers from a buffer, notes each exchange in the trace and the log, and can cut the connection instead.
func (m *member) recorded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20))
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		entry := exchange{Time: time.Now().UnixMilli(), Member: m.name, Method: r.Method, Path: r.URL.Path, Body: maskBody(body)}
		buffer := &buffered{header: http.Header{}, code: http.StatusOK}
		cut := true // unless the handler comes to its end
		defer func() {
			if !cut {
				entry.Status = buffer.code
			}
			m.note(entry)
		}()
		next.ServeHTTP(buffer, r)
		if r.Method == http.MethodPost && m.take(func(f *faults) *int { return &f.DropReply }) {
			panic(http.ErrAbortHandler)
		}
		cut = false
		maps.Copy(w.Header(), buffer.header)
		w.WriteHeader(buffer.code)
		_, _ = w.Write(buffer.body.Bytes())
	})
}

// buffered is an answer that was not sent yet.
type buffered struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (b *buffered) Header() http.Header            { return b.header }
func (b *buffered) WriteHeader(code int)           { b.code = code }
func (b *buffered) Write(text []byte) (int, error) { return b.body.Write(text) }

func (m *member) getVersion(*http.Request) (any, error) {
	return map[string]string{"version": m.version}, nil
}

func (m *member) getTasks(*http.Request) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	shown := make([]task, 0, len(m.tasks))
	for _, t := range m.tasks {
		shown = append(shown, *t)
	}
	return shown, nil
}

func (m *member) getTask(r *http.Request) (any, error) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil {
		return nil, bad("a task id is a number")
	}
	if m.take(func(f *faults) *int { return &f.TransientStatus }) {
		return map[string]string{"error": "Failed to get the task status"}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.taskLocked(id); t != nil {
		return *t, nil
	}
	return nil, errNoTask
}

func (m *member) putCancel(r *http.Request) (any, error) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil {
		return nil, bad("a task id is a number")
	}
	return map[string]int{"taskId": id}, m.cancelTask(id)
}

// order is the body of POST /task.
type order struct {
	Command     string            `json:"command"`
	Description string            `json:"description"`
	Parameters  map[string]string `json:"parameters"`
}

func (m *member) postTask(r *http.Request) (any, error) {
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		return nil, bad("the body must be JSON, and all parameters strings: " + err.Error())
	}
	command, ok := commands[o.Command]
	if !ok {
		return nil, bad("there is no command " + strconv.Quote(o.Command))
	}
	for _, name := range command.parameters {
		if o.Parameters[name] == "" {
			return nil, bad(o.Command + " needs the parameter " + name)
		}
	}
	id, err := command.run(m, o)
	if err != nil {
		return nil, err
	}
	return map[string]int{"taskId": id}, nil
}
