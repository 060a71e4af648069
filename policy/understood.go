package policy

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headgate-go/headgate/priority"
)

// Understood calls line for each plan of each limit of the gate, and for each key, with
// what the policy makes of it in words. A credential is shown as the first digits of its
// hash. It is for a program's check of a file; call it when GateOptions had no error.
func (p *Policy) Understood(line func(name, text string)) {
	for _, one := range p.Gate.Limits.each() {
		one.limit.understood(one.field, line)
	}
	for _, pattern := range slices.Sorted(maps.Keys(p.Gate.Routes)) {
		p.Gate.Routes[pattern].Rate.understood("route "+pattern, line)
	}
	for _, c := range p.Gate.Callers {
		c.understood(line)
	}
}

func (l *limit) understood(where string, line func(name, text string)) {
	if l == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(l.Plans)) {
		line("plan "+name, l.Plans[name].words(l)+" (of "+where+")")
	}
	for i := range l.And {
		l.And[i].understood(where+", "+cmp.Or(l.And[i].Name, l.And[i].Counts), line)
	}
}

// words says what a plan gives; l is the limit it belongs to.
func (p plan) words(l *limit) string {
	if p.Allow == "everything" || p.Allow == "nothing" {
		return p.Allow
	}
	text := "the numbers of callers without a plan"
	switch {
	case l.Each != "":
		text = fmt.Sprintf("%d each %s", p.Count, l.Each)
	case l.Per != 0:
		text = fmt.Sprintf("%d in %v", p.Count, time.Duration(l.Per))
	case p.Rate != 0 || p.Burst != 0:
		text = fmt.Sprintf("%.4g a second, burst %d", float64(p.Rate), p.Burst)
	}
	if p.Cost > 0 {
		text += fmt.Sprintf(", cost × %d", p.Cost)
	}
	if p.Level != "" {
		text += ", level " + p.Level + " or above"
	}
	if p.Share != 0 {
		text += fmt.Sprintf(", at most %.4g of the slots", float64(p.Share))
	}
	if p.Weight > 0 {
		text += fmt.Sprintf(", weight %d", p.Weight)
	}
	return text
}

func (c identity) understood(line func(name, text string)) {
	for _, part := range c.Join {
		part.understood(line)
	}
	if c.APIKey == nil {
		return
	}
	for _, k := range c.APIKey.Keys {
		if sum, err := k.digest(); err == nil {
			line("key "+k.called(sum), k.words(string(c.APIKey.Header), sum))
		}
	}
}

func (k key) called(sum digest) string {
	if k.Name != "" {
		return k.Name
	}
	return k.short(sum)
}

func (k key) short(sum digest) string { return hex.EncodeToString(sum[:4]) + "…" }

func (k key) words(header string, sum digest) string {
	parts := []string{header + " with sha256 " + k.short(sum)}
	if k.Plan != "" {
		parts = append(parts, "plan "+k.Plan)
	}
	if k.AtLeast != nil {
		parts = append(parts, "level "+priority.Level(*k.AtLeast).String()+" or above")
	}
	if k.AtMost != nil {
		parts = append(parts, "level "+priority.Level(*k.AtMost).String()+" or below")
	}
	if k.Alias != "" {
		parts = append(parts, "shown as "+k.Alias)
	}
	return strings.Join(parts, ", ")
}
