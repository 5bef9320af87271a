package main

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	_ "google.golang.org/grpc/encoding/proto"
)

// versionHeader says of each answer who gave it.
const versionHeader = "kre-version"

// frame is a message as its bytes: what is in it, the nodes know.
type frame struct{ bytes []byte }

// whole leaves frames as they are, and treats all else as gRPC does.
var whole = codec{encoding.GetCodecV2("proto")}

type codec struct{ encoding.CodecV2 }

func (c codec) Marshal(value any) (mem.BufferSlice, error) {
	if of, ok := value.(*frame); ok {
		return mem.BufferSlice{mem.SliceBuffer(of.bytes)}, nil
	}
	return c.CodecV2.Marshal(value)
}

func (c codec) Unmarshal(data mem.BufferSlice, value any) error {
	if of, ok := value.(*frame); ok {
		of.bytes = data.Materialize()
		return nil
	}
	return c.CodecV2.Unmarshal(data, value)
}

// calls answers all methods that a description has.
type calls struct {
	described *description
	flow      *flow
	given     environment
}

func (c calls) handle(_ any, stream grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(stream)
	method := c.described.methods[name]
	if method == nil {
		return status.Errorf(codes.Unimplemented, "version %s has no method %s", c.given.version, name)
	}
	of, ok := c.given.subjects[string(method.Name())]
	if !ok || method.IsStreamingClient() || method.IsStreamingServer() {
		return status.Errorf(codes.Unimplemented, "no workflow of version %s answers %s", c.given.version, name)
	}
	if err := stream.SetHeader(metadata.Pairs(versionHeader, c.given.version)); err != nil {
		return err
	}
	request := &frame{}
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(stream.Context(), c.given.timeout)
	defer cancel()
	asked := &anypb.Any{TypeUrl: typeURL(string(method.Input().FullName())), Value: request.bytes}
	body, err := proto.Marshal(asked)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	body, err = c.flow.ask(ctx, of.Output, body)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, err.Error())
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	case err != nil:
		return status.Error(codes.Internal, err.Error())
	}
	answer := &anypb.Any{}
	if err := proto.Unmarshal(body, answer); err != nil {
		return status.Errorf(codes.Internal, "the answer is no google.protobuf.Any: %v", err)
	}
	if wanted := typeURL(string(method.Output().FullName())); answer.TypeUrl != wanted {
		return status.Errorf(codes.Internal, "the answer is of type %q, and %s returns %q", answer.TypeUrl, name, wanted)
	}
	return stream.SendMsg(&frame{answer.Value})
}

func typeURL(name string) string { return "type.googleapis.com/" + name }
