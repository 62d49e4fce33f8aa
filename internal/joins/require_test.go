package joins_test

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// TestRequire: an answer that just meets its requirements passes. If it just misses
// one, Run returns an error after the last row, and Write before anything is visible.
func TestRequire(t *testing.T) {
	// Of 20 IDs, five (15 to 19) are among the 40 log rows, the last of which has no
	// key.
	ids := open(t, partition.OpenOptions{}, writeTable(t, table(t, numbers("k", arrow.PrimitiveTypes.Int64, 0, 20)), 2, 1, ""))
	log := numbers("k", arrow.PrimitiveTypes.Int64, 15, 55)
	log.values[39] = "NULL"
	logs := open(t, partition.OpenOptions{}, writeTable(t, table(t, log), 3, 2, ""))
	rows := map[join.Type]int64{join.Semi: 5, join.Anti: 35, join.Inner: 5, join.Left: 40, join.Right: 20, join.Full: 55}
	kept := map[join.Type]float64{join.Semi: 5. / 40, join.Anti: 35. / 40, join.Inner: 5. / 40, join.Right: 5. / 40}
	for _, typ := range types {
		for k, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
			opts := join.Options{On: "k", Type: typ, Strategy: strategy}
			met := dataset.Require{Rows: rows[typ], IDsMatched: 5. / 20, MaxKept: kept[typ]}
			for i, c := range []struct {
				missed dataset.Require
				unmet  unmet
			}{
				{dataset.Require{}, unmet{}},
				{met, unmet{}},
				{dataset.Require{Rows: rows[typ] + 1}, unmet{What: "rows of the answer", Want: fmt.Sprint(rows[typ]+1, " or more"), Got: fmt.Sprint(rows[typ])}},
				{dataset.Require{IDsMatched: math.Nextafter(5./20, 1)}, unmet{What: "IDs that have a row in the log", Want: "25% or more", Got: "5 of 20 (25%)"}},
				{dataset.Require{IDsMatched: 1}, unmet{What: "IDs that have a row in the log", Want: "100% or more", Got: "5 of 20 (25%)"}},
				{dataset.Require{MaxKept: math.Nextafter(kept[typ], 0)}, unmet{What: "rows of the log that are kept",
					Want: fmt.Sprintf("%.6g%% or less", 100*kept[typ]), Got: fmt.Sprintf("%.0f of 40 (%.5g%%)", 40*kept[typ], 100*kept[typ])}},
			} {
				if kept[typ] == 0 && strings.HasPrefix(c.unmet.What, "rows of the log") {
					continue // these joins keep all rows
				}
				opts.Require = c.missed
				ok := c.unmet == unmet{}
				name := fmt.Sprint(typ, strategy, c.missed)
				got, err := run(t, ids, logs, opts)
				checkRequire(t, name, err, c.unmet)
				if int64(len(got.rows)) != rows[typ] {
					t.Errorf("%s: %d rows, want %d", name, len(got.rows), rows[typ])
				}
				outs := []string{"out.parquet", "out.arrow", "out/"}
				for o, out := range outs {
					if (o+i+k)%len(outs) != 0 && !cases.All() { // one for each combination
						continue
					}
					dir := t.TempDir()
					ended := false
					j, err := join.New(ids, logs, opts)
					if err != nil {
						t.Fatal(err)
					}
					_, err = room(j).Write(t.Context(), exactly(filepath.Join(dir, out)+strings.Repeat("/", strings.Count(out, "/"))), func() error {
						ended = true
						return nil
					})
					checkRequire(t, name+out, err, c.unmet)
					// A directory checks the requirement itself, over all of its inputs, after end.
					if left := standing(t, dir); ok != ended && (ok || out != "out/") || ok == (len(left) == 0) {
						t.Errorf("%s %s: end called %v, %v stands there", name, out, ended, left)
					}
				}
			}
		}
	}
}

// standing lists what is below a directory, including hidden files.
func standing(t *testing.T, dir string) (names []string) {
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// unmet is a requirement that is not met.
type unmet struct{ What, Want, Got string }

func checkRequire(t *testing.T, name string, err error, want unmet) {
	t.Helper()
	if want == (unmet{}) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	text := fmt.Sprintf("a requirement is not met: %s: want %s, got %s", want.What, want.Want, want.Got)
	if !errors.Is(err, partition.ErrRequire) || !strings.HasSuffix(err.Error(), text) {
		t.Errorf("%s: %v, want that %+v", name, err, want)
	}
}

// TestRequireOfNothing: empty sides, and an error with all unmet requirements.
func TestRequireOfNothing(t *testing.T) {
	some := open(t, partition.OpenOptions{}, writeTable(t, table(t, numbers("k", arrow.PrimitiveTypes.Int64, 0, 9)), 1, 1, ""))
	none := open(t, partition.OpenOptions{}, writeTable(t, table(t, numbers("k", arrow.PrimitiveTypes.Int64, 0, 0)), 1, 1, ""))
	_, err := run(t, none, some, join.Options{On: "k", Require: dataset.Require{IDsMatched: 0.01, MaxKept: 0.01}})
	checkRequire(t, "no IDs", err, unmet{What: "IDs that have a row in the log", Want: "1% or more", Got: "0 of 0"})
	_, err = run(t, some, none, join.Options{On: "k", Require: dataset.Require{MaxKept: 0.01}})
	checkRequire(t, "no log", err, unmet{})
	_, err = run(t, none, some, join.Options{On: "k", Type: join.Anti, Require: dataset.Require{Rows: 10, IDsMatched: 0.5, MaxKept: 0.5}})
	want := "a requirement is not met: rows of the answer: want 10 or more, got 9; IDs that have a row in the log: want 50% or more, got 0 of 0; rows of the log that are kept: want 50% or less, got 9 of 9 (100%)"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestRequireRefusals: requirements that cannot apply are refused before anything is
// read.
func TestRequireRefusals(t *testing.T) {
	ids, logs := files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 0, 3)), files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 0, 3))
	for _, c := range []struct {
		typ  join.Type
		r    dataset.Require
		word string
	}{
		{join.Semi, dataset.Require{Rows: -1}, "rows -1"},
		{join.Semi, dataset.Require{IDsMatched: 1.01}, "1.01"},
		{join.Semi, dataset.Require{IDsMatched: math.NaN()}, "NaN"},
		{join.Semi, dataset.Require{MaxKept: -0.1}, "-0.1"},
		{join.Left, dataset.Require{MaxKept: 0.5}, "unsupported"},
		{join.Full, dataset.Require{MaxKept: 0.5}, "unsupported"},
	} {
		if _, err := join.New(ids, logs, join.Options{On: "k", Type: c.typ, Require: c.r}); err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s %+v: %v, want %q", c.typ, c.r, err, c.word)
		}
	}
}

// repeated is a column that has each value the given number of times, in random order.
func repeated(name string, times map[int]int) column {
	c := column{name: name, dt: arrow.PrimitiveTypes.Int64}
	var order []int
	for v := range times {
		order = append(order, v)
	}
	slices.Sort(order)
	for n := 0; ; n++ {
		more := false
		for _, v := range order {
			if n < times[v] {
				c.values, more = append(c.values, fmt.Sprint(v)), true
			}
		}
		if !more {
			return c
		}
	}
}

// TestWarnings: each warning appears where it should, and none where all is well,
// however frequent a key is.
func TestWarnings(t *testing.T) {
	span := func(lo, hi, times int) map[int]int {
		m := map[int]int{}
		for v := lo; v < hi; v++ {
			m[v] = times
		}
		return m
	}
	with := func(m map[int]int, v, times int) map[int]int { m[v] = times; return m }
	far := int64(1) << 40 // too far apart for an exact set to be the smaller filter
	if bits.UintSize < 64 {
		far = 1 << 23
	}
	ids := span(0, 400, 1)
	for v := range 400 {
		delete(ids, v)
		ids[int(int64(v*v)*far/1000)] = 1
	}
	nulls := column{name: "k", dt: arrow.PrimitiveTypes.Int64, values: slices.Repeat([]string{"NULL"}, 50)}
	member, stranger := 0, 7
	for _, c := range []struct {
		name string
		ids  column
		log  column
		typ  join.Type
		want []string
	}{
		{"all is well", repeated("k", ids), repeated("k", with(span(1, 3000, 2), member, 900)), join.Semi, nil},
		{"a heavy key that is an ID", repeated("k", ids), repeated("k", with(span(1, 3000, 2), member, 10_000)), join.Semi, nil},
		{"a heavy key that is none", repeated("k", ids), repeated("k", with(with(span(1, 3000, 2), stranger, 10_000), member, 3000)), join.Semi, nil},
		{"nothing but a heavy key that is an ID", repeated("k", ids), repeated("k", with(map[int]int{}, member, 5000)), join.Inner, nil},
		{"no ID", repeated("k", nil), repeated("k", span(0, 10, 1)), join.Semi, []string{joins.WarnNoIDs}},
		{"NULL IDs", nulls, repeated("k", span(0, 10, 1)), join.Semi, []string{joins.WarnNoIDs}},
		{"NULLs in the log", repeated("k", ids), nulls, join.Left, []string{joins.WarnNoKeys}},
		{"no log", repeated("k", ids), repeated("k", nil), join.Semi, nil},
		{"none matched", repeated("k", ids), repeated("k", span(1, 4000, 1)), join.Semi, []string{joins.WarnNoneMatched}},
		{"none matched but a heavy stranger", repeated("k", ids), repeated("k", with(span(1, 4000, 1), stranger, 10_000)), join.Inner, []string{joins.WarnNoneMatched}},
		{"hardly any matched", repeated("k", ids), repeated("k", with(span(1, 10_000, 1), member, 9)), join.Semi, []string{joins.WarnFalsePositivesOnly}},
		{"all matched", repeated("k", ids), repeated("k", with(map[int]int{}, member, 50)), join.Semi, []string{joins.WarnNothingDropped}},
		{"all matched, none left", repeated("k", ids), repeated("k", with(map[int]int{}, member, 50)), join.Anti, []string{joins.WarnNothingDropped}},
		{"all matched, with columns", repeated("k", ids), repeated("k", with(map[int]int{}, member, 50)), join.Left, nil},
	} {
		for _, fpr := range []float64{0.02, 0} {
			idFiles := files(t, 1, 1, c.ids)
			opts := join.Options{On: "k", Type: c.typ}
			if fpr > 0 {
				opts.Filter = (*codec.Filter)(filterOf(t, idFiles, "k", codec.KindBloom, fpr))
			} else if c.name == "hardly any matched" {
				continue // this filter has next to no false positives, so 9 rows are matches
			}
			got, err := run(t, idFiles, files(t, 2, 2, c.log), opts)
			if err != nil {
				t.Fatal(err)
			}
			var codes []string
			for _, w := range got.report.Warnings {
				codes = append(codes, w.Code)
				if w.Text == "" {
					t.Errorf("%s: no text", w.Code)
				}
			}
			if !slices.Equal(codes, c.want) {
				t.Errorf("%s, rate %v: warnings %v, want %v (%+v)", c.name, fpr, codes, c.want, got.report)
			}
		}
	}
}

// TestWarningsWithCondition: few matches cause no warning if a condition leaves out rows
// that count as read. With no match, the warning names the condition as a possible cause.
func TestWarningsWithCondition(t *testing.T) {
	ids := files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 0, 1000))
	log := files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 0, 300_000))[0].Name()
	opts := join.Options{On: "k", Filter: (*codec.Filter)(filterOf(t, ids, "k", codec.KindBloom, 0.02))}
	for where, want := range map[string]string{"k < 9 OR k >= 1000": "", "k >= 1000": "check the condition"} {
		got, err := run(t, ids, open(t, partition.OpenOptions{Where: where}, log), opts)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, w := range got.report.Warnings {
			text += w.Text
		}
		if (text == "") != (want == "") || !strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q", where, text, want)
		}
	}
}

// TestWarningsOfWhatWasScanned: there is no warning that nothing was dropped if the log
// consists of candidates.
func TestWarningsOfWhatWasScanned(t *testing.T) {
	ids := files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 0, 30))
	opts := join.Options{On: "k"}
	j, err := join.New(ids, files(t, 1, 1, numbers("k", arrow.PrimitiveTypes.Int64, 10, 90)), opts)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "kept.parquet")
	if _, err := j.Write(t.Context(), partition.Output{Name: name}); err != nil {
		t.Fatal(err)
	}
	got, err := run(t, ids, open(t, partition.OpenOptions{}, name), opts)
	if ws := got.report.Warnings; err != nil || len(got.rows) != 20 || len(ws) > 0 {
		t.Errorf("%v, %d rows, %v", err, len(got.rows), ws)
	}
}
