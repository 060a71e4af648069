package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/priority"
)

// The scalars read their own text, so that an error knows its line, and so that
// 1.5 is no whole number.
type (
	// Int is a whole number.
	Int int
	// Bytes is a size: 512, 64KiB, 16MiB, 1GiB.
	Bytes int64
	// Number is a number with or without decimals.
	Number float64
	// Duration is a time as Go writes it: 250ms, 1.5s, 5m, 24h.
	Duration time.Duration
	// Wait is a Duration, or none.
	Wait time.Duration
	// Rate is how often: 50/s, 600/m, 10/h, 1000/d.
	Rate rate.Limit
	// Level is a level's name: batch, normal, high, critical.
	Level priority.Level
)

// scalar reads the text of node with parse.
func scalar[T any](node ast.Node, into *T, want string, parse func(string) (T, error)) error {
	text, ok := textOf(node)
	if !ok {
		return &yaml.SyntaxError{Message: "must be " + want, Token: node.GetToken()}
	}
	value, err := parse(text)
	if err != nil {
		return &yaml.SyntaxError{Message: fmt.Sprintf("must be %s, not %q", want, text), Token: node.GetToken()}
	}
	*into = value
	return nil
}

func textOf(node ast.Node) (string, bool) {
	n, ok := resolve(node).(ast.ScalarNode)
	if !ok {
		return "", false
	}
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value, true
	}
	return n.GetToken().Value, true
}

// UnmarshalYAML reads a whole number.
func (i *Int) UnmarshalYAML(n ast.Node) error {
	return scalar(n, i, "a whole number", func(s string) (Int, error) {
		v, err := strconv.Atoi(s)
		return Int(v), err
	})
}

// UnmarshalYAML reads a number.
func (f *Number) UnmarshalYAML(n ast.Node) error {
	return scalar(n, f, "a number", func(s string) (Number, error) {
		v, err := strconv.ParseFloat(s, 64)
		return Number(v), err
	})
}

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(n ast.Node) error {
	return scalar(n, d, "a time such as 250ms or 5s", func(s string) (Duration, error) {
		v, err := time.ParseDuration(s)
		return Duration(v), err
	})
}

// UnmarshalYAML reads a duration, or the word none.
func (w *Wait) UnmarshalYAML(n ast.Node) error {
	return scalar(n, w, "a time such as 250ms, or none", func(s string) (Wait, error) {
		if s == "none" {
			return -1, nil
		}
		v, err := time.ParseDuration(s)
		if v < 0 {
			err = errors.New("negative")
		}
		return Wait(v), err
	})
}

// UnmarshalYAML reads a level's name.
func (l *Level) UnmarshalYAML(n ast.Node) error {
	return scalar(n, l, "batch, normal, high or critical", func(s string) (Level, error) {
		v, ok := priority.Parse(s)
		if !ok {
			return 0, errors.New("unknown")
		}
		return Level(v), nil
	})
}

// UnmarshalYAML reads a rate.
func (r *Rate) UnmarshalYAML(n ast.Node) error {
	return scalar(n, r, "a rate such as 50/s, 600/m, 10/h or 1000/d", parseRate)
}

var spans = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

func parseRate(s string) (Rate, error) {
	count, unit, ok := strings.Cut(s, "/")
	span := spans[strings.TrimSpace(unit)]
	if !ok || span == 0 {
		return 0, errors.New("no unit")
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(count), 64)
	return Rate(v / span.Seconds()), err
}

// UnmarshalYAML reads a size.
func (b *Bytes) UnmarshalYAML(n ast.Node) error {
	return scalar(n, b, "a size such as 512, 64KiB, 16MiB or 1GiB", parseBytes)
}

func parseBytes(s string) (Bytes, error) {
	unit := int64(1)
	for i, suffix := range []string{"KiB", "MiB", "GiB"} {
		if rest, ok := strings.CutSuffix(s, suffix); ok {
			s, unit = strings.TrimSpace(rest), int64(1)<<(10*(i+1))
			break
		}
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if v > (1<<62)/unit || v < -(1<<62)/unit {
		err = errors.New("too large")
	}
	return Bytes(v * unit), err
}
