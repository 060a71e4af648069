package queue

import "time"

// heap is a heap by instant, earliest first, whose members know where they stand, so that
// any of them can be removed in O(log n). The instants stand in it and a parent has four
// children: a comparison reads no member, and few of them move.
type heap[T any] struct {
	items []timed[T]
	moved func(x T, to int32) // to is -1 when x has left
}

type timed[T any] struct {
	at time.Duration
	x  T
}

func (h *heap[T]) len() int { return len(h.items) }

// first returns the earliest instant, never when there is none.
func (h *heap[T]) first() time.Duration {
	if len(h.items) == 0 {
		return never
	}
	return h.items[0].at
}

func (h *heap[T]) push(at time.Duration, x T) {
	h.items = append(h.items, timed[T]{})
	h.up(len(h.items)-1, timed[T]{at, x})
}

func (h *heap[T]) remove(i int) {
	last := len(h.items) - 1
	gone, x := h.items[i].x, h.items[last]
	h.items[last] = timed[T]{}
	h.items = h.items[:last]
	if i < last {
		h.place(i, x)
	}
	h.moved(gone, -1)
}

func (h *heap[T]) place(i int, x timed[T]) {
	if i > 0 && x.at < h.items[(i-1)/4].at {
		h.up(i, x)
		return
	}
	h.down(i, x)
}

func (h *heap[T]) up(i int, x timed[T]) {
	for i > 0 {
		parent := (i - 1) / 4
		if x.at >= h.items[parent].at {
			break
		}
		h.put(i, h.items[parent])
		i = parent
	}
	h.put(i, x)
}

func (h *heap[T]) down(i int, x timed[T]) {
	for n := len(h.items); ; {
		first := 4*i + 1
		if first >= n {
			break
		}
		least := first
		for j := first + 1; j < min(first+4, n); j++ {
			if h.items[j].at < h.items[least].at {
				least = j
			}
		}
		if h.items[least].at >= x.at {
			break
		}
		h.put(i, h.items[least])
		i = least
	}
	h.put(i, x)
}

func (h *heap[T]) put(i int, x timed[T]) {
	h.items[i] = x
	h.moved(x.x, int32(i))
}

// The heaps of instants a waiter may stand in.
const (
	byLeave = iota
	byDue
	heaps
)

// waiterHeap is one of these.
func waiterHeap(which int) heap[*Waiter] {
	if which == byLeave {
		return heap[*Waiter]{moved: func(w *Waiter, to int32) { w.pos[byLeave] = to }}
	}
	return heap[*Waiter]{moved: func(w *Waiter, to int32) { w.pos[byDue] = to }}
}

// ranks is a heap of callers, least key first, four children to a parent. The keys
// stand in it, so that a comparison reads no caller.
type ranks struct {
	items []rank
	which int // of a caller's positions
}

type rank struct {
	key    float64
	turn   uint64
	caller *caller
}

func (a *rank) before(b *rank) bool { return a.key < b.key || a.key == b.key && a.turn < b.turn }

func (h *ranks) push(t *caller, key float64, turn uint64) {
	h.items = append(h.items, rank{})
	h.up(len(h.items)-1, rank{key, turn, t})
}

// set changes the key of t, which is there.
func (h *ranks) set(t *caller, key float64, turn uint64) {
	i := int(t.pos[h.which])
	if at := &h.items[i]; at.key != key || at.turn != turn {
		h.place(i, rank{key, turn, t})
	}
}

func (h *ranks) remove(t *caller) {
	i, last := int(t.pos[h.which]), len(h.items)-1
	x := h.items[last]
	h.items[last] = rank{}
	h.items = h.items[:last]
	if i < last {
		h.place(i, x)
	}
}

func (h *ranks) place(i int, x rank) {
	if i > 0 && x.before(&h.items[(i-1)/4]) {
		h.up(i, x)
		return
	}
	h.down(i, x)
}

func (h *ranks) up(i int, x rank) {
	for i > 0 {
		parent := (i - 1) / 4
		if !x.before(&h.items[parent]) {
			break
		}
		h.put(i, h.items[parent])
		i = parent
	}
	h.put(i, x)
}

func (h *ranks) down(i int, x rank) {
	for n := len(h.items); ; {
		first := 4*i + 1
		if first >= n {
			break
		}
		least := first
		for j := first + 1; j < min(first+4, n); j++ {
			if h.items[j].before(&h.items[least]) {
				least = j
			}
		}
		if !h.items[least].before(&x) {
			break
		}
		h.put(i, h.items[least])
		i = least
	}
	h.put(i, x)
}

func (h *ranks) put(i int, x rank) {
	h.items[i] = x
	x.caller.pos[h.which] = int32(i)
}
