package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/priority"
)

// The scalars read their text as it stands in the file, so that 1.5 is no whole number
// and 5 no time.
type (
	// Int is a whole number.
	Int int
	// Bytes is a size: 512, 64KiB, 16MiB, 1GiB.
	Bytes int64
	// Number is a number with or without decimals.
	number float64
	// Duration is a time as Go writes it: 250ms, 1.5s, 5m, 24h.
	Duration time.Duration
	// Wait is a Duration, or none.
	wait time.Duration
	// Rate is how often: 50/s, 600/m, 10/h, 1000/d.
	perSecond rate.Limit
	// Level is a level's name: batch, normal, high, critical.
	level priority.Level
	// HeaderName is the name of a header field, or nothing.
	headerName string
)

// scalar sets what into points to from text.
func scalar[T any](text []byte, into *T, want string, parse func(string) (T, error)) error {
	value, err := parse(string(text))
	if err != nil {
		return fmt.Errorf("must be %s, not %q", want, text)
	}
	*into = value
	return nil
}

// UnmarshalText reads a whole number.
func (i *Int) UnmarshalText(text []byte) error {
	return scalar(text, i, "a whole number", func(s string) (Int, error) {
		v, err := strconv.Atoi(s)
		return Int(v), err
	})
}

// UnmarshalText reads a number.
func (f *number) UnmarshalText(text []byte) error {
	return scalar(text, f, "a number", func(s string) (number, error) {
		v, err := strconv.ParseFloat(s, 64)
		return number(v), err
	})
}

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	return scalar(text, d, "a time such as 250ms or 5s", func(s string) (Duration, error) {
		v, err := time.ParseDuration(s)
		return Duration(v), err
	})
}

// UnmarshalText reads a duration, or the word none.
func (w *wait) UnmarshalText(text []byte) error {
	return scalar(text, w, "a time such as 250ms, or none", func(s string) (wait, error) {
		if s == "none" {
			return -1, nil
		}
		v, err := time.ParseDuration(s)
		if v < 0 {
			err = errors.New("negative")
		}
		return wait(v), err
	})
}

// UnmarshalText reads a level's name.
func (l *level) UnmarshalText(text []byte) error {
	return scalar(text, l, "batch, normal, high or critical", func(s string) (level, error) {
		v, ok := priority.Parse(s)
		if !ok {
			return 0, errors.New("unknown")
		}
		return level(v), nil
	})
}

// UnmarshalText reads a rate.
func (r *perSecond) UnmarshalText(text []byte) error {
	return scalar(text, r, "a rate such as 50/s, 600/m, 10/h or 1000/d", parseRate)
}

var spans = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

func parseRate(s string) (perSecond, error) {
	count, unit, ok := strings.Cut(s, "/")
	span := spans[strings.TrimSpace(unit)]
	if !ok || span == 0 {
		return 0, errors.New("no unit")
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(count), 64)
	return perSecond(v / span.Seconds()), err
}

// UnmarshalText reads a size.
func (b *Bytes) UnmarshalText(text []byte) error {
	return scalar(text, b, "a size such as 512, 64KiB, 16MiB or 1GiB", parseBytes)
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

// UnmarshalText reads the name of a header field.
func (h *headerName) UnmarshalText(text []byte) error {
	return scalar(text, h, "the name of a header field", func(s string) (headerName, error) {
		if strings.Trim(s, "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
			return "", errors.New("another character")
		}
		return headerName(s), nil
	})
}
