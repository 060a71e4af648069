package main

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// answer is what one request came to. Status 0: its client gave up.
type answer struct {
	class, second int
	status        int
	took          time.Duration
	told          bool // a refusal that said when to come back
}

// tape records one variant's run, by the second in which requests were sent.
type tape struct {
	mu         sync.Mutex
	answers    []answer
	sent       [length][classes]int
	served     [length][classes]int
	goroutines int
	heap       uint64
	limit      int
}

func (t *tape) add(a answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.second >= length {
		return
	}
	t.answers = append(t.answers, a)
	t.sent[a.second][a.class]++
	if a.status == 200 {
		t.served[a.second][a.class]++
	}
}

// watch notes how many goroutines and how much heap there are.
func (t *tape) watch(limit func() int) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.goroutines, t.heap = max(t.goroutines, runtime.NumGoroutine()), max(t.heap, m.HeapInuse)
	if limit != nil {
		t.limit = limit()
	}
}

// share is the part, from 0 to 1, of a class's requests of some seconds that was
// served; negative when there were none.
func (t *tape) share(class, from, to int) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	sent, served := 0, 0
	for s := from; s < min(to, length); s++ {
		sent, served = sent+t.sent[s][class], served+t.served[s][class]
	}
	if sent == 0 {
		return -1
	}
	return float64(served) / float64(sent)
}

// p99 is the 99th percentile of how long the served of a class took.
func (t *tape) p99(class, from, to int) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var took []time.Duration
	for _, a := range t.answers {
		if a.class == class && a.second >= from && a.second < to && a.status == 200 {
			took = append(took, a.took)
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// told is the part of all refusals that said when to come back.
func (t *tape) told() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	refused, told := 0, 0
	for _, a := range t.answers {
		if a.status == 503 || a.status == 429 {
			refused++
			if a.told {
				told++
			}
		}
	}
	if refused == 0 {
		return 0
	}
	return float64(told) / float64(refused)
}
