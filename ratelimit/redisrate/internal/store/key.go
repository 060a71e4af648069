package store

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/headgate-go/headgate/ratelimit"
)

// Keys look like headgate:v1:{name:space:id}:b. The braces make what is between
// them the cluster's hash tag, so everything kept for one operation shares a slot
// and operations spread; so nothing a caller sends may contain a brace.
const (
	keyPrefix = "headgate:v1:{"
	maxTag    = 128 // bytes; longer ones are cut and carry a digest
	cutTag    = 64
)

// BucketKey is where a caller's bucket is kept. Different (name, space, id) give
// different keys, except by a collision of 128 bits of SHA-256.
func BucketKey(name string, k ratelimit.Key) string {
	return keyPrefix + tag(escape(name)+":"+escape(k.Space)+":"+escape(k.ID)) + "}:b"
}

// BillKey is where the bucket called name keeps the last bill of the process id, in the
// same slot of a cluster.
func BillKey(name, id string) string { return strings.TrimSuffix(name, "b") + "d:" + id }

// PeersKey is where the processes of a limit are counted.
func PeersKey(name string) string { return keyPrefix + tag(escape(name)) + "}:peers" }

// SlotsKey is where the slots of a semaphore are kept.
func SlotsKey(name string) string { return keyPrefix + tag(escape(name)) + "}:slots" }

func tag(s string) string {
	if len(s) <= maxTag {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	cut := cutTag
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "~" + hex.EncodeToString(sum[:16])
}

const hexDigits = "0123456789ABCDEF"

// escape writes the bytes that mean something in a key, and those that spoil a
// terminal, as %XX.
func escape(s string) string {
	if strings.IndexFunc(s, special) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if special(r) || r == utf8.RuneError {
			for _, c := range []byte(s[i : i+n]) {
				b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
			}
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

func special(r rune) bool {
	return r <= ' ' || r == 0x7f || strings.ContainsRune("{}%:~", r)
}
