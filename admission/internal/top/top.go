// Package top knows which callers and which routes have most of something, in bounded
// space.
package top

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/headgate-go/headgate/admission/caller"
)

const (
	sets     = 32
	ways     = 4
	shown    = 16
	window   = 30 * time.Second
	aliasMax = 64
)

// List knows which callers have most of something, in bounded space and time: a caller has its place
// in one of many small sets. When a set is full, the one with the lowest count gives
// its place to a newcomer, who takes the count over as its possible error, so that
// a caller with a quarter of a set's refusals is in it (Metwally, Agrawal, El
// Abbadi: space-saving). It is safe for concurrent use.
type List struct {
	mu    sync.Mutex
	began time.Time // the current window
	sets  [sets][ways]place
}

// place holds counts of the current window and of the one before.
type place struct {
	id           uint64
	space, alias string
	now, last    uint64
	over         uint64 // at most so much of them was another caller's
}

func (c *place) count() uint64 { return c.now + c.last }

// New returns an empty list.
func New() *List { return new(List) }

// Note counts n more of the caller's.
func (l *List) Note(now time.Time, c caller.Caller, n uint64) {
	id := digest(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turnLocked(now)
	set := &l.sets[id%sets]
	least := &set[0]
	for i := range set {
		if set[i].id == id {
			set[i].now += n
			return
		}
		if set[i].count() < least.count() {
			least = &set[i]
		}
	}
	least.id, least.space, least.alias = id, c.Space, c.Alias
	least.over = least.count()
	least.now += n
}

// turnLocked begins a new window when the current one is over.
func (l *List) turnLocked(now time.Time) {
	age := now.Sub(l.began)
	if age < window {
		return
	}
	l.began = now
	for i := range l.sets {
		for j := range l.sets[i] {
			c := &l.sets[i][j]
			if c.now == 0 || age >= 2*window {
				*c = place{}
			}
			c.last, c.now, c.over = c.now, 0, min(c.over, c.now)
		}
	}
}

// Entry is a caller and what was counted for it in the last half to one minute; never
// more than that.
type Entry struct {
	Alias string
	Count uint64
}

// Top returns those with most, the most first.
func (l *List) Top(now time.Time) (top []Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turnLocked(now)
	for i := range l.sets {
		for _, c := range l.sets[i] {
			if n := c.count() - c.over; n > 0 {
				top = append(top, Entry{Alias: aliasOf(c.alias, c.space, c.id), Count: n})
			}
		}
	}
	slices.SortFunc(top, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Alias, b.Alias))
	})
	return top[:min(len(top), shown)]
}

// seed is a secret of this process, so that short keys, such as addresses, cannot be found
// by trying. It is one for all lists: a caller has the same name in each.
var seed = maphash.MakeSeed()

func digest(c caller.Caller) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(c.Space)
	h.WriteByte(0)
	h.WriteString(c.Key)
	return h.Sum64()
}

// Alias returns the caller's own alias, cut to 64 bytes, or else a digest of its key.
func Alias(c caller.Caller) string { return aliasOf(c.Alias, c.Space, digest(c)) }

func aliasOf(alias, space string, digest uint64) string {
	if alias == "" {
		kind, _, _ := strings.Cut(space, ":")
		return strings.TrimLeft(fmt.Sprintf("%s %08x", kind, uint32(digest>>32)), " ")
	}
	cut := min(len(alias), aliasMax)
	for cut < len(alias) && cut > 0 && !utf8.RuneStart(alias[cut]) {
		cut--
	}
	return strings.ToValidUTF8(alias[:cut], "\uFFFD")
}
