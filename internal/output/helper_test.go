package output

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/storage"
)

func TestMain(m *testing.M) {
	cases.CollectRarely()
	goleak.VerifyTestMain(m)
}

// manifestOf returns the path of the root manifest of an output directory.
func manifestOf(dir string) string { return filepath.Join(publish.ManifestsOf(dir), "manifest.json") }

// stateOf returns the root manifest of an output directory.
func stateOf(t testing.TB, dir string) (s publish.State) {
	t.Helper()
	if err := json.Unmarshal([]byte(sourcetest.Get(t, manifestOf(dir))), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// settled fails the test unless nothing of a run under way stands beside an output
// directory.
func settled(t testing.TB, dir string) {
	t.Helper()
	names := sourcetest.Tree(t, publish.ManifestsOf(dir))
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "settled-0") })
	if len(names) != 2 || names[1] != "manifest.json" || !strings.HasPrefix(names[0], "manifest-0") {
		t.Errorf("manifests of %s: %v, want one generation and its copy", dir, names)
	}
}

// cutShort leaves an output directory as a commit does that ends before all files are published.
func cutShort(t testing.TB, s storage.Storage, dir string) {
	t.Helper()
	for _, name := range []string{publish.ManifestsOf(dir) + "/settled-00000001.json", dir + "/" + publish.Success} {
		if err := s.Delete(t.Context(), storage.Object{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
}

// visible returns the names that readers of a directory take for data or marks.
func visible(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, ".staged") })
}
