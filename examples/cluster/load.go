package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// offer sends perSec requests a second to a replica, whatever it answers.
func offer(ctx context.Context, url string, replica int, perSec float64, t *tally) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	at := time.Now()
	for ctx.Err() == nil {
		at = at.Add(time.Duration(rand.ExpFloat64() / perSec * float64(time.Second)))
		time.Sleep(time.Until(at))
		go func() {
			resp, err := client.Get(url)
			if err != nil {
				t.count(replica, 0)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			t.count(replica, resp.StatusCode)
		}()
	}
}
