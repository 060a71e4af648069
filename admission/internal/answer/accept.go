package answer

import "strings"

// A client may list more than this, but not to its advantage.
const (
	maxAcceptText   = 4 << 10
	maxAcceptRanges = 64
)

// acceptsProblem reports whether an Accept header allows a problem document: the
// most specific range that matches decides, and q=0 forbids. A header that is
// missing or names no range allows everything. application/json counts too:
// clients ask for it and mean any JSON, as in the example of RFC 9457 §3. What
// cannot be read allows nothing, and the client gets a line of text.
func acceptsProblem(lines []string) bool {
	best, allowed, seen := 0, false, 0
	for _, line := range lines {
		if len(line) > maxAcceptText {
			return false
		}
		for line != "" && seen < maxAcceptRanges {
			var item string
			item, line, _ = strings.Cut(line, ",")
			media, params, _ := strings.Cut(item, ";")
			if media = strings.TrimSpace(media); media == "" {
				continue
			}
			seen++
			if rank := problemRank(media); rank > best {
				best, allowed = rank, !forbids(params)
			}
		}
	}
	return allowed || seen == 0
}

// problemRank says how closely a media range describes a problem document; 0: not
// at all.
func problemRank(media string) int {
	switch {
	case strings.EqualFold(media, problemType):
		return 4
	case strings.EqualFold(media, "application/json"):
		return 3
	case strings.EqualFold(media, "application/*"):
		return 2
	case media == "*/*":
		return 1
	}
	return 0
}

// forbids reports whether parameters contain a q of zero.
func forbids(params string) bool {
	for params != "" {
		var p string
		p, params, _ = strings.Cut(params, ";")
		name, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			return zeroQuality(strings.TrimSpace(value))
		}
	}
	return false
}

// zeroQuality reports whether a qvalue is zero: "0", "0.", "0.0" up to "0.000".
func zeroQuality(q string) bool {
	return q != "" && q[0] == '0' && strings.Trim(q[1:], ".0") == ""
}
