package main

import (
	"os"
	"testing"
)

func TestTheReferencesSayWhatTheCodeSays(t *testing.T) {
	t.Parallel()
	for name, want := range pages() {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s is not what the code says (%v): make generate", name, err)
		}
	}
}
