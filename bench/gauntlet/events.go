package gauntlet

import "time"

// event is something that will happen to a request.
type event struct {
	at time.Duration
	id int32
}

// events is a binary heap, earliest first. Ties go to the lower id, so that a run
// is the same every time.
type events []event

func (h events) before(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].id < h[j].id
}

func (h *events) push(e event) {
	*h = append(*h, e)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s.before(i, up) {
			return
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

func (h *events) pop() event {
	s := *h
	top, n := s[0], len(s)-1
	s[0] = s[n]
	s = s[:n]
	*h = s
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < n; c++ {
			if s.before(c, least) {
				least = c
			}
		}
		if least == i {
			return top
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}

// next returns the time of the earliest event, or never.
func (h events) next() time.Duration {
	if len(h) == 0 {
		return never
	}
	return h[0].at
}

const never = time.Duration(1<<63 - 1)
