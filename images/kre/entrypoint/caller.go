package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// told is a line for each call.
type told struct {
	At      time.Time       `json:"at"`      // when it began
	Seconds float64         `json:"seconds"` // until it ended
	Version string          `json:"version"` // that answered
	Answer  json.RawMessage `json:"answer,omitempty"`
	Error   string          `json:"error,omitempty"`
}

// callAndTell calls a method once, or so many times a second until its input ends, and writes a line of JSON for each call.
// Whether calls fail is for the reader of those lines to judge; it is an error where what is to be called is not known.
func callAndTell(ctx context.Context, words []string) error {
	flags := flag.NewFlagSet("call", flag.ContinueOnError)
	rate := flags.Float64("rate", 0, "calls a second, until standard input ends; 0 is one call")
	anew := flags.Bool("anew", false, "by a connection of its own for each call")
	within := flags.Duration("within", 30*time.Second, "how long a call may take")
	if err := flags.Parse(words); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		return errors.New("give ADDRESS and METHOD, as in: call demo-active-entrypoint:9000 greeter.Greeter/Greet '{\"name\": \"you\"}'")
	}
	to, name, text := flags.Arg(0), flags.Arg(1), "{}"
	if flags.NArg() > 2 {
		text = flags.Arg(2)
	}
	shared, err := dial(to)
	if err != nil {
		return err
	}
	defer shared.Close()
	learning, cancel := context.WithTimeout(ctx, *within)
	defer cancel()
	method, err := learn(learning, shared, name)
	if err != nil {
		return err
	}
	request := dynamicpb.NewMessage(method.Input())
	if err := protojson.Unmarshal([]byte(text), request); err != nil {
		return fmt.Errorf("%s is no %s: %w", text, method.Input().FullName(), err)
	}
	one := func() {
		connection := shared
		if *anew {
			own, err := dial(to)
			if err != nil {
				panic(err) // it was dialled before, and nothing is connected yet
			}
			defer own.Close()
			connection = own
		}
		call(ctx, connection, method, request, *within)
	}
	if *rate == 0 {
		one()
		return nil
	}
	repeat(ctx, *rate, untilTold(), one)
	return nil
}

func dial(to string) (*grpc.ClientConn, error) {
	return grpc.NewClient(to, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig())
}

// untilTold is closed when standard input ends, as it does when whoever started this closes it, or is gone.
func untilTold() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		io.Copy(io.Discard, os.Stdin)
	}()
	return ended
}

// repeat begins so many a second until `end`, whether or not those before have ended, and returns when all have.
func repeat(ctx context.Context, rate float64, end <-chan struct{}, one func()) {
	ticks := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer ticks.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ticks.C:
			running.Go(one)
		case <-end:
			return
		case <-ctx.Done():
			return
		}
	}
}

var output sync.Mutex

func call(ctx context.Context, connection *grpc.ClientConn, method protoreflect.MethodDescriptor, request proto.Message, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	said, header, answer := told{At: time.Now()}, metadata.MD{}, dynamicpb.NewMessage(method.Output())
	path := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	err := connection.Invoke(ctx, path, request, answer, grpc.Header(&header))
	said.Seconds = time.Since(said.At).Seconds()
	said.Version = strings.Join(header.Get(versionHeader), ",")
	if err == nil {
		said.Answer, err = protojson.Marshal(answer)
	}
	if err != nil {
		said.Error = err.Error()
	}
	line, err := json.Marshal(said)
	if err != nil {
		panic(err) // it is text and numbers
	}
	output.Lock()
	defer output.Unlock()
	fmt.Fprintln(os.Stdout, string(line))
}

// learn asks the server by reflection what SERVICE/METHOD is.
func learn(ctx context.Context, connection *grpc.ClientConn, name string) (protoreflect.MethodDescriptor, error) {
	service, last, found := strings.Cut(name, "/")
	if !found {
		return nil, fmt.Errorf("%q is no method: give SERVICE/METHOD", name)
	}
	asking, err := reflectionpb.NewServerReflectionClient(connection).ServerReflectionInfo(ctx, grpc.WaitForReady(true))
	if err != nil {
		return nil, err
	}
	question := &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service}
	if err := asking.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: question}); err != nil {
		return nil, err
	}
	answer, err := asking.Recv()
	if err != nil {
		return nil, err
	}
	if refused := answer.GetErrorResponse(); refused != nil {
		return nil, fmt.Errorf("the server does not know %s: %s", service, refused.ErrorMessage)
	}
	set := &descriptorpb.FileDescriptorSet{}
	for _, content := range answer.GetFileDescriptorResponse().FileDescriptorProto {
		file := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(content, file); err != nil {
			return nil, err
		}
		set.File = append(set.File, file)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, err
	}
	described, err := files.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return nil, err
	}
	of, ok := described.(protoreflect.ServiceDescriptor)
	if !ok || of.Methods().ByName(protoreflect.Name(last)) == nil {
		return nil, fmt.Errorf("%s has no method %s", service, last)
	}
	return of.Methods().ByName(protoreflect.Name(last)), nil
}
