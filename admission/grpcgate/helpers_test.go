package grpcgate_test

import (
	"context"
	"errors"
	"net/http"

	"github.com/headgate-go/headgate/admission/caller"
)

var byKey = caller.APIKey("X-API-Key", func(_ context.Context, key string) (caller.Caller, bool) {
	return caller.Caller{Key: key}, true
})

func refuseAll(*http.Request) (caller.Caller, error) {
	return caller.Caller{}, errors.New("unknown")
}
