package source_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// Check also reads the page indexes, which a scan needs but reading all rows does not.
func TestCheckReadsIndexes(t *testing.T) {
	in := roomtest.Logs(t)
	for _, which := range []string{"offset index", "column index"} {
		b, err := os.ReadFile(filepath.Join(in, "a.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), "a.parquet")
		sourcetest.Put(t, name, string(b))
		at := int64(0)
		for _, broken := range []bool{false, true} {
			if broken {
				b[at] ^= 0xff
				sourcetest.Put(t, name, string(b))
			}
			files, err := source.Open(t.Context(), []string{name}, source.Opening{OpenOptions: source.OpenOptions{}})
			if err != nil {
				t.Fatal(err)
			}
			c := files[0].Parquet().File().Metadata.RowGroups[1].Columns[1]
			if at = c.OffsetIndexOffset; which == "column index" {
				at = c.ColumnIndexOffset
			}
			if at == 0 {
				t.Fatalf("no %s", which)
			}
			if err := files[0].Check(t.Context(), 1); errors.Is(err, fault.ErrCorrupt) != broken || (err != nil) != broken {
				t.Errorf("%s, broken %t: %v", which, broken, err)
			}
			if err := source.Close(files); err != nil {
				t.Error(err)
			}
		}
	}
}
