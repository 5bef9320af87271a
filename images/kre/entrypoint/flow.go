package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// A message has these headers, and a google.protobuf.Any as its body. Nodes hand the first on.
const (
	requestHeader = "Kre-Request" // whose call it is about
	errorHeader   = "Kre-Error"   // in place of a body: why there is no answer
)

// flow hands calls to workflows, and their answers to whoever waits for them.
type flow struct {
	connection *nats.Conn
	stream     nats.JetStreamContext
	mutex      sync.Mutex
	waiting    map[string]chan *nats.Msg // by request
}

// connect reads the answers of all methods from now on; NATS may be away for a while, then as later.
func connect(given environment) (*flow, error) {
	connection, err := nats.Connect(given.nats, nats.Name(given.version+" entrypoint"), nats.MaxReconnects(-1), nats.ReconnectWait(time.Second))
	if err != nil {
		return nil, fmt.Errorf("NATS at %s: %w", given.nats, err)
	}
	stream, err := connection.JetStream(nats.MaxWait(given.timeout))
	if err != nil {
		return nil, err
	}
	made := &flow{connection: connection, stream: stream, waiting: map[string]chan *nats.Msg{}}
	for method, of := range given.subjects {
		// A consumer that is made anew wherever its server is lost, and that waits for no acknowledgement.
		_, err := stream.Subscribe(of.Input, made.answered, nats.OrderedConsumer(), nats.DeliverNew(), nats.BindStream(of.Stream))
		if err != nil {
			connection.Close()
			return nil, fmt.Errorf("answers of %s, from %s of stream %s: %w", method, of.Input, of.Stream, err)
		}
	}
	return made, nil
}

func (f *flow) close() { f.connection.Close() }

// answered is called for each message of the nodes whose messages are answers; those that nobody waits for are another's.
func (f *flow) answered(message *nats.Msg) {
	f.mutex.Lock()
	waiting := f.waiting[message.Header.Get(requestHeader)]
	f.mutex.Unlock()
	if waiting == nil {
		return
	}
	select {
	case waiting <- message:
	default: // the second answer to one call
	}
}

// ask hands a message to a workflow, and returns what comes out of it.
func (f *flow) ask(ctx context.Context, subject string, body []byte) ([]byte, error) {
	request, waiting := nuid.Next(), make(chan *nats.Msg, 1)
	f.mutex.Lock()
	f.waiting[request] = waiting
	f.mutex.Unlock()
	defer func() {
		f.mutex.Lock()
		delete(f.waiting, request)
		f.mutex.Unlock()
	}()
	message := &nats.Msg{Subject: subject, Data: body, Header: nats.Header{requestHeader: []string{request}, nats.MsgIdHdr: []string{request}}}
	if _, err := f.stream.PublishMsg(message, nats.Context(ctx), nats.RetryAttempts(10)); err != nil {
		return nil, fmt.Errorf("%s was not taken by NATS: %w", subject, err)
	}
	select {
	case answer := <-waiting:
		if why := answer.Header.Get(errorHeader); why != "" {
			return nil, errors.New(why)
		}
		return answer.Data, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer came in time: %w", ctx.Err())
	}
}
