// Command cluster runs three replicas of a service that share one ceiling through
// Redis, sends each of them more than its part, and prints every second what all
// of them together let through.
//
//	go run ./examples/cluster               # starts redis-server, if there is one
//	go run ./examples/cluster -redis ADDR   # uses one that is there
//	go run ./examples/cluster -chaos        # kills Redis and starts it again, on the way
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"
)

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func main() {
	log.SetFlags(0)
	rate := flag.Int("rate", 300, "ceiling for all replicas together, requests a second")
	burst := flag.Int("burst", 60, "burst")
	replicas := flag.Int("replicas", 3, "replicas")
	length := flag.Duration("length", 20*time.Second, "how long to run")
	addr := flag.String("redis", "", "address of a Redis server; empty: start one")
	chaos := flag.Bool("chaos", false, "kill Redis after a third of the time, restart it after two thirds")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *rate, *burst, *replicas, *length, *addr, *chaos); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, rate, burst, replicas int, length time.Duration, addr string, chaos bool) error {
	if chaos && addr != "" {
		return fmt.Errorf("-chaos kills only a server it has started: leave out -redis")
	}
	store, err := startStore(addr)
	if err != nil {
		return err
	}
	defer store.stop()

	redis.SetLogger(silent{}) // the limiters say what matters, once
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stdout, nil)))
	var fleet []*replica
	for i := range replicas {
		r, err := startReplica(fmt.Sprint("replica-", i+1), store.addr, rate, burst, replicas)
		if err != nil {
			return err
		}
		defer r.stop()
		fleet = append(fleet, r)
	}
	time.Sleep(time.Second) // they find each other

	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	if chaos {
		time.AfterFunc(length/3, func() { store.kill(); fmt.Println("-- redis killed") })
		time.AfterFunc(length*2/3, func() {
			if err := store.start(); err != nil {
				log.Print(err)
			}
			fmt.Println("-- redis started again, empty")
		})
	}
	tally := newTally(rate, burst, len(fleet))
	go tally.print(ctx, fleet)
	for i, r := range fleet {
		// The first gets more than the others; together it is twice the ceiling.
		part := []float64{1.2, 0.5, 0.3}[i%3] * 3 / float64(len(fleet))
		go offer(ctx, r.url, i, part*float64(rate), tally)
	}
	<-ctx.Done()
	time.Sleep(300 * time.Millisecond) // answers on their way
	return tally.verdict()
}
