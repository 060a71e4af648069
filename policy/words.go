package policy

import (
	"github.com/headgate-go/headgate/admission"
)

var (
	headerSets = map[string]admission.Headers{
		"ietf-draft-11": admission.IETFDraft11,
		"x-ratelimit":   admission.XRateLimit,
	}
	preflights = map[string]admission.Preflights{
		"":          admission.PreflightsUncharged,
		"uncharged": admission.PreflightsUncharged,
		"as-others": admission.PreflightsAsOthers,
		"answered":  admission.PreflightsAnswered,
	}
	layers = map[string]admission.Layers{
		"rate":     admission.ShadowRate,
		"capacity": admission.ShadowCapacity,
	}
)

// names reads a list of words that stand for bits.
func names[T ~uint8](at place, list []string, known map[string]T) (all T) {
	for _, name := range list {
		bit, ok := known[name]
		if !ok {
			at.wrong(unknown(name, known, ""))
		}
		all |= bit
	}
	return all
}

// word reads one word; known may hold "".
func word[T any](at place, said string, known map[string]T) T {
	value, ok := known[said]
	if !ok {
		at.wrong(unknown(said, known, ""))
	}
	return value
}

// unwatched reads the word for what is made of responses.
func unwatched(at place, word string) bool {
	switch word {
	case "", "watch":
		return false
	case "off":
		return true
	}
	at.wrongf("unknown %q; there are: watch, off", word)
	return false
}
