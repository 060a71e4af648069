// Edge is the kit as a reverse proxy: put it before any HTTP server, whatever it
// is written in.
//
//	go run ./examples/edge -upstream http://127.0.0.1:3000
//	go run ./examples/edge -config edge.yaml
//
// Without a file it learns how much the server behind it can take, queues a little
// and fairly beyond that, and turns the rest away with an answer. With one it does
// what the file says; -print-defaults prints a file with every option. It reads
// the file again on SIGHUP and when it changes. SIGTERM drains.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	context.AfterFunc(ctx, cancel) // a second signal ends the program at once
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	if err := run(ctx, hup, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "edge:", err)
		os.Exit(1)
	}
}

// run is the program: it returns when ctx has ended and the drain is over.
func run(ctx context.Context, hup <-chan os.Signal, args []string, stdout, stderr io.Writer) error {
	flags, printDefaults, check := flag.NewFlagSet("edge", flag.ContinueOnError), false, false
	var source source
	flags.SetOutput(stderr)
	flags.StringVar(&source.path, "config", "", "policy `file`; without it, the defaults")
	flags.StringVar(&source.upstream, "upstream", "", "`URL` of the server to protect, over the file's")
	flags.StringVar(&source.listen, "listen", "", "`address` to serve on, over the file's")
	flags.StringVar(&source.admin, "admin", "", "`address` of metrics, probes and the live page, over the file's")
	flags.BoolVar(&printDefaults, "print-defaults", false, "print a file with every option and stop")
	flags.BoolVar(&check, "check", false, "check the configuration, print the numbers in force and stop")
	if err := flags.Parse(args); err != nil {
		if err == flag.ErrHelp {
			return nil
		}
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if printDefaults {
		_, err := io.WriteString(stdout, defaults())
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	e, err := newEdge(source, log)
	if err != nil {
		return err
	}
	defer e.close()
	defer runtime.KeepAlive(headroom())
	if check {
		return e.report(stdout)
	}
	return e.serve(ctx, hup)
}

// headroom makes the garbage collector wait for some garbage: a proxy's live heap is
// so small that it would run dozens of times a second under load. The memory is
// never touched, so it is not resident; what is live beyond it is collected as ever.
func headroom() []byte { return make([]byte, 32<<20) }
