package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type writer func([]byte) (int, error)

func (f writer) Write(b []byte) (int, error) { return f(b) }

// Case ED-11: tried on the product
func TestAReaderThatStallsHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		p := NewPipe(writer(func(b []byte) (int, error) { <-stuck; return len(b), nil }))
		for i := range pipeLines + 10 {
			fmt.Fprintln(p, "line", i)
		}
		synctest.Wait()
		if got := p.Dropped(); got < 9 || got > 10 {
			t.Errorf("%d lines dropped", got)
		}
		began := time.Now()
		p.Close(time.Second)
		if took := time.Since(began); took != time.Second {
			t.Errorf("closing took %v", took)
		}
		close(stuck)
	})
}

func TestAReaderThatHasGoneIsNoError(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	failed := 0
	p := NewPipe(writer(func(b []byte) (int, error) {
		n, err := w.Write(b)
		if errors.Is(err, io.ErrShortWrite) || err != nil {
			failed++
		}
		return n, err
	}))
	if n, err := p.Write([]byte("x")); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	p.Close(time.Minute)
	if failed != 1 {
		t.Errorf("%d writes failed, want the one that was made", failed)
	}
}

func TestClosingWritesWhatIsLeft(t *testing.T) {
	var out bytes.Buffer
	p := NewPipe(&out)
	for range 100 {
		fmt.Fprintln(p, "x")
	}
	p.Close(time.Minute)
	if got := strings.Count(out.String(), "x\n"); got != 100 {
		t.Errorf("%d lines of 100", got)
	}
}

func TestWhatLastsIsToldOnceInAWhile(t *testing.T) {
	var out bytes.Buffer
	o := NewOften(slog.New(slog.NewTextHandler(&out, nil)), 10*time.Second)
	now := time.Unix(1000, 0)
	for i := range 25 {
		o.Warn(now.Add(time.Duration(i)*time.Second), "a", "it fails", "why", "x")
	}
	o.Warn(now, "b", "something else")
	if got := strings.Count(out.String(), "it fails"); got != 3 {
		t.Errorf("told %d times in 25 s:\n%s", got, &out)
	}
	if got := strings.Count(out.String(), "times_since=9"); got != 2 || !strings.Contains(out.String(), "something else") {
		t.Errorf("the log is\n%s", &out)
	}
	out.Reset()
	lib := slog.NewLogLogger(o.Handler("lib"), slog.LevelWarn)
	for range 5 {
		lib.Print("handshake error")
	}
	if got := strings.Count(out.String(), "handshake"); got != 1 {
		t.Errorf("%d lines of a library", got)
	}
}
