package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A client sends one chat after another, with a pause between the ends and beginnings.
type client struct {
	key    string
	many   int // at once
	answer int // tokens of each
	prompt string
	pause  time.Duration
	leaves int // after so many tokens of an answer; 0: stays
}

// clients are those of the story: who pays for much and asks for a little more, a free
// one that does as it should, one with long answers, one that stops reading, and one
// whose prompts are numbers.
var clients = []client{
	{key: "gold-acme", many: 4, answer: 120, prompt: "Summarise this order for our support team.", pause: 200 * time.Millisecond},
	{key: "free-ann", many: 1, answer: 60, prompt: "What is a headgate?", pause: time.Second},
	{key: "free-bulk", many: 12, answer: 900, prompt: "Write all you know about rivers.", pause: 50 * time.Millisecond},
	{key: "free-leaves", many: 2, answer: 900, prompt: "Write a novel.", pause: 500 * time.Millisecond, leaves: 20},
	{key: "free-sums", many: 2, answer: 40, prompt: strings.Repeat("31415926535 ", 20), pause: time.Second},
}

// A call is one request and what came of it.
type call struct {
	client string
	at     time.Duration // since the load began
	first  time.Duration // until the first token; 0: none came
	tokens int           // that the model worked for: of the prompt and of the answer
	short  int           // by how much the estimate was short
	status int           // 0: no answer
}

// played is the load and all its calls.
type played struct {
	length time.Duration
	calls  []call
}

// play sends the load at a gateway for so long.
func play(to *http.Client, gateway string, length time.Duration) *played {
	p := &played{length: length}
	ctx, stop := context.WithTimeout(context.Background(), length)
	defer stop()
	start := time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, c := range clients {
		for range c.many {
			all.Go(func() {
				for ctx.Err() == nil {
					made := c.call(ctx, to, gateway, start)
					mu.Lock()
					p.calls = append(p.calls, made)
					mu.Unlock()
					sleep(ctx, c.pause)
				}
			})
		}
	}
	all.Wait()
	return p
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// call sends one chat and reads its answer as it comes.
func (c *client) call(ctx context.Context, to *http.Client, gateway string, start time.Time) call {
	begun := time.Now()
	made := call{client: c.key, at: begun.Sub(start)}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	var asks chat
	body := fmt.Sprintf(`{"stream":true,"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, c.answer, c.prompt)
	_ = json.Unmarshal([]byte(body), &asks)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, gateway+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := to.Do(req)
	if err != nil {
		return made
	}
	defer resp.Body.Close()
	if made.status = resp.StatusCode; made.status != http.StatusOK {
		io.Copy(io.Discard, io.LimitReader(resp.Body, 4096))
		return made
	}
	made.tokens = asks.tokens()
	made.short = max(made.tokens-(asks.prompt()), 0)
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if !strings.Contains(lines.Text(), `"content"`) {
			continue
		}
		if made.tokens++; made.first == 0 {
			made.first = time.Since(begun)
		}
		if c.leaves > 0 && made.tokens >= asks.tokens()+c.leaves {
			break
		}
	}
	return made
}

// print tells who was served, who waited, and whose budget was right.
func (p *played) print(w io.Writer) {
	fmt.Fprintf(w, "%-12s %8s %8s %8s %12s %16s %8s\n", "", "served", "429", "503", "first token", "tokens, budget", "")
	for _, c := range clients {
		s := p.of(c.key)
		verdict := "kept"
		if s.worst > s.allowed {
			verdict = "broken"
		}
		fmt.Fprintf(w, "%-12s %8d %8d %8d %12s %7d of %5d %8s\n", c.key, s.served, s.limited, s.full,
			s.median().Round(time.Millisecond), s.worst, s.allowed, verdict)
	}
}

// summary is what came of one client's calls.
type summary struct {
	served, limited, full int
	waits                 []time.Duration // until the first token
	worst, allowed        int             // tokens of the minute in which it took most, and what its plan allows there
}

// of sums up one client's calls. A plan allows in any stretch of time its burst and what
// comes back meanwhile; what estimates were short of comes on top.
func (p *played) of(key string) (s summary) {
	var mine []call
	for _, c := range p.calls {
		switch {
		case c.client != key:
		case c.status == http.StatusTooManyRequests:
			s.limited++
		case c.status == http.StatusServiceUnavailable:
			s.full++
		case c.first > 0:
			s.served++
			s.waits = append(s.waits, c.first)
			mine = append(mine, c)
		}
	}
	name, _, _ := strings.Cut(key, "-")
	tier := plans[name].tier(plans[name].tokens)
	stretch := min(p.length, time.Minute)
	s.allowed = tier.Burst + int(float64(tier.Rate)*stretch.Seconds())
	for _, first := range mine {
		sum, short := 0, 0
		for _, c := range mine {
			if c.at >= first.at && c.at < first.at+stretch {
				sum, short = sum+c.tokens, short+c.short
			}
		}
		s.worst = max(s.worst, sum-short)
	}
	return s
}

func (s *summary) median() time.Duration {
	if len(s.waits) == 0 {
		return 0
	}
	slices.Sort(s.waits)
	return s.waits[len(s.waits)/2]
}
