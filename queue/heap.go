package queue

import "time"

// heap is a binary heap whose members know where they stand, so that any of them
// can be removed in O(log n).
type heap[T any] struct {
	items  []T
	before func(a, b T) bool
	moved  func(x T, to int) // to is -1 when x has left
}

func (h *heap[T]) len() int { return len(h.items) }

func (h *heap[T]) push(x T) {
	h.items = append(h.items, x)
	h.up(len(h.items)-1, x)
}

func (h *heap[T]) remove(i int) {
	last := len(h.items) - 1
	gone, x := h.items[i], h.items[last]
	var none T
	h.items[last] = none
	h.items = h.items[:last]
	if i < last {
		h.place(i, x)
	}
	h.moved(gone, -1)
}

func (h *heap[T]) place(i int, x T) {
	if i > 0 && h.before(x, h.items[(i-1)/2]) {
		h.up(i, x)
		return
	}
	h.down(i, x)
}

func (h *heap[T]) up(i int, x T) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(x, h.items[parent]) {
			break
		}
		h.put(i, h.items[parent])
		i = parent
	}
	h.put(i, x)
}

func (h *heap[T]) down(i int, x T) {
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if r := child + 1; r < len(h.items) && h.before(h.items[r], h.items[child]) {
			child = r
		}
		if !h.before(h.items[child], x) {
			break
		}
		h.put(i, h.items[child])
		i = child
	}
	h.put(i, x)
}

func (h *heap[T]) put(i int, x T) {
	h.items[i] = x
	h.moved(x, i)
}

// The heaps of instants a waiter may stand in.
const (
	byLeave = iota
	byDue
	heaps
)

func leaveHeap() heap[*Waiter] {
	return heap[*Waiter]{
		before: func(a, b *Waiter) bool { return a.leave < b.leave },
		moved:  func(w *Waiter, to int) { w.pos[byLeave] = to },
	}
}

func dueHeap() heap[*Waiter] {
	return heap[*Waiter]{
		before: func(a, b *Waiter) bool { return a.due < b.due },
		moved:  func(w *Waiter, to int) { w.pos[byDue] = to },
	}
}

// nextLeave and nextDue return the earliest instant, never when there is none.
func nextLeave(h *heap[*Waiter]) time.Duration {
	if h.len() == 0 {
		return never
	}
	return h.items[0].leave
}

func nextDue(h *heap[*Waiter]) time.Duration {
	if h.len() == 0 {
		return never
	}
	return h.items[0].due
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
