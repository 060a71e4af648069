package redisrate

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"
)

// Why says what was wrong with the store's last answer. The list is closed, so
// that it may label a metric.
type Why uint8

// What can be wrong with a store.
const (
	WhyNothing  Why = iota // it answers
	WhyTimeout             // no answer in time
	WhyRefused             // no connection
	WhyLost                // the connection broke
	WhyReadOnly            // a replica, or a primary that lost its rank
	WhyLoading             // it is reading its data from disk
	WhyMemory              // it may not grow: maxmemory with noeviction
	WhyCluster             // no primary for the key's slot
	WhyAuth                // credentials or permissions
	WhyLate                // it ran the call long after it was sent
	WhyError               // any other error answer

	// WhyCount is the number of reasons, for arrays indexed by Why.
	WhyCount = int(WhyError) + 1
)

var whyNames = [WhyCount]string{
	"", "timeout", "refused", "lost", "readonly", "loading", "memory", "cluster", "auth", "late", "error",
}

// String returns the reason's name in metrics and logs; WhyNothing has none.
func (w Why) String() string {
	if int(w) >= WhyCount {
		return "unknown"
	}
	return whyNames[w]
}

var errLate = errors.New("redisrate: the call ran too late")

var answers = []struct {
	prefix string
	why    Why
}{
	{"READONLY", WhyReadOnly}, {"LOADING", WhyLoading}, {"OOM", WhyMemory}, {"MISCONF", WhyMemory},
	{"CLUSTERDOWN", WhyCluster}, {"MOVED", WhyCluster}, {"ASK", WhyCluster}, {"TRYAGAIN", WhyCluster},
	{"MASTERDOWN", WhyCluster}, {"NOAUTH", WhyAuth}, {"WRONGPASS", WhyAuth}, {"NOPERM", WhyAuth},
}

// whyOf sorts an error of a call.
func whyOf(err error) Why {
	var op *net.OpError
	switch {
	case err == nil:
		return WhyNothing
	case errors.Is(err, errLate):
		return WhyLate
	case fromServer(err):
		for _, a := range answers {
			if redis.HasErrorPrefix(err, a.prefix) {
				return a.why
			}
		}
		return WhyError
	case isTimeout(err):
		return WhyTimeout
	case errors.As(err, &op) && op.Op == "dial":
		return WhyRefused
	}
	return WhyLost
}

func fromServer(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}
