package admission

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/headgate-go/headgate/shed"
)

// LimitedCaller is a caller that was refused by limits of its own lately.
type LimitedCaller struct {
	Alias   string // what Gate.Alias calls it; never its key
	Refused uint64 // in the last half to one minute; never more than it was
}

// Alias returns the name by which the gate shows a caller to people: the caller's
// own Alias, cut to 64 bytes, or else a digest of its key that is the same for the
// life of the gate and says nothing about the key.
func (g *Gate) Alias(c Caller) string {
	if g == nil {
		return c.Alias
	}
	return aliasOf(c.Alias, c.Space, g.limited.digest(c))
}

const (
	limitedSets   = 32
	limitedWays   = 4
	limitedShown  = 16
	limitedWindow = 30 * time.Second
	aliasMost     = 64
)

// limited counts who is refused most by limits of its own, in bounded space and
// time: a caller has its place in one of many small sets. When that is full, the
// one with the lowest count yields to a newcomer, who takes the count over as its
// possible error, so that whoever makes up a quarter of a set's refusals is in it
// (Metwally, Agrawal, El Abbadi: space-saving).
type limited struct {
	seed maphash.Seed

	mu    sync.Mutex
	began time.Time // the current window
	sets  [limitedSets][limitedWays]limitedCaller
}

// limitedCaller holds counts of the current window and of the one before.
type limitedCaller struct {
	id           uint64
	space, alias string
	now, last    uint64
	over         uint64 // at most so much of them was somebody else's
}

func (c *limitedCaller) count() uint64 { return c.now + c.last }

func newLimited() *limited { return &limited{seed: maphash.MakeSeed()} }

// note counts a refusal, if it is one that the caller brought upon itself.
func (l *limited) note(now time.Time, r shed.Reason, c Caller) {
	if r != shed.RateLimited && r != shed.NotAdmissible && r != shed.CallerCap {
		return
	}
	id := l.digest(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turnLocked(now)
	set := &l.sets[id%limitedSets]
	place := &set[0]
	for i := range set {
		if set[i].id == id {
			set[i].now++
			return
		}
		if set[i].count() < place.count() {
			place = &set[i]
		}
	}
	place.id, place.space, place.alias = id, c.Space, c.Alias
	place.over = place.count()
	place.now++
}

// turnLocked begins a new window when the current one is over.
func (l *limited) turnLocked(now time.Time) {
	age := now.Sub(l.began)
	if age < limitedWindow {
		return
	}
	l.began = now
	for i := range l.sets {
		for j := range l.sets[i] {
			c := &l.sets[i][j]
			if c.now == 0 || age >= 2*limitedWindow {
				*c = limitedCaller{}
			}
			c.last, c.now, c.over = c.now, 0, min(c.over, c.now)
		}
	}
}

// top returns those refused most, the most first.
func (l *limited) top(now time.Time) (top []LimitedCaller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turnLocked(now)
	for i := range l.sets {
		for _, c := range l.sets[i] {
			if n := c.count() - c.over; n > 0 {
				top = append(top, LimitedCaller{Alias: aliasOf(c.alias, c.space, c.id), Refused: n})
			}
		}
	}
	slices.SortFunc(top, func(a, b LimitedCaller) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Alias, b.Alias))
	})
	return top[:min(len(top), limitedShown)]
}

// digest is keyed by a secret of this process, so that short keys, such as
// addresses, cannot be found by trying.
func (l *limited) digest(c Caller) uint64 {
	var h maphash.Hash
	h.SetSeed(l.seed)
	h.WriteString(c.Space)
	h.WriteByte(0)
	h.WriteString(c.Key)
	return h.Sum64()
}

func aliasOf(alias, space string, digest uint64) string {
	if alias == "" {
		kind, _, _ := strings.Cut(space, ":")
		return strings.TrimLeft(fmt.Sprintf("%s %08x", kind, uint32(digest>>32)), " ")
	}
	cut := min(len(alias), aliasMost)
	for cut < len(alias) && cut > 0 && !utf8.RuneStart(alias[cut]) {
		cut--
	}
	return strings.ToValidUTF8(alias[:cut], "\uFFFD")
}
