package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/headgate-go/headgate/admission"
)

// meter reads along while an answer passes, and settles what it took when it is closed:
// by the usage that the last event states, or by the pieces that were sent when the
// stream was cut. It keeps one line at most.
type meter struct {
	io.ReadCloser
	chat *chat
	ctx  context.Context
	usage
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.write(p[:n])
	return n, err
}

func (m *meter) Close() error {
	admission.ChargeIn(m.ctx, "tokens", m.total(m.chat))
	return m.ReadCloser.Close()
}

// usage is what a stream of events says about itself so far.
type usage struct {
	line   []byte
	skip   bool // the line is longer than any that matters
	pieces int
	stated int // 0: not yet
}

const longestLine = 64 << 10

// write takes the next bytes of the stream, wherever they were cut.
func (u *usage) write(p []byte) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		piece := p
		if end >= 0 {
			piece, p = p[:end], p[end+1:]
		} else {
			p = nil
		}
		if u.skip = u.skip || len(u.line)+len(piece) > longestLine; u.skip {
			u.line = u.line[:0] // its beginning is no event
		} else {
			u.line = append(u.line, piece...)
		}
		if end >= 0 {
			u.event(u.line)
			u.line, u.skip = u.line[:0], false
		}
	}
}

// event counts a piece of the answer, or takes note of the usage.
func (u *usage) event(line []byte) {
	data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
	if !ok {
		return
	}
	var e struct {
		Choices []struct {
			Delta struct {
				Content string `json:"content"`
			} `json:"delta"`
		} `json:"choices"`
		Usage *struct {
			Total int `json:"total_tokens"`
		} `json:"usage"`
	}
	if json.Unmarshal(data, &e) != nil {
		return // "[DONE]", or nothing that can be read
	}
	for _, c := range e.Choices {
		if c.Delta.Content != "" {
			u.pieces++
		}
	}
	if e.Usage != nil && e.Usage.Total > 0 {
		u.stated = e.Usage.Total
	}
}

// total is what the request took. A model may state more than was asked for, but no
// more than a prompt and an answer can be: a number off the wire buys nobody's ruin.
func (u *usage) total(c *chat) int {
	if u.stated > 0 {
		return min(u.stated, longestBody+mostTokens)
	}
	return c.prompt() + u.pieces
}
