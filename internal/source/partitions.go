package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// Partitions returns the columns that the name=value directories of the file's path
// stand for, in the order of the first file of its Open; nil without any.
// Names and values are without escapes; __HIVE_DEFAULT_PARTITION__ is NULL.
func (f *File) Partitions() (values []dataset.PartitionValue) {
	for i, p := range f.parts {
		values = append(values, dataset.PartitionValue{Name: p.Name, Type: f.hive.Columns[i].Type, Text: p.Text, Null: p.Null})
	}
	return values
}

// HiveLayout is shared by all files of one Open.
type HiveLayout struct {
	Columns []hive.Column
	Like    string // the name of a file, for errors

	values  sync.Map // hive.Part → arrowparquet.Constant: files of a directory share it
	schemas sync.Map // leading → *arrow.Schema
}

// leading are the first columns of a schema.
type leading struct {
	of *arrow.Schema
	n  int
}

// layout returns the columns that the directories of all listed files stand for, nil if there
// are none. Files whose names are never data do not count. If the directories disagree and a file
// turns out not to be data, layout returns nil: Find reports the better error.
func (o *Opening) layout(ctx context.Context, names []string, lists [][]Entry) (*HiveLayout, error) {
	switch o.Hive {
	case "", dataset.HiveAuto, dataset.HiveOff:
	default:
		return nil, fmt.Errorf("OpenOptions.Hive %q: want auto or off", o.Hive)
	}
	given, err := hive.ParseTypes(o.HiveTypes)
	if err != nil {
		return nil, fmt.Errorf("OpenOptions.HiveTypes: %w", err)
	}
	tables := ofTables(lists)
	for _, c := range append(slices.Clone(tables), given...) { // files are left out by the type of their table
		other := func(t hive.Column) bool { return t.Name == c.Name && !arrow.TypeEqual(t.Type, c.Type) }
		if i := slices.IndexFunc(tables, other); i >= 0 {
			return nil, faults.Mismatch(fault.At{Column: c.Name}, "the type of a table's column", keys.TypeName(tables[i].Type), keys.TypeName(c.Type)).
				WithHint("leave it out of {HiveTypes}, and read tables with other types one by one")
		}
	}
	given = append(tables, given...)
	var files []hive.File // one of consecutive ones with the same columns
	for i, name := range names {
		if name == "-" {
			files = append(files, hive.File{Name: "standard input"})
		}
		for _, e := range lists[i] {
			if o.maybeNone(e) {
				continue
			}
			parts, err := o.PartsOf(e)
			if err != nil {
				return nil, err
			}
			if n := len(files); n == 0 || !slices.Equal(files[n-1].Parts, parts) {
				files = append(files, hive.File{Name: e.Name, Parts: parts})
			}
		}
	}
	var kept []hive.Column
	if o.HiveKept != nil && len(files) > 0 && len(files[0].Parts) > 0 {
		kept, _ = hive.ParseTypes(strings.Join(o.HiveKept(ctx), ",")) // a name that this does not read has none
	}
	columns, err := hive.Infer(files, given, kept...)
	if err != nil && o.strays(ctx, lists) {
		return nil, nil // which find reports
	}
	if len(columns) == 0 {
		return nil, err
	}
	return &HiveLayout{Columns: columns, Like: files[0].Name}, err
}

// strays reports whether some files of directories are not data.
func (o *Opening) strays(ctx context.Context, lists [][]Entry) bool {
	for _, e := range slices.Concat(lists...) {
		if !e.Found || o.maybeNone(e) {
			continue
		}
		f, err := o.openEntry(ctx, e, nil)
		if err == nil {
			err = f.Close()
		}
		if errors.Is(err, ErrNoData) {
			return true
		}
	}
	return false
}

// PartsOf returns the name=value directories of a listed object.
func (o *Opening) PartsOf(e Entry) ([]hive.Part, error) {
	if e.Of != nil {
		return e.Of.Parts, nil
	}
	if o.Hive == dataset.HiveOff {
		return nil, nil
	}
	parts, err := hive.Parse(cleanDir(address.Above(e.Name, e.Rel)) + e.Rel)
	if err != nil {
		return nil, faults.Errorf("%s: %w", e.Name, err)
	}
	return parts, nil
}

// partition gives the file the columns of its directories.
func (f *File) partition(layout *HiveLayout, parts []hive.Part) error {
	if layout == nil {
		return nil
	}
	if err := hive.Fits(hive.File{Name: f.name, Parts: parts}, layout.Columns, layout.Like); err != nil || len(parts) == 0 {
		return err
	}
	f.hive, f.parts = layout, make([]hive.Part, len(parts))
	for _, p := range parts {
		is := func(c hive.Column) bool { return c.Name == p.Name }
		f.parts[slices.IndexFunc(layout.Columns, is)] = p
	}
	return nil
}

// constants returns the columns of the file's directories.
func (f *File) constants(opts *Opening) (list []arrowparquet.Constant, err error) {
	names, err := opts.rename(f.name, each.Slice(f.parts, func(p hive.Part) string { return p.Name }))
	if err != nil {
		return nil, err
	}
	for i, p := range f.parts {
		if c, ok := f.hive.values.Load(p); ok {
			list = append(list, c.(arrowparquet.Constant))
			continue
		}
		v, ok := hive.Value(p, f.hive.Columns[i].Type)
		if !ok { // the type was found without this file
			return nil, faults.Of(cause.Schemas, faults.Mismatch(fault.At{File: f.name, Column: p.Name}, "the directory's value", "a value of type "+keys.TypeName(f.hive.Columns[i].Type), strconv.Quote(p.Text))).
				WithHint("give the column another type with {HiveTypes}")
		}
		c, err := arrowparquet.NewConstant(names[i], v)
		if err != nil {
			return nil, f.Failed(err)
		}
		f.hive.values.Store(p, c)
		list = append(list, c)
	}
	return list, nil
}

// StoredColumns returns the number of columns that the file itself has. Those that
// follow in its schema come from its path.
func (f *File) StoredColumns() int {
	switch t := f.table.(type) {
	case *arrowparquet.Parquet:
		return t.File().StoredColumns()
	case *constantTable:
		return t.stored()
	}
	return f.Schema().NumFields()
}

// agree returns an error if a column of the file has other values than the directory
// of that name.
func (f *File) agree(ctx context.Context, opts Opening) error {
	if f.of != nil { // its view has no such columns
		return nil
	}
	for _, p := range f.parts {
		as, _ := opts.rename(f.name, []string{p.Name})
		same := func(c arrow.Field) bool {
			return opts.same(c.Name, as[0])
		}
		i := slices.IndexFunc(f.Schema().Fields()[:f.StoredColumns()], same)
		if i < 0 {
			continue
		}
		if err := f.agreeIn(ctx, p, i, opts.Mem); err != nil {
			return err
		}
	}
	return nil
}

// agreeIn checks one column.
func (f *File) agreeIn(ctx context.Context, p hive.Part, column int, mem memory.Allocator) error {
	field := f.Schema().Field(column)
	differs := func(got string) error {
		want := strconv.Quote(p.Text)
		if p.Null {
			want = "NULL"
		}
		return faults.Of(cause.Schemas, faults.Mismatch(fault.At{File: f.name, Column: field.Name}, "the file's column and the directory of that name", want+" in all rows", got)).
			WithHint("use {Hive off} if the directory means something else")
	}
	value, ok := hive.Value(p, take.PlainType(field.Type))
	if !ok {
		return differs("values of type " + field.Type.String())
	}
	defer value.Release()
	for g := range f.NumGroups() {
		if t := f.Parquet(); t != nil && t.Holds(g, column, value) {
			continue
		}
		columns := []int{column}
		for rec, err := range f.Reading(ctx, g, columns, func(ctx context.Context) iter.Seq2[arrow.Record, error] { return f.table.Read(ctx, g, columns) }) {
			if err != nil {
				return f.Unless(err)
			}
			if row, err := firstOther(mem, rec.Column(0), value); err != nil {
				return err
			} else if row >= 0 {
				return differs(strconv.Quote(rec.Column(0).ValueStr(row)))
			}
		}
	}
	return nil
}

// firstOther returns the first row of an array that does not have the value, an array
// of length 1; -1: there is none.
func firstOther(mem memory.Allocator, a, value arrow.Array) (int, error) {
	plain, err := take.Plain(mem, a)
	if err != nil {
		return 0, err
	}
	defer plain.Release()
	all, err := take.Array(mem, value, make([]int, a.Len()))
	if err != nil {
		return 0, err
	}
	defer all.Release()
	if array.Equal(plain, all) {
		return -1, nil
	}
	for i := range a.Len() {
		if !array.SliceEqual(plain, int64(i), int64(i)+1, value, 0, 1) {
			return i, nil
		}
	}
	return -1, nil
}

// SchemaOf returns the schema of some columns, in ascending order. Metadata that
// describes the columns is kept if they are exactly those of the file itself.
func (f *File) SchemaOf(columns []int) *arrow.Schema {
	all := f.Schema()
	switch {
	case f.hive == nil && len(columns) == all.NumFields():
		return all
	case f.hive == nil, !slices.Equal(columns, UpTo(len(columns))):
		return Project(all, columns)
	}
	first := leading{all, len(columns)} // files of one schema share it
	if s, ok := f.hive.schemas.Load(first); ok {
		return s.(*arrow.Schema)
	}
	s := Project(all, columns)
	if stored := f.StoredColumns(); len(columns) == stored && stored == all.NumFields() {
		s = all
	} else if len(columns) == stored {
		md := all.Metadata()
		s = arrow.NewSchema(all.Fields()[:stored], &md)
	}
	f.hive.schemas.Store(first, s)
	return s
}

// Mirrored returns the names of the columns that an output directory does not store because its
// name=value directories, mirrored from the inputs, have them. It leaves out columns that a file
// of the log stores.
func Mirrored(files []*File) (names []string) {
	stores := map[string]bool{}
	for _, f := range files {
		for _, field := range f.Schema().Fields()[:f.StoredColumns()] {
			stores[field.Name] = true
		}
	}
	for _, f := range files {
		var inRel []hive.Part
		if len(f.parts) > 0 {
			inRel, _ = hive.Parse(f.rel) // it is part of a path that was parsed
		}
		for _, field := range f.Schema().Fields()[f.StoredColumns():] {
			same := func(p hive.Part) bool { return p.Name == field.Name && slices.Contains(f.parts, p) }
			if !stores[field.Name] && !slices.Contains(names, field.Name) && slices.ContainsFunc(inRel, same) {
				names = append(names, field.Name)
			}
		}
	}
	return names
}

// AllColumns returns the columns that some file has, in order of appearance, with the types of the
// first one. Of names that differ in case, ignoreCase takes the first.
func AllColumns(files []*File, ignoreCase bool) *arrow.Schema {
	fields, known := []arrow.Field{}, map[string]int{} // the first file with the name, from 1
	for i, f := range files {
		for _, field := range f.Schema().Fields() {
			name := field.Name
			if ignoreCase {
				name = strings.ToLower(name)
			}
			if known[name] == 0 {
				known[name] = i + 1
			}
			if known[name] == i+1 { // one that a file has twice is ambiguous
				fields = append(fields, field)
			}
		}
	}
	return arrow.NewSchema(fields, nil)
}

// Owns reports whether the schema has exactly the columns that the file stores, unchanged.
func (f *File) Owns(schema *arrow.Schema) bool {
	n := f.StoredColumns()
	if n == f.Schema().NumFields() {
		return schema == f.Schema()
	}
	return schema.Equal(f.SchemaOf(UpTo(n)))
}

// HiveTypes returns the names and types of the partition columns of files, as
// [publish.Owner].Hive has them.
func HiveTypes(files []*File) (types []string) {
	for _, f := range files {
		for _, p := range f.Partitions() {
			if t := p.Name + ":" + keys.TypeName(p.Type); !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
	}
	return types
}

// ValuesOf returns the values of the columns of a file's directories.
func (o *Opening) ValuesOf(name string, parts []hive.Part) ([]dataset.PartitionValue, error) {
	f := File{name: name}
	if err := f.partition(o.Layout, parts); err != nil {
		return nil, err
	}
	return f.Partitions(), nil
}
