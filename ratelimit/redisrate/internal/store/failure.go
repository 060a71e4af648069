package store

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
)

// ErrLate is the error of a call that the client sent after its time.
var ErrLate = errors.New("redisrate: the call ran too late")

var answers = []struct {
	prefix string
	why    account.Why
}{
	{"READONLY", account.WhyReadOnly}, {"LOADING", account.WhyLoading}, {"OOM", account.WhyMemory}, {"MISCONF", account.WhyMemory},
	{"CLUSTERDOWN", account.WhyCluster}, {"MOVED", account.WhyCluster}, {"ASK", account.WhyCluster}, {"TRYAGAIN", account.WhyCluster},
	{"MASTERDOWN", account.WhyCluster}, {"NOAUTH", account.WhyAuth}, {"WRONGPASS", account.WhyAuth}, {"NOPERM", account.WhyAuth},
}

// WhyOf sorts an error of a call.
func WhyOf(err error) account.Why {
	var op *net.OpError
	var untrusted *tls.CertificateVerificationError
	switch {
	case err == nil:
		return account.WhyNothing
	case errors.Is(err, ErrLate):
		return account.WhyLate
	case fromServer(err):
		for _, a := range answers {
			if redis.HasErrorPrefix(err, a.prefix) {
				return a.why
			}
		}
		return account.WhyError
	case errors.As(err, &op) && op.Op == "dial", errors.As(err, &untrusted):
		return account.WhyRefused // before a time-out: a call that was never sent cannot have run
	case isTimeout(err):
		return account.WhyTimeout
	}
	return account.WhyLost
}

func fromServer(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}
