package sockets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// board plays every subject in every scenario and keeps what came of it.
type board struct {
	scenarios []Scenario
	subjects  []Subject
	passes    int
	seed      uint64
	progress  io.Writer
	program   func(context.Context, pass) *exec.Cmd
	command   string // the options as typed, for the page

	results map[cellKey][]*result
}

// cellKey names a scenario and a subject.
type cellKey struct{ scenario, subject string }

// overheadOfPass is what a pass takes beside its load, for the time that is left.
const overheadOfPass = 1500 * time.Millisecond

// play goes pass by pass, so that a drift of the machine's speed meets all subjects.
// An interrupt ends it; what is done is kept.
func (b *board) play(ctx context.Context) error {
	b.results = map[cellKey][]*result{}
	left := b.length()
	var failed []error
	for i := range b.scenarios {
		s := &b.scenarios[i]
		for n := range b.passes {
			for _, subject := range b.subjects {
				fmt.Fprintf(b.progress, "%s left  %s, pass %d of %d: %s\n", left.Round(time.Second), s.Name, n+1, b.passes, subject.Name)
				r, err := pass{subject, s, b.seed + uint64(n)}.play(ctx, b.program)
				if ctx.Err() != nil {
					return errors.Join(append(failed, errors.New("interrupted: what is shown was done before"))...)
				}
				if err != nil {
					failed = append(failed, fmt.Errorf("%s, %s: %w", s.Name, subject.Name, err))
				} else {
					key := cellKey{s.Name, subject.Name}
					b.results[key] = append(b.results[key], r)
				}
				left -= s.length() + overheadOfPass
			}
		}
	}
	return errors.Join(failed...)
}

func (b *board) length() (d time.Duration) {
	for i := range b.scenarios {
		d += time.Duration(b.passes*len(b.subjects)) * (b.scenarios[i].length() + overheadOfPass)
	}
	return d
}

// rows are those of all cells that were played.
func (b *board) rows() (all []Row) {
	all = []Row{}
	for i := range b.scenarios {
		for _, subject := range b.subjects {
			all = append(all, b.cell(&b.scenarios[i], subject)...)
		}
	}
	return all
}

// cell are the rows of one subject in one scenario; nil: it was not played.
func (b *board) cell(s *Scenario, subject Subject) []Row {
	if r := b.results[cellKey{s.Name, subject.Name}]; len(r) > 0 {
		return rows(subject, s, r)
	}
	return nil
}
