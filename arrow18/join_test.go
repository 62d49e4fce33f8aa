package arrow18_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	v18 "github.com/apache/arrow-go/v18/arrow"
	v18array "github.com/apache/arrow-go/v18/arrow/array"
	v18memory "github.com/apache/arrow-go/v18/arrow/memory"
	v15 "github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/arrow18"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

var (
	userSchema = v18.NewSchema([]v18.Field{
		{Name: "user", Type: v18.PrimitiveTypes.Int64, Nullable: true},
		{Name: "home", Type: newPoint18("WGS84"), Nullable: true},
	}, nil)
	clickSchema = v18.NewSchema([]v18.Field{
		{Name: "user", Type: v18.PrimitiveTypes.Int32, Nullable: true},
		{Name: "page", Type: &v18.DictionaryType{IndexType: v18.PrimitiveTypes.Int8, ValueType: v18.BinaryTypes.String}, Nullable: true},
		{Name: "tags", Type: v18.ListOf(v18.BinaryTypes.String), Nullable: true},
	}, nil)
)

const (
	userRows   = `{"user": 2, "home": [1, 2]} {"user": 5, "home": null} {"user": 9, "home": [3, 4]} {"user": null, "home": [5, 6]}`
	clickRows1 = `{"user": 1, "page": "/", "tags": ["a"]} {"user": 2, "page": "/", "tags": []} {"user": null, "page": "/x", "tags": null}`
	clickRows2 = `{"user": 5, "page": "/pay", "tags": ["b", null]} {"user": 2, "page": "/buy", "tags": ["c"]}`
)

func rows(t *testing.T, mem v18memory.Allocator, schema *v18.Schema, json string) v18.RecordBatch {
	t.Helper()
	b := v18array.NewRecordBuilder(mem, schema)
	defer b.Release()
	for row := range strings.SplitSeq(json, "} {") {
		if err := b.UnmarshalJSON([]byte("{" + strings.Trim(row, "{}") + "}")); err != nil {
			t.Fatal(err)
		}
	}
	return b.NewRecordBatch()
}

// inputs returns IDs and a log of two records.
func inputs(t *testing.T) (ids, log arrow18.Input) {
	mem := checked18(t)
	users := rows(t, mem, userSchema, userRows)
	clicks := []v18.RecordBatch{rows(t, mem, clickSchema, clickRows1), rows(t, mem, clickSchema, clickRows2)}
	t.Cleanup(func() {
		users.Release()
		clicks[0].Release()
		clicks[1].Release()
	})
	return arrow18.Of(users), arrow18.Of(clicks...)
}

// lines are the rows of a sequence, as text.
func lines(t *testing.T, seq iter.Seq2[v18.RecordBatch, error]) (out []string) {
	t.Helper()
	for rec, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(rec.NumRows()) {
			var cells []string
			for _, c := range rec.Columns() {
				cells = append(cells, c.ValueStr(i))
			}
			out = append(out, strings.Join(cells, " "))
		}
	}
	return out
}

func TestJoin(t *testing.T) {
	for typ, want := range map[join.Type][]string{
		join.Semi:  {`2 / []`, `5 /pay ["b",null]`, `2 /buy ["c"]`},
		join.Anti:  {`1 / ["a"]`, `(null) /x (null)`},
		join.Inner: {`2 / [] [1,2]`, `5 /pay ["b",null] (null)`, `2 /buy ["c"] [1,2]`},
		join.Left:  {`1 / ["a"] (null)`, `2 / [] [1,2]`, `(null) /x (null) (null)`, `5 /pay ["b",null] (null)`, `2 /buy ["c"] [1,2]`},
		join.Right: {`2 / [] [1,2]`, `5 /pay ["b",null] (null)`, `2 /buy ["c"] [1,2]`, `9 (null) (null) [3,4]`, `(null) (null) (null) [5,6]`},
	} {
		t.Run(fmt.Sprint(typ), func(t *testing.T) {
			ids, log := inputs(t)
			seq := arrow18.Join(t.Context(), ids, log, join.Options{On: "user", Type: typ})
			for range 2 { // the sequence can be repeated
				if got := lines(t, seq); !slices.Equal(got, want) {
					t.Errorf("want %q, got %q", want, got)
				}
			}
		})
	}
}

// The answer has the types of v18 that went in, the extension type among them.
func TestJoinTypes(t *testing.T) {
	ids, log := inputs(t)
	for rec, err := range arrow18.Join(t.Context(), ids, log, join.Options{On: "user", Type: join.Inner}) {
		if err != nil {
			t.Fatal(err)
		}
		want := v18.NewSchema(append(slices.Clone(clickSchema.Fields()), userSchema.Field(1)), nil)
		if !rec.Schema().Equal(want) {
			t.Errorf("want %s, got %s", want, rec.Schema())
		}
		break // leaves the loop early: nothing stays held
	}
}

func TestScan(t *testing.T) {
	ids, log := inputs(t)
	file, err := ids.File("users")
	if err != nil {
		t.Fatal(err)
	}
	filter, _, err := filterbuild.Build(t.Context(), []*partition.File{file}, filterbuild.Options{Key: "user"})
	if err != nil {
		t.Fatal(err)
	}
	opts := partition.ScanOptions{Match: []dataset.Match{{Filter: filter}}, Columns: []string{"page", "user"}}
	want := []string{"/ 2", "/pay 5", "/buy 2"}
	if got := lines(t, arrow18.Scan(t.Context(), log, opts)); !slices.Equal(got, want) {
		t.Errorf("want %q, got %q", want, got)
	}
	opts.Match[0].Key = "nosuch"
	for rec, err := range arrow18.Scan(t.Context(), log, opts) {
		if err == nil || !strings.Contains(err.Error(), "nosuch") {
			t.Errorf("a column that is not there: got %v, %v", rec, err)
		}
	}
}

// What goes wrong in an input is the error of the answer, and nothing stays held.
func TestJoinErrors(t *testing.T) {
	ids, log := inputs(t)
	broken := errors.New("broken")
	source := func(seq iter.Seq2[v18.RecordBatch, error]) arrow18.Input {
		return arrow18.Input{Schema: log.Schema, Read: func(context.Context) iter.Seq2[v18.RecordBatch, error] { return seq }}
	}
	price := v18.NewSchema([]v18.Field{{Name: "user", Type: &v18.Decimal32Type{Precision: 9}}}, nil)
	ended, end := context.WithCancelCause(t.Context())
	end(broken)
	for name, c := range map[string]struct {
		ctx  context.Context
		log  arrow18.Input
		want error
		text string
	}{
		"an error":         {t.Context(), source(func(yield func(v18.RecordBatch, error) bool) { yield(nil, broken) }), broken, ""},
		"no record":        {t.Context(), source(func(yield func(v18.RecordBatch, error) bool) { yield(nil, nil) }), nil, "neither a record nor an error"},
		"no sequence":      {t.Context(), source(nil), nil, "no sequence"},
		"no reader":        {t.Context(), arrow18.Input{Schema: log.Schema}, nil, "panicked"},
		"another schema":   {t.Context(), arrow18.Input{Schema: log.Schema, Read: ids.Read}, fault.ErrMismatch, "the log"},
		"other decimals":   {t.Context(), arrow18.Input{Schema: price, Read: log.Read}, fault.ErrUnsupported, "column user"},
		"an ended context": {ended, log, broken, ""},
		"no schema":        {t.Context(), arrow18.Input{Read: log.Read}, nil, "user"},
	} {
		var last error
		for rec, err := range arrow18.Join(c.ctx, ids, c.log, join.Options{On: "user"}) {
			if last = err; rec != nil {
				t.Errorf("%s: got %v", name, rec)
			}
		}
		if last == nil || c.want != nil && !errors.Is(last, c.want) || !strings.Contains(last.Error(), c.text) {
			t.Errorf("%s: want %v %q, got %v", name, c.want, c.text, last)
		}
	}
}

// A sequence converts each record by its own schema, and passes on an error.
func TestRecordsSequences(t *testing.T) {
	mem15, mem18 := checked15(t), checked18(t)
	a, b := read18(t, mem18, samples[1]), read18(t, mem18, samples[13])
	broken := errors.New("broken")
	source := func(yield func(v18.RecordBatch, error) bool) {
		for _, rec := range []v18.RecordBatch{a, a, b} {
			if !yield(rec, nil) {
				return
			}
		}
		if yield(nil, broken) {
			yield(a, nil)
		}
	}
	want := []v15.Record{read15(t, mem15, samples[1]), read15(t, mem15, samples[13])}
	var got []v15.Record
	var last error
	for rec, err := range arrow18.Records15(source) {
		if last = err; err == nil {
			rec.Retain()
			got = append(got, rec)
		}
	}
	a.Release()
	b.Release()
	if len(got) != 3 || !errors.Is(last, broken) {
		t.Fatalf("want 3 records and an error, got %d and %v", len(got), last)
	}
	for i, rec := range got {
		same15(t, fmt.Sprint("record ", i), want[i/2], rec)
		rec.Release()
	}
	want[0].Release()
	want[1].Release()
}
