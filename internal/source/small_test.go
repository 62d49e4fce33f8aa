package source_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// TestDigestsAtOpen checks that fingerprints made while files are opened are those made later,
// whatever the size, and that the files are the same otherwise.
func TestDigestsAtOpen(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for i, n := range []int{0, 1, 5000, 8100, 8200, 40_000} {
		name := filepath.Join(dir, fmt.Sprint(i, ".parquet"))
		values := sourcetest.Numbers(n, func(i int) int64 { return int64(i) * 0x61c8864680b583eb })
		names = append(names, sourcetest.Write(t, name, 3000, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: values})))
	}
	later := roomtest.Open(t, source.Opening{}, names...)
	atOpen := roomtest.Open(t, source.Opening{Digests: true}, names...)
	for i, f := range atOpen {
		read := f.BytesRead()
		got, err := f.Fingerprint()
		want, err2 := later[i].Fingerprint()
		if err != nil || err2 != nil || !bytes.Equal(got, want) || len(got) != 16 {
			t.Errorf("%s, %d bytes: %x, %v; later: %x, %v", f.Name(), f.Size(), got, err, want, err2)
		}
		if small := f.Size() <= 256<<10; small && (read != f.Size() || f.BytesRead() != read) {
			t.Errorf("%s: %d of %d bytes read by opening it, and %d then", f.Name(), read, f.Size(), f.BytesRead()-read)
		}
		sourcetest.Equal(t, f.Name()+": row groups", f.NumGroups(), later[i].NumGroups())
		sourcetest.Equal(t, f.Name()+": rows", f.Rows(), later[i].Rows())
		for g := range f.NumGroups() {
			if err := f.Check(t.Context(), g); err != nil {
				t.Error(err)
			}
		}
	}
}
