package replay

import "container/heap"

// work is what is in flight, the first to end on top.
type work []*visit

func (h *work) push(v *visit) { heap.Push(h, v) }
func (h *work) pop() *visit   { return heap.Pop(h).(*visit) }

func (h work) Len() int           { return len(h) }
func (h work) Less(i, j int) bool { return h[i].ends < h[j].ends }
func (h work) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *work) Push(x any)        { *h = append(*h, x.(*visit)) }
func (h *work) Pop() any {
	last := len(*h) - 1
	v := (*h)[last]
	*h = (*h)[:last]
	return v
}
