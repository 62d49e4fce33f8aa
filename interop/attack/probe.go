package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	codecbloom "github.com/bloomjoin/bloomjoin/codec/bloom"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// filterVictim is a filter file to mutate.
type filterVictim struct {
	dir     string
	name    string
	others  []string // filters to merge or compare with
	ids     *source.File
	key     string
	rows    int64
	partial bool
}

// recipe says how to build a filter.
type recipe struct {
	name   string
	column string
	keys   int64
	opts   builds.Options
	write  filters.Options
}

var recipes = []recipe{
	{"split256", "id", 3000, builds.Options{Kind: codec.KindBloom, Geometry: codecbloom.Split256}, filters.Options{}},
	{"split512", "id", 3000, builds.Options{Kind: codec.KindBloom, Geometry: codecbloom.Split512}, filters.Options{}},
	{"mapped", "id", 3000, builds.Options{Kind: codec.KindBloom}, filters.Options{Uncompressed: true}},
	{"text", "text", 3000, builds.Options{Normalize: "trim,lower"}, filters.Options{}},
	{"two", "id,text", 3000, builds.Options{}, filters.Options{}},
	{"room", "id", 1000, builds.Options{Kind: codec.KindBloom, Room: true, Expect: 20_000}, filters.Options{}},
	{"dense", "row", 3000, builds.Options{Kind: codec.KindExact}, filters.Options{}},
	{"sparse", "id", 3000, builds.Options{Kind: codec.KindExact}, filters.Options{}},
	{"raw", "id", 3000, builds.Options{Kind: codec.KindExact}, filters.Options{Uncompressed: true}},
	{"chunks", "id", 120_000, builds.Options{Kind: codec.KindBloom, FPR: 1e-6}, filters.Options{}},
	{"sketch", "id", 50_000, builds.Options{Kind: codec.KindBloom}, filters.Options{}},
	{"partial", "id", 3000, builds.Options{Kind: codec.KindBloom, Shard: dataset.Shard{Index: 0, Of: 2}}, filters.Options{}},
	{"partial-exact", "row", 3000, builds.Options{Kind: codec.KindExact, Shard: dataset.Shard{Index: 0, Of: 2}}, filters.Options{}},
}

// idFile writes an ID file of two row groups with a sparse integer, its text, and a
// dense integer, which may be negative.
func idFile(path string, n int64) (err error) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "text", Type: arrow.BinaryTypes.String}, {Name: "row", Type: arrow.PrimitiveTypes.Int64},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range n {
		id := i * 0x9e3779b97f4a7c1 % (1 << 40)
		b.Field(0).(*array.Int64Builder).Append(id)
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf(" Key-%d", id))
		b.Field(2).(*array.Int64Builder).Append(i - n/4)
	}
	rec := b.NewRecord()
	defer rec.Release()
	f := source.Records("ids", schema, func(context.Context) iter.Seq2[arrow.Record, error] {
		return func(yield func(arrow.Record, error) bool) { yield(rec, nil) }
	}, source.RecordsOptions{})
	rows := roomtest.Map(context.Background(), source.Split([]*source.File{f}, dataset.Shard{}), 0, nil, func() (roomtest.Work, error) {
		return func(_ source.Piece, rec arrow.Record, emit func(arrow.Record) error) error {
			half := rec.NumRows() / 2
			return errors.Join(emit(rec.NewSlice(0, half)), emit(rec.NewSlice(half, rec.NumRows())))
		}, nil
	})
	_, err = output.Destination{Output: output.Output{Name: path, Force: true}}.Write(context.Background(), []output.Part{{Name: "ids", Schema: schema}}, rows)
	return err
}

func filterVictims(dir string) ([]victim, error) {
	ctx := context.Background()
	var out []victim
	for _, r := range recipes {
		path := filepath.Join(dir, fmt.Sprintf("ids-%d.arrow", r.keys))
		if _, err := os.Stat(path); err != nil {
			if err := idFile(path, r.keys); err != nil {
				return nil, err
			}
		}
		ids, err := open(ctx, path)
		if err != nil {
			return nil, err
		}
		v := &filterVictim{dir: dir, ids: ids, key: r.column, rows: r.keys, partial: r.opts.Shard.Of > 0}
		r.opts.Key = r.column
		for i := range uint32(2) {
			if r.opts.Shard.Of > 0 {
				r.opts.Shard.Index = i
			}
			p, err := builds.NewPlan([]*source.File{ids}, r.opts)
			if err != nil {
				return nil, err
			}
			f, _, err := p.Build(ctx)
			if err != nil {
				return nil, err
			}
			name := filepath.Join(dir, fmt.Sprintf("%s-%d.bjf", r.name, i))
			if _, err := filters.Save(ctx, storage.Local(), name, f, filters.Options{Uncompressed: r.write.Uncompressed, Replace: true}); err != nil {
				return nil, err
			}
			v.others = append(v.others, name)
		}
		v.name, v.others = v.others[0], v.others[1:]
		b, err := os.ReadFile(v.name)
		if err != nil {
			return nil, err
		}
		from, err := takeFilter(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		same := from.(*filterModel)
		if string(same.bytes(nil, func([]byte) {})) != string(b) && r.write.Uncompressed {
			return nil, fmt.Errorf("%s: taking it apart and putting it together changes it", v.name)
		}
		if got := v.try(ctx, 0, v.name, mutation{}); got.wrong != "" || got.refuse != nil {
			return nil, fmt.Errorf("%s as it is: %s %w", v.name, got.wrong, got.refuse)
		}
		out = append(out, victim{v.name, from, v.try})
	}
	return out, nil
}

// try reads the filter, probes all its keys, and merges or combines it.
func (v *filterVictim) try(ctx context.Context, n int, path string, m mutation) verdict {
	limits := filters.Limits{MaxBytes: budget}
	store := storage.Local()
	f, err := filters.Load(ctx, store, path, limits)
	if err != nil {
		if _, merge := builds.MergeFiles(ctx, store, []string{path, v.others[0]}, true, limits); v.partial && merge == nil {
			return verdict{wrong: "merged, but not read: " + oneLine(err)}
		}
		return verdict{refuse: err}
	}
	var lost string
	var probe error
	if f.Sealed() {
		var passed int64
		passed, probe = v.count(ctx, f)
		if probe == nil && passed < v.rows && !m.loses {
			lost = fmt.Sprintf("%d of %d keys are missed", v.rows-passed, v.rows)
		}
	}
	errs := []error{probe, f.Close()}
	if v.partial {
		_, err := builds.MergeFiles(ctx, store, []string{path, v.others[0]}, n%2 == 0, limits)
		errs = append(errs, err)
	} else {
		op := []builds.SetOp{builds.Union, builds.Intersect}[n%2]
		_, err := builds.CombineFiles(ctx, store, op, []string{v.others[0], path}, limits)
		_, _, err2 := builds.Compare(ctx, store, path, v.others[0], limits)
		errs = append(errs, err, err2)
	}
	err = errors.Join(errs...)
	if errors.Is(err, panics.ErrRecovered) {
		return verdict{wrong: "a recovered panic: " + oneLine(err)}
	}
	return verdict{wrong: lost, refuse: err}
}

// count returns the number of IDs that pass.
func (v *filterVictim) count(ctx context.Context, f *filters.Filter) (int64, error) {
	s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{
		Match: []dataset.Match{{Filter: (*codec.Filter)(f), Key: v.key}}, Threads: 2, Normalize: f.Facts().Rule,
	}})
	if err != nil {
		return 0, err
	}
	rows := int64(0)
	for r, err := range arraycopy.Scan(ctx, s, source.Split([]*source.File{v.ids}, dataset.Shard{})) {
		if err != nil {
			return 0, err
		}
		rows += r.Record.NumRows()
		r.Record.Release()
	}
	return rows, nil
}
