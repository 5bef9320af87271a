package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// description is all that the .proto files of a folder say.
type description struct {
	files   *protoregistry.Files
	methods map[string]protoreflect.MethodDescriptor // by what gRPC calls them: /SERVICE/METHOD
}

// describe reads the .proto files that lie in the folder; those of Google's that they may import are known.
func describe(ctx context.Context, folder string) (*description, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.proto"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no .proto file, so there is nothing to serve", folder)
	}
	for n, name := range names {
		names[n] = filepath.Base(name)
	}
	sources := &protocompile.SourceResolver{ImportPaths: []string{folder}}
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(sources)}
	compiled, err := compiler.Compile(ctx, names...)
	if err != nil {
		return nil, err
	}
	found := &description{new(protoregistry.Files), map[string]protoreflect.MethodDescriptor{}}
	for _, file := range compiled {
		if err := found.add(file); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// add takes in a file, and what it imports.
func (d *description) add(file protoreflect.FileDescriptor) error {
	if _, err := d.files.FindFileByPath(file.Path()); err == nil {
		return nil
	}
	if err := d.files.RegisterFile(file); err != nil {
		return err
	}
	for n := range file.Imports().Len() {
		if err := d.add(file.Imports().Get(n).FileDescriptor); err != nil {
			return err
		}
	}
	for n := range file.Services().Len() {
		service := file.Services().Get(n)
		for m := range service.Methods().Len() {
			method := service.Methods().Get(m)
			d.methods[fmt.Sprintf("/%s/%s", service.FullName(), method.Name())] = method
		}
	}
	return nil
}

// GetServiceInfo names the services, for who asks by reflection.
func (d *description) GetServiceInfo() map[string]grpc.ServiceInfo {
	found := map[string]grpc.ServiceInfo{}
	for _, method := range d.methods {
		found[string(method.Parent().FullName())] = grpc.ServiceInfo{}
	}
	return found
}

// reflected answers by gRPC's reflection what the service is.
func (d *description) reflected(server grpc.ServiceRegistrar) {
	options := reflection.ServerOptions{Services: d, DescriptorResolver: d.files}
	reflectionpb.RegisterServerReflectionServer(server, reflection.NewServerV1(options))
}
