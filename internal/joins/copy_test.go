package joins_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// view is a row of a log, member one of an ID set. parquet-go writes both and reads the
// answers, as an independent implementation.
type view struct {
	Row  int64    `parquet:"row"`
	User *int64   `parquet:"user,optional,dict"`
	Name string   `parquet:"name"`
	Tags []string `parquet:"tags,list"`
}

type member struct {
	User int64  `parquet:"user"`
	Name string `parquet:"name"`
}

func views(rng *rand.Rand, n, first int) []view {
	out := make([]view, n)
	for i := range out {
		out[i] = view{Row: int64(first + i), Tags: slices.Repeat([]string{"t"}, rng.IntN(3))}
		if rng.IntN(9) > 0 {
			user := rng.Int64N(400) - 50
			out[i].User = &user
		}
		out[i].Name = fmt.Sprint("name", rng.IntN(300))
	}
	return out
}

func save[T any](t testing.TB, path string, rows []T, opts ...pq.WriterOption) string {
	t.Helper()
	if err := pq.WriteFile(path, rows, opts...); err != nil {
		t.Fatal(err)
	}
	return path
}

// copied joins into an output file.
func copied(t testing.TB, ids, logs []string, opts join.Options, out string, end func() error) (join.Report, error) {
	t.Helper()
	j, err := join.New(open(t, partition.OpenOptions{}, ids...), open(t, partition.OpenOptions{}, logs...), opts)
	if err != nil {
		t.Fatal(err)
	}
	_, err = room(j).Write(t.Context(), exactly(out), end)
	return j.Report(), err
}

// Every log row is in either the semi or the anti join, whatever the key, the filter,
// the pages and the number of workers. The bytes of each output are always the same.
func TestWriteDivides(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	dir := t.TempDir()
	rows := views(rng, 3000, 0)
	var ids []member
	for range 120 {
		ids = append(ids, member{rng.Int64N(400) - 50, fmt.Sprint("name", rng.IntN(300))})
	}
	in := save(t, filepath.Join(dir, "ids.parquet"), ids)
	for on, is := range map[string]func(v view, m member) bool{
		"user":      func(v view, m member) bool { return v.User != nil && *v.User == m.User },
		"name":      func(v view, m member) bool { return v.Name == m.Name },
		"user,name": func(v view, m member) bool { return v.User != nil && *v.User == m.User && v.Name == m.Name },
	} {
		var want [2][]int64 // semi, anti
		for _, v := range rows {
			kind := 1
			if slices.ContainsFunc(ids, func(m member) bool { return is(v, m) }) {
				kind = 0
			}
			want[kind] = append(want[kind], v.Row)
		}
		for _, page := range []int{300, 1 << 20} {
			log1 := save(t, filepath.Join(dir, "log1.parquet"), rows[:1800], pq.MaxRowsPerRowGroup(700), pq.PageBufferSize(page), pq.DataPageVersion(1))
			log2 := save(t, filepath.Join(dir, "log2.parquet"), rows[1800:], pq.PageBufferSize(page))
			for kind, typ := range []join.Type{join.Semi, join.Anti} {
				var first []byte
				for _, threads := range []int{1, 4} {
					for _, fpr := range []float64{0, 0.4} {
						what := fmt.Sprintf("%s join on %s, %d threads, pages of %d bytes", typ, on, threads, page)
						out := filepath.Join(t.TempDir(), "out.parquet")
						report, err := copied(t, []string{in}, []string{log1, log2}, join.Options{On: on, Type: typ, Threads: threads, FPR: fpr}, out, nil)
						if err != nil {
							t.Fatal(what, err)
						}
						if report.RowsIn != 3000 || report.RowsOut != int64(len(want[kind])) {
							t.Errorf("%s: %d rows of %d, want %d", what, report.RowsOut, report.RowsIn, len(want[kind]))
						}
						b, err := os.ReadFile(out)
						if err != nil {
							t.Fatal(err)
						}
						if first == nil {
							first = b
							checkViews(t, what, b, rows, want[kind])
						}
						if !bytes.Equal(b, first) {
							t.Errorf("%s: other bytes than by one thread", what)
						}
					}
				}
			}
		}
	}
}

// checkViews compares an output with rows of the log.
func checkViews(t testing.TB, what string, file []byte, rows []view, want []int64) {
	t.Helper()
	got, err := pq.Read[view](bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(what, err)
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
		return
	}
	for i, g := range got {
		w := rows[want[i]]
		sameUser := (g.User == nil) == (w.User == nil) && (g.User == nil || *g.User == *w.User)
		if g.Row != w.Row || !sameUser || g.Name != w.Name || !slices.Equal(g.Tags, w.Tags) {
			t.Errorf("%s: row %d: got %+v, want %+v", what, i, g, w)
			return
		}
	}
}

// A failure at the very end keeps the answer from becoming visible.
func TestWriteEnds(t *testing.T) {
	dir := t.TempDir()
	ids := save(t, filepath.Join(dir, "ids.parquet"), []member{{User: 3}})
	log := save(t, filepath.Join(dir, "log.parquet"), views(rand.New(rand.NewPCG(4, 4)), 500, 0))
	late := errors.New("the filter has changed")
	out := filepath.Join(dir, "out.parquet")
	for _, typ := range []join.Type{join.Semi, join.Anti} {
		_, err := copied(t, []string{ids}, []string{log}, join.Options{On: "user", Type: typ}, out, func() error { return late })
		if !errors.Is(err, late) {
			t.Errorf("%s: %v, want %v", typ, err, late)
		}
		if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the output is there: %v", typ, err)
		}
	}
}
