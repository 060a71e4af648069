package store

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/policy"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate"
)

// answering is a server that speaks as much of Redis as a connection asks for, and says so
// of Clusters.
func answering(t *testing.T, aboutClusters string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go serve(c, aboutClusters)
		}
	}()
	return l.Addr().String()
}

func serve(c net.Conn, aboutClusters string) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		var words, length int
		if _, err := fmt.Fscanf(in, "*%d\r\n", &words); err != nil {
			return
		}
		command := ""
		for range words {
			var word string
			if _, err := fmt.Fscanf(in, "$%d\r\n%s\r\n", &length, &word); err != nil {
				return
			}
			command += strings.ToLower(word) + " "
		}
		switch {
		case strings.HasPrefix(command, "info"):
			fmt.Fprintf(c, "$%d\r\n%s\r\n", len(aboutClusters), aboutClusters)
		case strings.HasPrefix(command, "evalsha") && strings.Contains(command, ":peers"):
			fmt.Fprint(c, ":1\r\n")
		case strings.HasPrefix(command, "evalsha"):
			reply := fmt.Sprintf("ok 1 20000000 0.5 20 1000000 0 0 0 %d", time.Now().UnixMicro())
			fmt.Fprintf(c, "$%d\r\n%s\r\n", len(reply), reply)
		case strings.HasPrefix(command, "ping"):
			fmt.Fprint(c, "+PONG\r\n")
		default:
			fmt.Fprint(c, "-ERR unknown command\r\n")
		}
	}
}

// Case ED-07: tried on the product
func TestANodeOfAClusterIsNotTakenForAServer(t *testing.T) {
	for about, want := range map[string]error{
		"# Cluster\r\ncluster_enabled:1\r\n": errNode,
		"# Cluster\r\ncluster_enabled:0\r\n": nil,
	} {
		a, err := parse("redis://" + answering(t, about))
		if err != nil {
			t.Fatal(err)
		}
		rdb, err := client(a)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rdb.Close() })
		if err := rdb.Ping(t.Context()).Err(); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", about, err, want)
		}
	}
}

// The edge is ready when the store has answered once, also where each admission is a call.
func TestAStoreThatAnswersDelaysTheStartByOneCall(t *testing.T) {
	st := New(slog.New(slog.DiscardHandler))
	l, err := st.Limit(policy.SharedLimit{
		Redis: "redis://" + answering(t, ""), Name: "small", Plan: ratelimit.Plan{Rate: 0.5, Burst: 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	limit := l.(*redisrate.Limiter)
	t.Cleanup(func() { _ = limit.Close() })
	if s := limit.Snapshot(); s.Decisions[ratelimit.SourceDirect].Admitted != 1 {
		t.Errorf("before the edge was ready: %+v", s.Decisions)
	}
}
