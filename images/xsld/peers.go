package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// peerServer is the TLS server name that members ask for, so that a fault of the admin port can spare their traffic.
const peerServer = "peer.xsld"

// target is where a peer is reached.
type target struct {
	address string
	port    int
}

func (r record) target() target { return target{r.Address, r.Port} }

func peerClient(s settings) *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true, ServerName: peerServer}, // authenticated by the HMAC
		DialContext:         s.dial,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     time.Minute,
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
	}}
}

// call puts one question to a peer. A refusal of the peer comes back as the same *refusal.
func (m *member) call(to target, timeout time.Duration, name string, question, answer any) error {
	m.mu.Lock()
	cut := m.faults.CutPeers
	m.mu.Unlock()
	if cut {
		return errors.New("cut off by a fault")
	}
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	url := "https://" + net.JoinHostPort(to.address, strconv.Itoa(to.port)) + "/peer/" + name
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("X-Member-Proof", m.proof(name, body))
	request.Header["X-Idempotency-Key"] = nil // each may be repeated, so the client may do so on a connection that went stale
	response, err := m.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		var failure struct{ Error string }
		_ = json.Unmarshal(text, &failure)
		return &refusal{response.StatusCode, failure.Error}
	}
	return json.Unmarshal(text, answer)
}

func (m *member) proof(name string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(m.secret))
	fmt.Fprintf(mac, "%s\n%s", name, body)
	return hex.EncodeToString(mac.Sum(nil))
}

// peerCalls are the questions that members put to each other.
func (m *member) peerCalls() map[string]func([]byte) (any, error) {
	return map[string]func([]byte) (any, error){
		"beat":     handled(m.onBeat),
		"database": handled(func(struct{}) (*database, error) { return m.database(), nil }),
		"adopt":    handled(func(next database) (struct{}, error) { return struct{}{}, m.adopt(&next) }),
		"reserve":  handled(m.onReserve),
		"hold":     handled(m.onHold),
		"greet":    handled(m.onGreet),
		"list":     handled(m.onList),
		"joined":   handled(m.onJoined),
		"release":  handled(m.onRelease),
		"yield":    handled(m.onYield),
		"restart":  handled(m.onRestart),
		"vote":     handled(m.onVote),
		"offer":    handled(m.onOffer),
		"place":    handled(m.onPlace),
		"where":    handled(func(struct{}) (*placement, error) { return m.placed(), nil }),
		"frozen":   handled(m.data.onFreeze),
		"copied":   handled(m.onCopied),
		"copy":     handled(m.data.onCopy),
		"write":    handled(m.data.onWrite),
		"entry":    handled(m.data.onEntry),
		"keys":     handled(m.data.onKeys),
	}
}

func handled[Question, Answer any](do func(Question) (Answer, error)) func([]byte) (any, error) {
	return func(body []byte) (any, error) {
		var question Question
		if err := json.Unmarshal(body, &question); err != nil {
			return nil, &refusal{http.StatusBadRequest, err.Error()}
		}
		return do(question)
	}
}

func (m *member) peerHandler() http.HandlerFunc {
	calls := m.peerCalls()
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("call")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		m.mu.Lock()
		cut := m.faults.CutPeers
		m.mu.Unlock()
		if cut {
			panic(http.ErrAbortHandler)
		}
		if !hmac.Equal([]byte(m.proof(name, body)), []byte(r.Header.Get("X-Member-Proof"))) {
			answer(w, nil, &refusal{http.StatusUnauthorized, "the secret keys of the two members differ"})
			return
		}
		do := calls[name]
		if do == nil {
			http.NotFound(w, r)
			return
		}
		value, err := do(body)
		answer(w, value, err)
	}
}
