package arraycopy_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// castLog is a log with a column of texts, in row groups of ten. In the second one is a
// misfit for a cast to int64, "x".
func castLog(t testing.TB, name string) string {
	text := sourcetest.Numbers(40, func(i int) string {
		if i == 13 {
			return "x"
		}
		return fmt.Sprint(i % 5)
	})
	return sourcetest.Write(t, filepath.Join(t.TempDir(), name), 10, sourcetest.Record(t, sourcetest.Checked(t),
		sourcetest.Col{Name: "k", Values: text}, sourcetest.Col{Name: "n", Values: sourcetest.Numbers(40, func(i int) int64 { return int64(i) })}, sourcetest.Col{Name: "row", Values: sourcetest.Numbers(40, func(i int) int64 { return int64(i) })}))
}

// scanError returns the error of a scan of a file.
func scanError(t testing.TB, name string, opts keyscan.Options) error {
	t.Helper()
	opts.Mem = sourcetest.Checked(t)
	files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Mem: opts.Mem}}, name)
	s, err := keyscan.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range arraycopy.Scan(t.Context(), s, source.Split(files, dataset.Shard{})) {
		if err != nil {
			return err
		}
		r.Record.Release()
	}
	return nil
}

// A value that does not fit its cast is an error that names its row group, even if
// another filter drops the row.
func TestMisfitIsAnError(t *testing.T) {
	first := roomtest.ExactOf("k", 1)
	for _, name := range []string{"log.parquet", "log.arrow"} {
		log := castLog(t, name)
		for what, match := range map[string][]dataset.Match{
			"alone":                  {{Filter: (*codec.Filter)(first), Key: "k::int64"}},
			"after one of no rows":   {{Filter: (*codec.Filter)(roomtest.ExactOf("n", 1000))}, {Filter: (*codec.Filter)(first), Key: "k::int64"}},
			"before one of no rows":  {{Filter: (*codec.Filter)(first), Key: "k::int64"}, {Filter: (*codec.Filter)(roomtest.ExactOf("n", 1000))}},
			"of an exclusion":        {{Filter: (*codec.Filter)(roomtest.ExactOf("n", 1000))}, {Filter: (*codec.Filter)(first), Key: "k::int64", NoMatch: true}},
			"in a key of two":        {{Filter: (*codec.Filter)(roomtest.BloomOf(t, "n,n2", 8, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "n", Values: []int64{1}}, sourcetest.Col{Name: "n2", Values: []int64{1}}))), Key: "k::int64,n"}},
			"in a key of two, later": {{Filter: (*codec.Filter)(roomtest.BloomOf(t, "n,n2", 8, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "n", Values: []int64{1}}, sourcetest.Col{Name: "n2", Values: []int64{1}}))), Key: "n,k::int64"}},
		} {
			err := scanError(t, log, keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: match}})
			if !errors.Is(err, keys.ErrMisfit) {
				t.Errorf("%s, %s: %v", name, what, err)
				continue
			}
			for _, want := range []string{name, "column k"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %s: want %q in: %v", name, what, want, err)
				}
			}
			if name == "log.parquet" && !strings.Contains(err.Error(), "row group 2") {
				t.Errorf("%s, %s: want the row group in: %v", name, what, err)
			}
		}
	}
}

// Misfits that become NULL are counted as such, also in dictionaries.
func TestMisfitsAreCounted(t *testing.T) {
	for _, name := range []string{"log.parquet", "log.arrow"} {
		log := castLog(t, name)
		for _, id := range []int64{1, 77} {
			m := dataset.Match{Filter: (*codec.Filter)(roomtest.ExactOf("k", id)), Key: "k::int64", NullMisfits: true}
			got, st := roomtest.Scanned(t, keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{m}, CountNulls: true}}, dataset.Shard{}, log)
			want := 0
			if id == 1 {
				want = 8 // of 0 to 39, those with remainder 1 modulo 5, except 13
			}
			if len(got) != want || st.KeysNull.Load() != 1 {
				t.Errorf("%s, ID %d: %d rows, %d NULLs, want %d rows and 1", name, id, len(got), st.KeysNull.Load(), want)
			}
			m.NoMatch = true
			got, st = roomtest.Scanned(t, keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{m}}}, dataset.Shard{}, log)
			if len(got) != 40-want || st.KeysNull.Load() != 1 {
				t.Errorf("%s, not ID %d: %d rows, %d NULLs, want %d rows and 1", name, id, len(got), st.KeysNull.Load(), 40-want)
			}
		}
	}
}

// Text has no row groups, so an error about it names none, however it was read.
func TestMisfitInText(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ids.csv")
	if err := os.WriteFile(name, []byte("k,n\n1,1\nx,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true, Mem: sourcetest.Checked(t)}}, name)
	for _, column := range []string{"k::int64", "k::int64,n"} {
		o := keyscan.ReadOptions{Key: column, IDs: true, Threads: 1}
		_, _, err := keyscan.Read(t.Context(), source.Split(files, dataset.Shard{}), o, func() (func(*keyscan.Keys) error, error) {
			return func(*keyscan.Keys) error { return nil }, nil
		})
		sourcetest.Says(t, column, err, keys.ErrMisfit, "ids.csv", "column k")
		if err != nil && strings.Contains(err.Error(), "row group") {
			t.Errorf("%s: %v", column, err)
		}
	}
}
