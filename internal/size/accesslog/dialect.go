package accesslog

import (
	"strings"
	"time"
)

// trait is a set of keys by which programs are told apart.
type trait uint16

const (
	hasTS trait = 1 << iota
	hasMsg
	hasMessage
	hasTime
	hasPid
	hasTraefik
	hasEnvoy
	hasNginx
	hasEcho
)

// traits are exact spellings: what stands in a program's source, not what people
// write.
var traits = map[string]trait{
	"ts": hasTS, "msg": hasMsg, "message": hasMessage, "time": hasTime,
	"pid": hasPid, "hostname": hasPid,
	"DownstreamStatus": hasTraefik, "OriginDuration": hasTraefik, "RequestCount": hasTraefik,
	"response_flags": hasEnvoy, "upstream_service_time": hasEnvoy, "response_code_details": hasEnvoy,
	"time_iso8601": hasNginx, "time_local": hasNginx, "msec": hasNginx, "request_time": hasNginx, "body_bytes_sent": hasNginx,
	"latency_human": hasEcho,
}

// in returns a unit whatever the value.
func in(unit time.Duration) func(string) time.Duration {
	return func(string) time.Duration { return unit }
}

// What a bare number tells of its unit by the way it is written.
var (
	nginxSeconds = func(v string) time.Duration { return when(isMillis([]byte(v)), time.Second) }
	wholeNanos   = func(v string) time.Duration { return when(isWhole(v), time.Nanosecond) }
	partsSeconds = func(v string) time.Duration { return when(strings.ContainsAny(v, ".eE"), time.Second) }
	unknown      = in(0)
)

func when(ok bool, unit time.Duration) time.Duration {
	if ok {
		return unit
	}
	return 0
}

// dialect tells which program wrote the line, and in which unit it writes times;
// zero: that cannot be known.
func (f *found) dialect() (string, func(value string) time.Duration) {
	level, has := text(f.value[levelKey]), f.traits
	number := isWhole(level)
	switch {
	case f.pairs && upper(level):
		return "slog text", unknown
	case f.pairs:
		return "key=value", unknown
	case has&hasTraefik != 0:
		return "Traefik JSON", in(time.Nanosecond)
	case has&hasEnvoy != 0 && f.value[startKey] != nil:
		return "Envoy or Istio JSON", in(time.Millisecond)
	case strings.HasPrefix(text(f.value[loggerKey]), "http.log"):
		return "Caddy", in(time.Second)
	case has&hasEcho != 0:
		return "echo", wholeNanos
	case number && has&hasPid != 0:
		return "pino", f.pino()
	case has&hasTS != 0 && level != "":
		return "zap", partsSeconds
	case has&hasNginx != 0:
		return "nginx JSON", nginxSeconds
	case level != "" && upper(level) && has&hasMsg != 0 && has&hasTime != 0:
		return "slog JSON", wholeNanos
	case level != "" && !number && !upper(level) && has&hasMsg == 0 && has&hasTime != 0:
		return "zerolog", in(time.Millisecond)
	}
	return "JSON", unknown
}

// pino returns the unit of responseTime, the only one that pino-http writes itself.
func (f *found) pino() func(string) time.Duration {
	if f.key[latencyKey] == "responseTime" {
		return in(time.Millisecond)
	}
	return unknown
}
