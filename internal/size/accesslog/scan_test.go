package accesslog

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

// FuzzFields holds the scanner to encoding/json: on any valid object it finds the
// same fields with the same values.
func FuzzFields(f *testing.F) {
	for _, seed := range []string{`{}`, ` { } `, `{"a":1,"b":"x\"}","c":{"d":["]",{}]} , "e" : null}`, `{"":[],"\\":-1.5e3}`, `{"a":true,"a":false}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		if object = bytes.TrimSpace(object); len(object) == 0 || object[0] != '{' || !json.Valid(object) {
			return
		}
		var want map[string]any
		if err := json.Unmarshal(object, &want); err != nil {
			return // a number json cannot hold
		}
		got := map[string]any{}
		fields(object, func(key, value []byte) {
			var k string
			var v any
			if err := errors.Join(json.Unmarshal([]byte(`"`+string(key)+`"`), &k), json.Unmarshal(value, &v)); err != nil {
				t.Fatalf("%s: key %s value %s: %v", object, key, value, err)
			}
			got[k] = v
		})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %v\nwant %v", object, got, want)
		}
	})
}

func TestLinesPlainAndGzipped(t *testing.T) {
	long := strings.Repeat("x", LongestLine+1)
	text := "one\r\n\n" + long + "\nlast"
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	io.WriteString(z, text)
	z.Close()
	for name, in := range map[string]io.Reader{"plain": strings.NewReader(text), "gzip": &zipped} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for line, err := range Lines(in) {
				if err != nil {
					line = []byte(err.Error())
				}
				got = append(got, string(line))
			}
			if want := []string{"one", "", ErrLong.Error(), "last"}; !reflect.DeepEqual(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestABrokenReaderEndsTheLinesWithItsError(t *testing.T) {
	broken := errors.New("disk on fire")
	in := io.MultiReader(strings.NewReader("one\n"), errReader{broken})
	var last error
	n := 0
	for _, err := range Lines(in) {
		n, last = n+1, err
	}
	if n != 2 || !errors.Is(last, broken) {
		t.Errorf("%d lines, then %v", n, last)
	}
}

type errReader struct{ error }

func (e errReader) Read([]byte) (int, error) { return 0, e.error }
