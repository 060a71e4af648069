// Package edge is the kit as a reverse proxy, for servers in any language: the command
// "headgate edge", and examples/edge.
//
// A request meets, in this order: an answer in gRPC where it speaks gRPC (proxy/grpc.go),
// the gate (package admission), the guard against stalls (proxy/stall.go, body.go), the
// list of protocols (proxy/protocols.go), the reverse proxy with the forwarding fields
// (proxy/proxy.go, forward.go), and the transport to the upstream with what is made of its
// answers (upstream). A configuration is read in config.go, checked in validate.go, put in
// force in reload.go, printed in report.go.
package edge

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/headgate-go/headgate/cmd/headgate/edge/internal/logs"
)

// Main runs the program with the given arguments until it is told to stop, and returns
// its exit code. SIGTERM and an interrupt drain it, a second one ends it at once; SIGHUP
// reads the configuration again.
func Main(args []string) int {
	signal.Ignore(syscall.SIGPIPE) // a log without a reader would end the program
	stderr := logs.NewPipe(os.Stderr)
	defer stderr.Close(time.Second)
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	context.AfterFunc(ctx, cancel)
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	if err := Run(ctx, hup, args, os.Stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "edge:", err)
		return 1
	}
	return 0
}

// flags are the command line.
type flags struct {
	source
	printDefaults, check, connect bool
}

func parseFlags(args []string, stderr io.Writer) (f flags, err error) {
	set := f.set()
	set.SetOutput(stderr)
	if err := set.Parse(args); err != nil {
		return f, err
	}
	set.Visit(func(given *flag.Flag) { f.noAdmin = f.noAdmin || given.Name == "admin" && f.admin == "" })
	if set.NArg() > 0 {
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	return f, nil
}

// Flags returns the flags of the program, with their dash.
func Flags() (names []string) {
	new(flags).set().VisitAll(func(f *flag.Flag) { names = append(names, "-"+f.Name) })
	return names
}

func (f *flags) set() *flag.FlagSet {
	set := flag.NewFlagSet("edge", flag.ContinueOnError)
	set.StringVar(&f.path, "config", "", "policy `file`; without it, the defaults")
	set.StringVar(&f.upstream, "upstream", "", "`URL` of the server to protect, over the file's")
	set.StringVar(&f.listen, "listen", "", "`address` to serve on, over the file's")
	set.StringVar(&f.admin, "admin", "", "`address` of metrics, probes and the live page, over the file's; empty: none")
	set.BoolVar(&f.printDefaults, "print-defaults", false, "print a file with every option and stop")
	set.BoolVar(&f.check, "check", false, "check the configuration, print the numbers in force and stop")
	set.BoolVar(&f.connect, "connect", false, "with -check: connect to Redis too, and say which rights lack")
	return set
}

// Run is the program: it returns when ctx has ended and the drain is over. A value of hup
// has the configuration read again.
func Run(ctx context.Context, hup <-chan os.Signal, args []string, stdout, stderr io.Writer) error {
	f, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case f.printDefaults:
		_, err := io.WriteString(stdout, defaults())
		return err
	}
	e, err := newEdge(f.source, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return err
	}
	defer e.close()
	defer runtime.KeepAlive(headroom())
	if f.check {
		return e.checked(ctx, f.connect, stdout)
	}
	return e.serve(ctx, hup)
}

// checked prints the numbers in force and, where it is asked to connect, what keeps the
// shared limits from working.
func (e *edge) checked(ctx context.Context, connect bool, stdout io.Writer) error {
	if err := e.report(stdout); err != nil || !connect {
		return err
	}
	var errs []error
	for _, line := range e.store.Probe(ctx) {
		errs = append(errs, errors.New(line))
	}
	return errors.Join(errs...)
}

// headroom makes the garbage collector wait for some garbage: a proxy's live heap is
// so small that it would run dozens of times a second under load. The memory is
// never touched, so it is not resident; what is live beyond it is collected as ever.
func headroom() []byte { return make([]byte, 32<<20) }
