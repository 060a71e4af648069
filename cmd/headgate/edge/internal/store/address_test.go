package store

import (
	"strings"
	"testing"
)

func TestEveryFormOfAnAddress(t *testing.T) {
	for _, c := range []struct {
		text, kind string
		secure     bool
		hosts      string
		user, word string
		db         int
		master     string
	}{
		{"redis://h", single, false, "h:6379", "", "", 0, ""},
		{"redis://me:p%40ss@h:7000/3", single, false, "h:7000", "me", "p@ss", 3, ""},
		{"rediss://h:7000?dial_timeout=3s", single, true, "h:7000", "", "", 0, ""},
		{"redis://[::1]", single, false, "[::1]:6379", "", "", 0, ""},
		{"unix:///run/redis.sock?db=2", single, false, "", "", "", 2, ""},
		{"unix://me:pass@/run/redis.sock", single, false, "", "me", "pass", 0, ""},
		{"redis://h1:1,h2,[::1]:3", cluster, false, "h1:1 h2:6379 [::1]:3", "", "", 0, ""},
		{"redis-cluster://me:pass@h1:1,h2:2", cluster, false, "h1:1 h2:2", "me", "pass", 0, ""},
		{"rediss-cluster://h1", cluster, true, "h1:6379", "", "", 0, ""},
		{"redis-sentinel://me:pass@s1,s2:5/4?master=m", sentinel, false, "s1:26379 s2:5", "me", "pass", 4, "m"},
		{"rediss-sentinel://s1#m", sentinel, true, "s1:26379", "", "", 0, "m"},
	} {
		a, err := parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if a.kind != c.kind || a.secure != c.secure || strings.Join(a.hosts, " ") != c.hosts || a.params.Get("master") != c.master ||
			a.common.Username != c.user || a.common.Password != c.word || a.common.DB != c.db {
			t.Errorf("%s: %+v, %+v", c.text, a, a.common)
		}
		if _, err := client(a); err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

func TestWhatIsNoAddressSaysWhatIs(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "redis-cluster://host1",
		"h:6379":                    "redis-sentinel://host1",
		"http://h":                  "must be one of",
		"redis-sentinel://h":        "add ?master=name",
		"redis://h?master=m":        "say redis-sentinel://",
		"redis-cluster://h/3":       "one database",
		"redis://h?ca=x":            "say rediss://",
		"redis-cluster://h?ca=x":    "say rediss-cluster://",
		"rediss://h?cert=x":         "cert and key",
		"redis://h?nonsense=1":      "nonsense",
		"redis://u:secret@h:port/x": "",
	} {
		_, err := parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the password is told: %v", text, err)
		}
	}
	a, err := parse("rediss://h?ca=/does/not/exist")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client(a); err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Errorf("a missing CA: %v", err)
	}
}

func TestAPasswordIsNeverShown(t *testing.T) {
	for text, want := range map[string]string{
		"redis://h:1":                                 "redis://h:1",
		"redis://me:secret@h:1/2":                     "redis://me:…@h:1/2",
		"rediss://:secret@h?ca=x":                     "rediss://:…@h?ca=x",
		"redis-cluster://a:b:c@h,i":                   "redis-cluster://a:…@h,i",
		"redis://me:sec@ret@h:1/2":                    "redis://me:…@h:1/2",
		"redis-sentinel://h?sentinel_password=secret": "redis-sentinel://h?sentinel_password=…",
		"": "",
	} {
		if got := Redacted(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}
