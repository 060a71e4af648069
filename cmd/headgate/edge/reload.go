package edge

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/policy"
)

// follow reads the configuration again on SIGHUP and when the file changes, until
// ctx ends.
func (e *edge) follow(ctx context.Context, hup <-chan os.Signal) {
	changed := make(chan struct{})
	if every := e.settings.Watch; e.source.path != "" && every > 0 {
		go policy.Watch(ctx, e.source.path, time.Duration(every), func() {
			select {
			case changed <- struct{}{}:
			case <-ctx.Done():
			}
		})
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			e.reload("SIGHUP")
		case <-changed:
			e.reload("the file changed")
		}
	}
}

// reload puts the gate of the file in force, balances kept. A file that cannot be
// adopted changes nothing.
func (e *edge) reload(why string) {
	if err := e.adopt(); err != nil {
		e.reloads.WithLabelValues("refused").Inc()
		e.log.Error("reload refused: the old policy stays in force", "because", why, "error", err)
		return
	}
	e.reloads.WithLabelValues("adopted").Inc()
	e.log.Info("reloaded", "because", why)
}

func (e *edge) adopt() error {
	c, err := e.source.load(nil)
	if err != nil {
		return err
	}
	if c.doc.Empty() && e.source.path != "" {
		return fmt.Errorf("%s is empty: half written?", e.source.path)
	}
	e.adopting.Lock()
	defer e.adopting.Unlock()
	undone := e.changed
	if err := e.enforce(c); err != nil {
		return err
	}
	if e.changed = false; undone {
		e.log.Warn("what was changed at run time is undone: the file is in force")
	}
	return nil
}

// enforce puts c in force whole, certificate included, or not at all. It is called with
// adopting held.
func (e *edge) enforce(c *settings) error {
	e.store.Begin()
	if err := e.update(c); err != nil {
		e.store.Refuse()
		return err
	}
	e.store.Adopt()
	e.inForce.Store(c)
	for _, field := range differences(e.settings.Config, c.Config) {
		e.log.Warn("takes effect at the next start", "field", field)
	}
	return nil
}

// update changes the gate last: what comes before it changes nothing, and what comes
// after it cannot fail.
func (e *edge) update(c *settings) error {
	opts, err := e.options(c)
	if err != nil {
		return err
	}
	cert, err := c.TLS.load()
	if err != nil {
		return err
	}
	c.derive()
	if err := e.gate.Update(opts); err != nil {
		return err
	}
	e.cert.Store(cert)
	return nil
}

// options are those of the gate, of a configuration that is right as a whole.
func (e *edge) options(c *settings) (admission.Options, error) {
	resources := e.resources()
	opts, err := c.GateOptions(resources)
	if err != nil {
		return opts, c.doc.At(err)
	}
	_, err = c.OutboundOptions(resources)
	return opts, c.doc.At(err)
}

// differences are the fields that a reload does not touch and that have changed
// since the start.
func differences(old, now Config) (fields []string) {
	for _, f := range []struct {
		name    string
		changed bool
	}{
		{"listen", old.Listen != now.Listen},
		{"admin", old.Admin != now.Admin},
		{"admin_token_file", old.Token != now.Token},
		{"admin_hosts", !slices.Equal(old.Hosts, now.Hosts)},
		{"upstream", !sameUpstream(old.Upstream, now.Upstream)},
		{"http2", old.HTTP2 != now.HTTP2},
		{"header_timeout", old.Header != now.Header},
		{"idle_timeout", old.Idle != now.Idle},
		{"stall_timeout", old.Stall != now.Stall},
		{"max_body", old.MaxBody != now.MaxBody},
		{"body_rate", old.BodyRate != now.BodyRate},
		{"upgrades", !slices.Equal(old.Upgrades, now.Upgrades)},
		{"underscores", old.Underscores != now.Underscores},
		{"drain", old.Drain != now.Drain},
		{"watch", old.Watch != now.Watch},
		{"outbound", !reflect.DeepEqual(old.Outbound, now.Outbound)},
	} {
		if f.changed {
			fields = append(fields, f.name)
		}
	}
	return fields
}

func sameUpstream(a, b Upstream) bool {
	a.parsed, b.parsed = nil, nil
	return a == b
}
