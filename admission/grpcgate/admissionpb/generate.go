package admissionpb

// protoc 3.21.12 or later, and protoc-gen-go in the version of google.golang.org/protobuf
// that go.mod names, in the PATH:
//
//go:generate protoc -I. --go_out=. --go_opt=module=github.com/headgate-go/headgate/admission/grpcgate/admissionpb headgate/v1/admission.proto
//go:generate protoc -I. -Iinternal/shoppb --go_out=internal/shoppb --go_opt=module=github.com/headgate-go/headgate/admission/grpcgate/admissionpb/internal/shoppb shop.proto broken.proto
