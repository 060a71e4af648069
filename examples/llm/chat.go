package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// chat is the part of a request that the gateway reads.
type chat struct {
	Messages []struct {
		Content string `json:"content"`
	} `json:"messages"`
	MaxTokens           int `json:"max_tokens"`
	MaxCompletionTokens int `json:"max_completion_tokens"` // the newer name of it
	N                   int `json:"n"`                     // answers; more than one is not sold here
}

const (
	longestBody = 256 << 10
	mostTokens  = 4096 // of one answer, whatever is asked for; also where nothing is asked
)

// estimate is what the request may take at most: its prompt, and the whole answer that it
// allows.
func (c *chat) estimate() int { return c.prompt() + c.longest() }

// prompt estimates the prompt: a token for four bytes, as English has.
func (c *chat) prompt() (n int) {
	for _, m := range c.Messages {
		n += len(m.Content)/4 + 1
	}
	return n
}

// longest is how long its answer may become.
func (c *chat) longest() int {
	if n := max(c.MaxTokens, c.MaxCompletionTokens); n >= 1 && n <= mostTokens {
		return n
	}
	return mostTokens
}

type chatKey struct{}

// parsed reads the request's body, bounded, before the gate: what is asked for decides
// what it costs. No slot is held meanwhile. The body is there again for the model.
func parsed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longestBody))
		var long *http.MaxBytesError
		if errors.As(err, &long) {
			http.Error(w, "the request is too long", http.StatusRequestEntityTooLarge)
			return
		}
		var c chat
		if err != nil || json.Unmarshal(body, &c) != nil {
			http.Error(w, "not a chat request", http.StatusBadRequest)
			return
		}
		if c.N > 1 {
			http.Error(w, "n is at most 1: one answer a request", http.StatusBadRequest)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), chatKey{}, &c))
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// asked returns what parsed found.
func asked(r *http.Request) *chat { return r.Context().Value(chatKey{}).(*chat) }
