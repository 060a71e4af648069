// Package connectgate puts a [admission.Gate] in front of a connect-go server, for all
// three protocols that it speaks:
//
//	gate := admission.MustNew(admission.Options{ … })
//	path, handler := shopv1connect.NewShopHandler(shop, connect.WithInterceptors(connectgate.New(gate)))
//
// A call is a POST to its procedure, "/shop.v1.Shop/Pay": Options.Routes of the gate ranks
// it, Options.Identify reads its headers. Its deadline is the one that connect reads from
// the header of the protocol. What is refused is an error of connect: RESOURCE_EXHAUSTED
// for a limit of the caller's own and UNAVAILABLE for lack of capacity, with
// google.rpc.RetryInfo, Retry-After and grpc-retry-pushback-ms where another try helps,
// and the reason in google.rpc.ErrorInfo and Headgate-Reason.
//
// An interceptor runs when the message of a unary call has been read. To refuse before
// that, put the gate itself around the handler instead, as HTTP middleware, with [Refuse]
// as Options.HTTP.Refuse and a Deadline that reads Connect-Timeout-Ms and grpc-timeout.
// The price: of how calls of the gRPC protocols and streams end it sees the status of
// HTTP, which is 200 for failures too, and so counts those as served.
//
// On the other side, [Client] paces the calls that a client makes.
package connectgate
