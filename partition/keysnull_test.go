package partition

import (
	"path/filepath"
	"testing"
)

// TestManifestCountsNulls: the root manifest has the rows of each input, with those that have
// no key, as [Written] has them.
func TestManifestCountsNulls(t *testing.T) {
	in, out := t.TempDir(), filepath.Join(t.TempDir(), "out")+"/"
	write(t, filepath.Join(in, "a.parquet"), 4, record(t, checked(t), col{"id", []any{1, nil, 3, nil, nil}}))
	write(t, filepath.Join(in, "b.parquet"), 4, record(t, checked(t), col{"id", []any{nil, 3}}))
	files := open(t, OpenOptions{}, in)
	s, err := NewScanner(ScanOptions{Match: []Match{{Filter: exactOf("id", 3)}}})
	if err != nil {
		t.Fatal(err)
	}
	run := runOf(1)
	run.Log = files
	w, err := Output{Name: out, Result: ResultExact, Run: run}.WriteScan(t.Context(), s, Split(files, Shard{}), files, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range stateOf(t, out).Inputs {
		want := [4]int64{5, 1, 1, 3}
		if i == 1 {
			want = [4]int64{2, 1, 1, 1}
		}
		equal(t, e.Input, [4]int64{e.RowsIn, e.RowsKept, e.RowsOut, e.KeysNull}, want)
		equal(t, e.Input+" as written", w.Inputs[i].KeysNull, want[3])
	}
}
