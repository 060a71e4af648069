package grpcgate_test

import (
	"context"
	"errors"
	"net/http"

	"github.com/headgate-go/headgate/admission"
)

var byKey = admission.APIKey("X-API-Key", func(_ context.Context, key string) (admission.Caller, bool) {
	return admission.Caller{Key: key}, true
})

func refuseAll(*http.Request) (admission.Caller, error) {
	return admission.Caller{}, errors.New("unknown")
}
