package parquet_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// Every page index of the corpora is read or refused without a panic. All indexes
// of valid files are valid.
func TestIndexCorpus(t *testing.T) {
	indexes := 0
	for _, path := range corpus(t) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parquet.Open(nil, strings.NewReader(string(b)), int64(len(b)), filepath.Base(path))
		if err != nil {
			continue
		}
		broken := strings.Contains(path, "fuzzing") || strings.Contains(path, "bad_data")
		for g := range f.RowGroups {
			for l := range f.Leaves {
				x, ok, err := f.OffsetIndex(g, l)
				if ok {
					_, _, err = f.ColumnIndex(g, l, x)
					indexes++
				}
				switch {
				case err == nil:
				case !broken:
					t.Errorf("%v (%s)", err, f.Metadata.CreatedBy)
				case !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported):
					t.Errorf("neither corrupt nor unsupported: %v", err)
				}
			}
		}
	}
	if indexes < 100 {
		t.Errorf("only %d indexes", indexes)
	}
}
