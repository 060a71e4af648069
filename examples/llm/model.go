package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
)

// width is how many answers the model generates at once; others wait inside of it.
const width = 8

// model simulates a model server in the shape of OpenAI's API.
type model struct{ slots chan struct{} }

func newModel() *model { return &model{slots: make(chan struct{}, width)} }

// step is how long a token takes: alone 5 ms, and 10 ms with the batch full.
func (m *model) step() time.Duration {
	return 5 * time.Millisecond * time.Duration(width+len(m.slots)) / width
}

// ServeHTTP streams as many tokens as were asked for, then what it took.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c chat
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestBody)).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case m.slots <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	defer func() { <-m.slots }()

	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	for range c.longest() {
		select {
		case <-time.After(m.step()):
		case <-r.Context().Done():
			return
		}
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"word "}}]}`+"\n\n")
		if flush() != nil {
			return
		}
	}
	prompt := c.tokens()
	fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n",
		prompt, c.longest(), prompt+c.longest())
	fmt.Fprint(w, "data: [DONE]\n\n")
	flush()
}

// tokens is how many the model makes of the prompt: digits are a token each, so the
// gateway's estimate of numbers is short.
func (c *chat) tokens() (n int) {
	for _, m := range c.Messages {
		digits := strings.Count(strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return '0'
			}
			return r
		}, m.Content), "0")
		n += digits + (len(m.Content)-digits)/4 + 1
	}
	return n
}
