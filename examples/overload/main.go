// Overload plays one bad quarter of an hour in seconds, on a real server with a
// real open-loop client, three times: with nothing in front of the service, with
// the rate limit from an old benchmark, and with the gate.
//
// The service writes to a database of 16 connections. A write takes 4 ms; from
// second 4 to second 16 it takes 90 ms, which leaves room for 178 requests a second
// of the 1,500 that come. Clients wait one second.
//
//	go run ./examples/overload [-json] [-page addr] [-gate]
//
// The third run can be watched on the live page; -gate plays that one alone.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

// The story, in seconds.
const (
	slowFrom = 4
	slowTo   = 16
	length   = 22
	settled  = slowFrom + 2 // when the gate should have found its limit
)

const (
	fast = 4 * time.Millisecond
	slow = 90 * time.Millisecond
)

func main() {
	asJSON := flag.Bool("json", false, "write the summary as JSON, and nothing else to standard output")
	addr := flag.String("page", "127.0.0.1:8090", "where the live page is served; empty: nowhere")
	gateOnly := flag.Bool("gate", false, "play the run with the gate alone")
	flag.Parse()
	live := new(page)
	if *addr != "" {
		if url, err := live.serve(*addr); err != nil {
			fmt.Fprintln(os.Stderr, "no live page:", err)
		} else {
			fmt.Fprintf(os.Stderr, "the live page of the run with the gate: %s\n", url)
		}
	}
	screen := newScreen(os.Stderr)
	var all []summary
	runs := variants(live.show)
	if *gateOnly {
		runs = runs[len(runs)-1:]
	}
	for _, v := range runs {
		s, err := play(v, screen)
		if err != nil {
			fmt.Fprintln(os.Stderr, "overload:", err)
			os.Exit(1)
		}
		all = append(all, s)
	}
	if *asJSON {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		_ = enc.Encode(all)
		return
	}
	printSummary(os.Stdout, all)
}

// play tells the story once.
func play(v variant, screen *screen) (summary, error) {
	debug.FreeOSMemory() // what the run before left behind
	db := newDatabase()
	db.mean.Store(int64(fast))
	handler, limit := v.build(db)
	url, stop, err := serve(handler)
	if err != nil {
		return summary{}, err
	}
	t := new(tape)
	screen.begin(v.name, t)
	var before, after work
	change := func(at int, f func()) *time.Timer { return time.AfterFunc(time.Duration(at)*time.Second, f) }
	timers := []*time.Timer{
		change(slowFrom, func() { db.mean.Store(int64(slow)) }),
		change(settled, func() { before = db.count() }),
		change(slowTo, func() { after = db.count(); db.mean.Store(int64(fast)) }),
	}
	done := make(chan struct{})
	go func() {
		newClient(url, t).run(length * time.Second)
		close(done)
	}()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for start := time.Now(); ; {
		select {
		case <-tick.C:
			t.watch(limit)
			screen.draw(time.Since(start))
			continue
		case <-done:
		}
		break
	}
	for _, timer := range timers {
		timer.Stop()
	}
	screen.end()
	db.mean.Store(0) // let the backlog go, so that it is not in the next run's way
	stop()
	return summarize(v.name, t, work{after.done - before.done, after.wasted - before.wasted}), nil
}

// work is how much the database did, and how much of it for nobody.
type work struct{ done, wasted int64 }

func (d *database) count() work { return work{d.done.Load(), d.wasted.Load()} }
