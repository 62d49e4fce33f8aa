package teststore

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/bloomjoin/bloomjoin/storage"
)

// failures records the failures of a test.
type failures []string

func (f *failures) Errorf(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// An announcement outside the object fails the test that makes it.
func TestRemoteChecksAnnouncements(t *testing.T) {
	name := filepath.Join(t.TempDir(), "object")
	if err := os.WriteFile(name, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		storage.Range
		wrong bool
	}{
		{storage.Range{Off: 0, Len: 100}, false}, {storage.Range{Off: 99, Len: 1}, false},
		{storage.Range{Off: 99, Len: 2}, true}, {storage.Range{Off: -1, Len: 2}, true}, {storage.Range{Off: 1, Len: 0}, true},
	} {
		var got failures
		remote := &Remote{T: &got, Storage: storage.Local()}
		src, err := remote.Open(t.Context(), storage.Object{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		src.(storage.Prefetcher).Prefetch([]storage.Range{c.Range})()
		if len(got) > 0 != c.wrong {
			t.Errorf("%+v: %q, want a failure: %t", c.Range, got, c.wrong)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}
