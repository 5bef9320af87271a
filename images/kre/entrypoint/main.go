// A stand-in for the product's entrypoint: it serves any service by gRPC, and hands calls to a version's workflows by NATS.
//
// It reads what the product's reads: the environment, the file of subjects, and the .proto of the service, from source. Its
// messages are its own (see flow.go), and those of images/kre/runner.
//
//	entrypoint [serve [-proto FOLDER] [-listen ADDRESS]]   serves until it is told to end
//	entrypoint call [OPTIONS] ADDRESS METHOD [JSON]        calls a method, found by reflection; see caller.go
//	entrypoint idle                                        waits until it is told to end, for whoever calls by exec
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

const (
	// leaving is how long calls are still taken after the end was asked for: until then Services may lead here.
	leaving = 5 * time.Second

	// connectionAge is after how long a client connects anew, and so gets to whoever is published by then.
	connectionAge = 10 * time.Second
)

func main() {
	ending, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var err error
	switch command := append(os.Args[1:], "serve")[0]; command {
	case "serve":
		err = serve(ending, os.Args[min(2, len(os.Args)):])
	case "call":
		err = callAndTell(ending, os.Args[2:])
	case "idle":
		<-ending.Done()
	default:
		err = fmt.Errorf("there is no command %q: give serve, call or idle", command)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "entrypoint:", err)
		os.Exit(1)
	}
}

// serve answers calls until the end is asked for, and then those that have begun.
func serve(ending context.Context, words []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	protos := flags.String("proto", "/proto", "the folder with the service's description")
	address := flags.String("listen", ":9000", "where calls come in")
	if err := flags.Parse(words); err != nil {
		return err
	}
	given, err := fromEnvironment()
	if err != nil {
		return err
	}
	described, err := describe(ending, *protos)
	if err != nil {
		return err
	}
	flow, err := connect(given)
	if err != nil {
		return err
	}
	defer flow.close()
	server := grpc.NewServer(
		grpc.ForceServerCodecV2(whole),
		grpc.UnknownServiceHandler(calls{described, flow, given}.handle),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: connectionAge, MaxConnectionAgeGrace: given.timeout}),
	)
	described.reflected(server)
	// Only now: who sees that something listens takes it for ready.
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Printf("version %s answers %d methods\n", given.version, len(described.methods))
	select {
	case err := <-failed:
		return err
	case <-ending.Done():
	}
	time.Sleep(leaving)
	server.GracefulStop()
	return nil
}
