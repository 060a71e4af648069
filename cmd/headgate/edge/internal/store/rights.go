package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// calls are what the shared limits do in Redis, each as a script on one key, so that a
// right that lacks is named by the server.
var calls = []struct{ name, script string }{
	{"time", "return redis.call('TIME')"},
	{"get", "return redis.call('GET', KEYS[1])"},
	{"exists", "return redis.call('EXISTS', KEYS[1])"},
	{"set", "return redis.call('SET', KEYS[1], '0', 'PX', 1000)"},
	{"pexpire", "return redis.call('PEXPIRE', KEYS[1], 1000)"},
	{"zadd", "return redis.call('ZADD', KEYS[2], 1, 'a')"},
	{"zcard", "return redis.call('ZCARD', KEYS[2])"},
	{"zscore", "return redis.call('ZSCORE', KEYS[2], 'a')"},
	{"zrangebyscore", "return redis.call('ZRANGEBYSCORE', KEYS[2], 0, 1)"},
	{"zremrangebyscore", "return redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, 1)"},
	{"zrem", "return redis.call('ZREM', KEYS[2], 'a')"},
	{"pexpire of a set", "return redis.call('PEXPIRE', KEYS[2], 1000)"},
}

// Probe connects to each Redis that the limits use, runs every command that they run,
// and returns what is wrong, one line each. The keys it writes expire within a second.
func (st *Store) Probe(ctx context.Context) (wrong []string) {
	st.mu.Lock()
	clients := make(map[string]redis.UniversalClient, len(st.clients))
	for address, c := range st.clients {
		clients[address] = c
	}
	st.mu.Unlock()
	for address, c := range clients {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		for _, line := range probe(ctx, c) {
			wrong = append(wrong, Redacted(address)+": "+line)
		}
		cancel()
	}
	return wrong
}

func probe(ctx context.Context, c redis.UniversalClient) (wrong []string) {
	if err := c.Ping(ctx).Err(); err != nil && !denied(err) {
		return []string{err.Error()}
	}
	name := "headgate:v1:{check:" + rand.Text() + "}"
	keys := []string{name + ":b", name + ":peers"}
	said := map[string]bool{}
	for _, call := range calls {
		err := c.Eval(ctx, call.script, keys).Err()
		if err == nil || err == redis.Nil {
			continue
		}
		if line := fmt.Sprintf("%s: %v", call.name, err); !said[err.Error()] {
			said[err.Error()] = true
			wrong = append(wrong, line)
		}
	}
	if err := c.EvalSha(ctx, strings.Repeat("0", 40), keys).Err(); err != nil && denied(err) {
		wrong = append(wrong, fmt.Sprintf("evalsha: %v", err))
	}
	return wrong
}

func denied(err error) bool { return strings.Contains(err.Error(), "NOPERM") }

// Redacted is an address without its passwords.
func Redacted(address string) string {
	address = sentinelPassword.ReplaceAllString(address, "${1}…")
	scheme, rest, ok := strings.Cut(address, "://")
	at := strings.LastIndexByte(rest, '@')
	if !ok || at < 0 {
		return address
	}
	user, _, _ := strings.Cut(rest[:at], ":")
	return scheme + "://" + user + ":…" + rest[at:]
}

var sentinelPassword = regexp.MustCompile(`(sentinel_password=)[^&#]*`)
