package e2e

import (
	"context"
	"net/http"
	"strings"
	"syscall"
	"time"
)

const soakToken = "soak"

// reload changes the policy each second: by a signal, by the file, by a file with a
// mistake in it, and on the admin port.
func (s *soak) reload(ctx context.Context) {
	for i := 0; pauseFor(ctx, time.Second); i++ {
		switch i % 5 {
		case 0:
			s.edge.write(s.file(64 + i%7))
		case 1:
			s.edge.signal(syscall.SIGHUP)
		case 2:
			s.edge.write(s.file(64) + "  nonsense: {}\n")
		case 3:
			s.patch("gate: {limits: {rate: {rate: 200/s, burst: 150}}}", http.StatusOK)
		case 4:
			s.patch("gate: {limits: {rate: {burst: -1}}}", http.StatusUnprocessableEntity)
		}
	}
	s.edge.write(s.file(64))
}

// patch changes the policy at run time.
func (s *soak) patch(body string, want int) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "PATCH", s.edge.admin+"/policy", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer "+soakToken)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Errorf("PATCH: %v", err)
		return
	}
	resp.Body.Close()
	if resp.StatusCode != want {
		s.t.Errorf("PATCH %s: %d, want %d", body, resp.StatusCode, want)
	}
}

// injectFaults breaks one thing after the other, with a rest in between.
func (s *soak) injectFaults(ctx context.Context) {
	rest := min(5*time.Second, *soakFor/30)
	for {
		for _, fault := range []func(){
			func() {
				s.upstream.kill()
				pauseFor(ctx, time.Second)
				s.upstream.start()
			},
			func() {
				s.upstream.signal(syscall.SIGSTOP)
				pauseFor(ctx, 2*time.Second)
				s.upstream.signal(syscall.SIGCONT)
			},
			func() {
				s.tell("/delay?ms=200")
				pauseFor(ctx, 2*time.Second)
				s.tell("/delay?ms=0")
			},
			func() {
				s.tell("/resets?percent=20")
				pauseFor(ctx, 2*time.Second)
				s.tell("/resets?percent=0")
			},
			func() {
				s.redis.kill()
				pauseFor(ctx, 2*time.Second)
				s.redis.start()
			},
		} {
			if !pauseFor(ctx, rest) {
				return
			}
			fault()
		}
	}
}

// tell changes what the upstream does, past the edge.
func (s *soak) tell(what string) {
	resp, err := http.Get("http://" + s.upstream.addr + what)
	if err != nil {
		s.t.Errorf("the upstream: %v", err)
		return
	}
	resp.Body.Close()
}
