package accesslog

import "strings"

// folded stands for whatever names one thing rather than a kind of thing.
const folded = "{}"

// fold puts {} for the parts of a segment that look like an identifier: a number, a
// UUID, a hash, a ULID, an address, anything escaped or unprintable. What stands
// around it stays: 17.json is {}.json, 17:cancel is {}:cancel, order-17 is order-{}.
func fold(segment string) string {
	segment, _, _ = strings.Cut(segment, ";") // ;jsessionid=...
	if segment == "" || segment == "*" {
		return segment
	}
	stem, rest := segment, ""
	if i := strings.IndexAny(segment, ".:"); i > 0 {
		stem, rest = segment[:i], segment[i:]
	}
	if strange(segment) {
		if strange(rest) || strings.Contains(stem, "@") {
			rest = ""
		}
		return folded + suffix(rest)
	}
	if len(stem) > 32 || isUUID(stem) || isRandom(stem) {
		return folded + suffix(rest)
	}
	return collapse(foldParts(stem) + suffix(rest))
}

// suffix folds an extension or a verb, which is short where it is one.
func suffix(s string) string {
	if len(s) > 32 {
		return ""
	}
	return foldParts(s)
}

// strange reports whether a text holds what no name of a route does.
func strange(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool {
		return c == '@' || c == '%' || c == '=' || c <= ' ' || c > '~'
	})
}

// foldParts folds each part between punctuation.
func foldParts(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		end := 0
		for end < len(s) && alnum(s[end]) {
			end++
		}
		part := s[:end]
		if isWhole(part) || isHash(part) || isRandom(part) {
			part = folded
		}
		b.WriteString(part)
		if end < len(s) {
			b.WriteByte(s[end])
			end++
		}
		s = s[end:]
	}
	return b.String()
}

// collapse makes one of neighbours that are folded.
func collapse(s string) string {
	for _, mark := range []string{"-", "_", ".", ":", ",", "~"} {
		for strings.Contains(s, folded+mark+folded) {
			s = strings.ReplaceAll(s, folded+mark+folded, folded)
		}
	}
	return s
}

func alnum(c byte) bool { return digit(c) || letter(c) }
func digit(c byte) bool { return c >= '0' && c <= '9' }
func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
func hexLetter(c byte) bool { return c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func count(s string, is func(byte) bool) (n int) {
	for i := range len(s) {
		if is(s[i]) {
			n++
		}
	}
	return n
}

// isHash: hexadecimal, with a digit, not shorter than Git's short ones.
func isHash(s string) bool {
	d := count(s, digit)
	return len(s) >= 6 && d > 0 && d+count(s, hexLetter) == len(s)
}

// isUUID: 8-4-4-4-12.
func isUUID(s string) bool {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	return count(s, digit)+count(s, hexLetter) == 32
}

// isRandom: what is drawn by lot (a ULID, a nanoid, an opaque key) mixes digits, small
// and capital letters as no word does.
func isRandom(s string) bool {
	digits := count(s, digit)
	small := count(s, func(c byte) bool { return c >= 'a' && c <= 'z' })
	capital := count(s, func(c byte) bool { return c >= 'A' && c <= 'Z' })
	switch {
	case len(s) < 8 || strings.ContainsAny(s, "-_") && (small == 0 || capital == 0):
		return false
	case len(s) >= 20 && digits > 0 && !strings.ContainsAny(s, "-_"):
		return true
	}
	return digits >= 4 && small+capital > 0 && !strings.ContainsAny(s, "-_") || digits >= 2 && small > 0 && capital > 0 && len(s) >= 12
}
