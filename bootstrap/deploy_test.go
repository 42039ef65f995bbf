package bootstrap

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A setting that was renamed would else be noticed by the pods that do not start.
func TestDeliveryNamesKnownSettingsAlone(t *testing.T) {
	t.Parallel()
	var known []string
	for _, s := range Settings() {
		known = append(known, s.Variable)
	}
	word := regexp.MustCompile(`\bSECKILL_[A-Z0-9_]+`)
	seen := 0
	err := fs.WalkDir(os.DirFS("deploy"), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(path, "check/") {
			return err
		}
		text, err := os.ReadFile("deploy/" + path)
		for _, name := range word.FindAllString(string(text), -1) {
			seen++
			if !slices.Contains(known, name) {
				t.Errorf("%s: %s is no setting", path, name)
			}
		}
		return err
	})
	if err != nil || seen == 0 {
		t.Errorf("%d names, error %v", seen, err)
	}
}
