package recipes

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/admissiontest"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// heard is an observer that remembers.
type heard struct {
	mu     sync.Mutex
	events []admission.Event
}

func (h *heard) Observe(e admission.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

func (h *heard) Attach(string, func() admission.Stats) {}

func (h *heard) last(t *testing.T) admission.Event {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.events) == 0 {
		t.Fatal("the gate saw nothing")
	}
	return h.events[len(h.events)-1]
}

func do(h http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

// routers are the same service, once with each router, its level and its gate
// beside the routes.
func routers(gate *admission.Gate) map[string]http.Handler {
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	g.GET("/hello", Gin(gate.At(priority.High)), func(c *gin.Context) { c.String(200, "hello") })
	g.GET("/bare", Gin(gate.At(priority.High)), func(c *gin.Context) { c.Status(500) })
	g.GET("/broken", Gin(gate.At(priority.High)), func(c *gin.Context) { c.JSON(500, gin.H{"error": "x"}) })
	g.GET("/events", Gin(gate.At(priority.High, admission.Stream(1))), func(c *gin.Context) {
		c.Writer.Flush()
		c.String(200, "hello")
	})

	e := echo.New()
	e.GET("/hello", func(c echo.Context) error { return c.String(200, "hello") }, Echo(gate.At(priority.High)))
	e.GET("/bare", func(c echo.Context) error { return c.NoContent(500) }, Echo(gate.At(priority.High)))
	e.GET("/broken", func(echo.Context) error { return errors.New("x") }, Echo(gate.At(priority.High)))
	e.GET("/events", func(c echo.Context) error {
		c.Response().Flush()
		return c.String(200, "hello")
	}, Echo(gate.At(priority.High, admission.Stream(1))))
	return map[string]http.Handler{"gin": g, "echo": e}
}

func TestEveryRouterIsAdmittedAndWatched(t *testing.T) {
	said := new(heard)
	gate := admission.MustNew(admission.Options{Observer: said})
	for name, router := range routers(gate) {
		for path, want := range map[string]struct {
			status   int
			outcome  shed.Outcome
			streamed bool
		}{
			"/hello":  {200, shed.Served, false},
			"/bare":   {500, shed.Failed, false},
			"/broken": {500, shed.Failed, false},
			"/events": {200, shed.Ignored, true},
		} {
			w := do(router, "GET", path)
			event := said.last(t)
			if w.Code != want.status || event.Outcome != want.outcome || event.Streamed != want.streamed || event.Level != priority.High {
				t.Errorf("%s %s: %d, %+v", name, path, w.Code, event)
			}
		}
		if got := gate.Stats().InFlight(); got != 0 {
			t.Errorf("%s: %d in flight", name, got)
		}
	}
}

func TestEveryRouterLetsTheGateRefuse(t *testing.T) {
	for name, router := range routers(admissiontest.Refuse(shed.QueueFull)) {
		w := do(router, "GET", "/hello")
		if w.Code != 503 || w.Header().Get("Retry-After") == "" || w.Body.String() == "hello" {
			t.Errorf("%s: %d %v %q", name, w.Code, w.Header(), w.Body)
		}
	}
}

func TestPanicsReachTheRoutersRecovery(t *testing.T) {
	gate := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1)}})
	g := gin.New()
	g.Use(gin.RecoveryWithWriter(io.Discard))
	g.GET("/", Gin(gate.At(priority.Normal)), func(*gin.Context) { panic("x") })
	for range 3 {
		if w := do(g, "GET", "/"); w.Code != 500 {
			t.Errorf("status %d", w.Code)
		}
	}
}

func TestTheTableRanksBeforeAnyRouting(t *testing.T) {
	said := new(heard)
	plain := echo.New()
	plain.POST("/checkout", func(c echo.Context) error { return c.NoContent(204) })
	plain.GET("/healthz", func(c echo.Context) error { return c.NoContent(204) })
	h, err := Table(admission.Options{Observer: said}, plain)
	if err != nil {
		t.Fatal(err)
	}
	if w := do(h, "POST", "/checkout"); w.Code != 204 || said.last(t).Level != priority.Critical {
		t.Errorf("checkout: %d, %+v", w.Code, said.last(t))
	}
	if w := do(h, "GET", "/healthz"); w.Code != 204 || said.last(t).Reason != shed.Exempt {
		t.Errorf("healthz: %d, %+v", w.Code, said.last(t))
	}
}

func TestConnectClientsUnderstandARefusalAndSendTheirDeadline(t *testing.T) {
	var left time.Duration
	greet := func(ctx context.Context, r *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
		if at, ok := ctx.Deadline(); ok {
			left = time.Until(at)
		}
		return connect.NewResponse(wrapperspb.String("hello " + r.Msg.GetValue())), nil
	}
	opts := admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}}
	h, err := Connect(opts, greet)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	client := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](server.Client(), server.URL+GreetPath)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	resp, err := client.CallUnary(ctx, connect.NewRequest(wrapperspb.String("Ann")))
	if err != nil || resp.Msg.GetValue() != "hello Ann" || left <= 0 || left > 2*time.Second {
		t.Errorf("%v, %v, with %v left", resp, err, left)
	}
	if _, err := Connect(admission.Options{CallerCap: -1}, greet); err == nil {
		t.Error("a bad option passed")
	}

	full := httptest.NewServer(admissiontest.Refuse(shed.Capacity).At(priority.High)(h))
	defer full.Close()
	_, err = connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](full.Client(), full.URL+GreetPath).
		CallUnary(ctx, connect.NewRequest(wrapperspb.String("Ann")))
	var refused *connect.Error
	if !errors.As(err, &refused) || refused.Code() != connect.CodeUnavailable {
		t.Errorf("refused: %v", err)
	}
}

func TestClientsAreFoundBehindTheProxiesOfOthers(t *testing.T) {
	cloudflare := BehindCloudflare([]string{"173.245.48.0/20"})
	for name, c := range map[string]struct {
		config                    caller.ClientIP
		peer, header, value, want string
	}{
		"nginx":                       {BehindNginx(), "127.0.0.1:1", "X-Forwarded-For", "1.1.1.1, 203.0.113.9", "203.0.113.9"},
		"past nginx":                  {BehindNginx(), "203.0.113.7:1", "X-Forwarded-For", "1.1.1.1", "203.0.113.7"},
		"Cloudflare":                  {cloudflare, "173.245.48.5:1", "CF-Connecting-IP", "203.0.113.9", "203.0.113.9"},
		"past Cloudflare":             {cloudflare, "203.0.113.7:1", "CF-Connecting-IP", "1.1.1.1", "203.0.113.7"},
		"a load balancer":             {BehindALB(), "10.0.3.4:1", "X-Forwarded-For", "1.1.1.1, 203.0.113.9", "203.0.113.9"},
		"CloudFront, a load balancer": {BehindALBAndCloudFront(), "10.0.3.4:1", "X-Forwarded-For", "1.1.1.1, 203.0.113.9, 130.176.0.1", "203.0.113.9"},
	} {
		addresses, err := caller.NewAddresses(c.config)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.peer
		r.Header.Set(c.header, c.value)
		if got := addresses.Key(r); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
