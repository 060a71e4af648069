package grpcgate

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/headgate-go/headgate/admission"
)

// gatedStream is a stream whose context is the gate's, and which says where its answer
// begins.
type gatedStream struct {
	grpc.ServerStream
	ctx    context.Context
	permit admission.Permit
	once   sync.Once
}

func (s *gatedStream) Context() context.Context { return s.ctx }

func (s *gatedStream) SendHeader(md metadata.MD) error {
	s.once.Do(s.permit.Streaming)
	return s.ServerStream.SendHeader(md)
}

func (s *gatedStream) SendMsg(m any) error {
	s.once.Do(s.permit.Streaming)
	return s.ServerStream.SendMsg(m)
}

var _ grpc.ServerStream = (*gatedStream)(nil)
