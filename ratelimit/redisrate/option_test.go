package redisrate

import (
	"log/slog"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// option is one setting of a test's limiter; with joins several.
type option func(*Options)

func with(all ...option) (o Options) {
	for _, set := range all {
		set(&o)
	}
	return o
}

func name(name string) option          { return func(o *Options) { o.Name = name } }
func version(v int64) option           { return func(o *Options) { o.Version = v } }
func onOutage(p ratelimit.Fail) option { return func(o *Options) { o.OnOutage = p } }
func minPeers(n int) option            { return func(o *Options) { o.MinPeers = n } }
func portion(p float64) option         { return func(o *Options) { o.Portion = p } }
func ahead(d time.Duration) option     { return func(o *Options) { o.Ahead, o.NoLeases = d, d == 0 } }
func maxKeys(n int) option             { return func(o *Options) { o.MaxKeys = n } }
func logger(l *slog.Logger) option     { return func(o *Options) { o.Logger = l } }
func timeouts(request, call time.Duration) option {
	return func(o *Options) { o.RequestTimeout, o.CallTimeout = request, call }
}
