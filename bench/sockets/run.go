package sockets

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"time"
)

// pass is one subject in one scenario, once.
type pass struct {
	subject  Subject
	scenario *Scenario
	seed     uint64
}

// result is what a pass brought.
type result struct {
	tally  *tally
	vitals vitals
}

// play starts a server process, sends it the load and asks it how it fared. program
// makes the command that serves a subject in a scenario.
func (p pass) play(ctx context.Context, program func(context.Context, pass) *exec.Cmd) (*result, error) {
	cmd := program(ctx, p)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}()
	var traffic, control string
	if _, err := fmt.Fscan(bufio.NewReader(stdout), &traffic, &control); err != nil {
		return nil, fmt.Errorf("the server of %q did not start: %w", p.subject.Name, err)
	}
	return p.measure(ctx, traffic, control)
}

func (p pass) measure(ctx context.Context, traffic, control string) (*result, error) {
	r := &result{tally: newTally(p.scenario)}
	err := newClient(p.scenario, traffic, p.seed, r.tally).run(ctx, func(i int) error {
		return ask(ctx, http.MethodPost, fmt.Sprintf("%s/phase/%d", control, i), nil)
	})
	if err != nil {
		return nil, err
	}
	return r, ask(ctx, http.MethodGet, control+"/vitals", &r.vitals)
}

func ask(ctx context.Context, method, url string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, url, resp.Status)
	}
	if answer == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}
