package gauntlet

import (
	"time"

	"github.com/headgate-go/headgate/shed"
)

// tap hands a law to the core and keeps its moves.
type tap struct {
	config shed.Limit
	law    shed.Law
	epoch  time.Time
	moves  []Move
}

// tapped is a tap seen as a law.
type tapped tap

// Move is one step of a law.
type Move struct {
	At time.Duration
	shed.Step
}

func (t *tap) New() (shed.Law, error) {
	law, err := t.config.New()
	t.law = law
	return (*tapped)(t), err
}

func (t *tapped) Limit() int { return t.law.Limit() }

func (t *tapped) Note(now time.Time, load shed.Load) shed.Step {
	return t.keep(now, t.law.Note(now, load))
}

func (t *tapped) Done(now time.Time, load shed.Load, s shed.Sample) shed.Step {
	return t.keep(now, t.law.Done(now, load, s))
}

func (t *tapped) keep(now time.Time, s shed.Step) shed.Step {
	if s.Moved() {
		t.moves = append(t.moves, Move{now.Sub(t.epoch), s})
	}
	return s
}
