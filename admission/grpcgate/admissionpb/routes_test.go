package admissionpb_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/grpcgate"
	"github.com/headgate-go/headgate/admission/grpcgate/admissionpb"
	"github.com/headgate-go/headgate/admission/grpcgate/admissionpb/internal/shoppb"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

const shop = "/shop.v1.Shop/"

func routes(t *testing.T, files ...protoreflect.FileDescriptor) map[string]admission.Rule {
	t.Helper()
	all, err := admissionpb.Routes(files...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRoutesAreThoseOfTheProtoFile(t *testing.T) {
	want := []string{shop, shop + "Export", shop + "Pay", shop + "Ping", shop + "Watch"}
	if got := slices.Sorted(maps.Keys(routes(t, shoppb.File_shop_proto))); !slices.Equal(got, want) {
		t.Errorf("rules for %q, want %q", got, want)
	}
	all := routes(t)
	for _, pattern := range append(want, "/shop.v1.Broken/Both") {
		if _, ok := all[pattern]; !ok {
			t.Errorf("no rule for %q among those of the whole program", pattern)
		}
	}
}

// serve answers every method of the shop with what it is admitted as.
func serve(t *testing.T, gate *admission.Gate) *grpc.ClientConn {
	t.Helper()
	told := func(ctx context.Context) error {
		v, _ := admission.FromContext(ctx)
		left := time.Duration(0)
		if !v.Deadline.IsZero() {
			left = time.Until(v.Deadline).Round(time.Second)
		}
		return status.Error(codes.OutOfRange, fmt.Sprint(v.Level, " ", left))
	}
	desc := grpc.ServiceDesc{ServiceName: "shop.v1.Shop", HandlerType: (*any)(nil)}
	for _, name := range []string{"Search", "Pay", "Export", "Ping"} {
		desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			in := new(emptypb.Empty)
			if err := decode(in); err != nil {
				return nil, err
			}
			return intercept(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: shop + name}, func(ctx context.Context, _ any) (any, error) { return nil, told(ctx) })
		}})
	}
	g := grpcgate.New(gate, grpcgate.Options{})
	server := grpc.NewServer(grpc.UnaryInterceptor(g.Unary()))
	server.RegisterService(&desc, struct{}{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
	})
	return conn
}

func call(t *testing.T, conn *grpc.ClientConn, method string) *status.Status {
	t.Helper()
	return status.Convert(conn.Invoke(t.Context(), shop+method, &emptypb.Empty{}, &emptypb.Empty{}))
}

func TestCallsAreAdmittedAsTheProtoFileSays(t *testing.T) {
	gate, err := admission.New(admission.Options{
		Rate:   ratelimit.PerKey(0.001, 8),
		Pools:  map[string]admission.Pool{"reports": {Limit: shed.Fixed(4)}},
		Routes: routes(t, shoppb.File_shop_proto),
	})
	if err != nil {
		t.Fatal(err)
	}
	conn := serve(t, gate)
	for _, c := range []struct{ method, want string }{
		{"Search", fmt.Sprint(priority.High, " ", 0*time.Second)}, // its service's
		{"Pay", fmt.Sprint(priority.Critical, " ", 2*time.Second)},
		{"Export", fmt.Sprint(priority.Batch, " ", 0*time.Second)},
	} {
		if s := call(t, conn, c.method); s.Code() != codes.OutOfRange || s.Message() != c.want {
			t.Errorf("%s: %v, want %q", c.method, s, c.want)
		}
	}
	if s := call(t, conn, "Export"); s.Code() != codes.ResourceExhausted {
		t.Errorf("1 + 1 + 5 + 5 tokens of 8: %v", s)
	}
	if s := call(t, conn, "Ping"); s.Code() != codes.OutOfRange || gate.Stats().Count(shed.Exempt) != 1 {
		t.Errorf("an exempt method: %v", s)
	}
}

func TestWhatMakesNoSenseNamesMethodAndField(t *testing.T) {
	if _, err := admission.New(admission.Options{Routes: routes(t, shoppb.File_broken_proto)}); err == nil || !strings.Contains(err.Error(), "/shop.v1.Broken/Both") {
		t.Errorf("exempt and a cost: %v", err)
	}
	for field, a := range map[string]*admissionpb.Admission{
		"level":   {Level: 9},
		"cost":    {Cost: 1 << 31},
		"slots":   {Slots: 1 << 31},
		"cap":     {Cap: 1 << 31},
		"streams": {Streams: 1 << 31},
		"timeout": {Timeout: durationpb.New(-time.Second)},
	} {
		_, err := admissionpb.Routes(fileWith(t, a))
		if err == nil || !strings.Contains(err.Error(), "/bad.Service/Call: "+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// fileWith is a file with one method that has the option.
func fileWith(t *testing.T, a *admissionpb.Admission) protoreflect.FileDescriptor {
	t.Helper()
	options := &descriptorpb.MethodOptions{}
	proto.SetExtension(options, admissionpb.E_Admission, a)
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("bad.proto"), Package: proto.String("bad"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Service"), Method: []*descriptorpb.MethodDescriptorProto{
			{Name: proto.String("Call"), InputType: proto.String(".bad.M"), OutputType: proto.String(".bad.M"), Options: options},
		}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
