package store

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
)

// parseReply reads the script's answer. It believes nothing: what is not what the
// script writes is an error, not a grant.
func parseReply(text string) (rep account.Reply, now int64, err error) {
	f := strings.Fields(text)
	if len(f) != 10 || f[0] != "ok" {
		return rep, 0, fmt.Errorf("redisrate: reply %.40q is not the script's", text)
	}
	p := parser{}
	rep.Granted, rep.Before = int(p.int(f[1])), p.int(f[2])
	rep.Limit = account.Limit{Rate: p.float(f[3]), Burst: int(p.int(f[4])), Version: p.int(f[8])}
	rep.Multiplier = float64(p.int(f[5])) / account.Micro
	rep.Pause = time.Duration(p.int(f[6])) * time.Microsecond
	rep.Epoch, now = p.int(f[7]), p.int(f[9])
	if p.err == nil && (rep.Granted < 0 || !(rep.Limit.Rate > 0) || rep.Limit.Burst < 1 || !(rep.Multiplier > 0)) {
		p.err = fmt.Errorf("redisrate: reply %.80q makes no sense", text)
	}
	return rep, now, p.err
}

// parser keeps the first error of several numbers.
type parser struct{ err error }

func (p *parser) int(s string) int64 {
	v, err := strconv.ParseInt(s, 10, 64)
	p.keep(err)
	return v
}

func (p *parser) float(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	p.keep(err)
	return v
}

func (p *parser) keep(err error) {
	if p.err == nil && err != nil {
		p.err = fmt.Errorf("redisrate: reply: %w", err)
	}
}
