package priority

import (
	"fmt"
	"strings"
)

// Level is the rank of a piece of work. The zero value is Normal, so that work
// nobody thought about is neither protected nor first to go. Levels compare with
// < and >. A Level is a plain value and safe for concurrent use.
type Level int8

// The four levels, least important first.
const (
	Batch    Level = iota - 1 // may always be told to come back later
	Normal                    // the default
	High                      // a person is waiting for it
	Critical                  // the service is down without it
)

// Count is the number of levels. Arrays of this length are indexed by
// [Level.Index].
const Count = 4

var names = [Count]string{"batch", "normal", "high", "critical"}

// All returns the levels, least important first: All()[l.Index()] is l.
func All() [Count]Level { return [Count]Level{Batch, Normal, High, Critical} }

// Index returns 0 for Batch up to Count-1 for Critical. An invalid level counts
// as the nearest valid one, so that an index is always safe to use.
func (l Level) Index() int { return int(min(max(l, Batch), Critical) - Batch) }

// Valid reports whether l is one of the four levels.
func (l Level) Valid() bool { return l >= Batch && l <= Critical }

// String returns the name that [Parse] reads, or "level(n)" for an invalid level.
func (l Level) String() string {
	if !l.Valid() {
		return fmt.Sprintf("level(%d)", int8(l))
	}
	return names[l.Index()]
}

// Parse reads a level's name in any case, surrounding spaces ignored. Numbers,
// lists, the empty string and anything else yield Normal and false: text from a
// client never becomes the top level by accident. Its cost is bounded whatever
// the length of s.
func Parse(s string) (Level, bool) {
	s = strings.TrimSpace(s)
	for i, name := range names {
		if strings.EqualFold(s, name) {
			return All()[i], true
		}
	}
	return Normal, false
}

// MarshalText writes the level's name. An invalid level is an error.
func (l Level) MarshalText() ([]byte, error) {
	if !l.Valid() {
		return nil, fmt.Errorf("priority: invalid level %d", int8(l))
	}
	return []byte(l.String()), nil
}

// UnmarshalText reads a level's name, for policy files. Unknown names are an error.
func (l *Level) UnmarshalText(text []byte) error {
	got, ok := Parse(string(text))
	if !ok {
		return fmt.Errorf("priority: unknown level %q (want batch, normal, high or critical)", text)
	}
	*l = got
	return nil
}
