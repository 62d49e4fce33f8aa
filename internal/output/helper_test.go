package output

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"go.uber.org/goleak"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

func TestMain(m *testing.M) {
	cases.CollectRarely()
	goleak.VerifyTestMain(m)
}

func fakeFile(name string, groups ...sourcetest.Group) *source.File {
	return source.NewTable(name, dataset.Parquet, &sourcetest.Table{Groups: groups, Mem: memory.DefaultAllocator})
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
	if len(names) != 2 || names[1] != "manifest.json" || !strings.HasPrefix(names[0], "manifest-0") {
		t.Errorf("manifests of %s: %v, want one generation and its copy", dir, names)
	}
}

// open opens files for the test, if they may be in mixed directories.
func open(t testing.TB, opts source.Opening, names ...string) []*source.File {
	t.Helper()
	if opts.Hive == "" {
		opts.Hive = dataset.HiveOff
	}
	files, err := source.Open(t.Context(), names, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := source.Close(files); err != nil {
			t.Error(err)
		}
	})
	return files
}
