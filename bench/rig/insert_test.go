package rig

import "testing"

func TestWordsAreAsTheyAreTyped(t *testing.T) {
	if got, want := Words([]string{"-only", "2x, even", "-name", "it's", "-for", "12s", ""}), `-only '2x, even' -name 'it'\''s' -for 12s ''`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
