package output

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/options"
	"github.com/bloomjoin/bloomjoin/internal/pagecopy"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/adapt"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// schemaMode returns the mode of the output. If the options name none, that is PerFile for a
// directory; UnionByName for rows of tables, each of which has one schema although its files may
// differ in details; else Strict.
func (o Destination) schemaMode(ctx context.Context, opts *keyscan.Options, logs []*source.File) dataset.SchemaMode {
	apart := func(f *source.File) bool { return !f.OfTable() }
	switch asked := opts.Schema; {
	case opts.United():
		return dataset.UnionByName
	case asked == dataset.Strict:
		return asked
	case o.IsDir(ctx):
		return dataset.PerFile
	case o.pagesFit() && !opts.Entries && !slices.ContainsFunc(logs, apart): // pairs are not adapted to a union
		return dataset.UnionByName
	}
	return dataset.Strict
}

// CheckSchemas returns an error if the schemas of the log's files do not fit the
// output and the options, or if a field of the output has a wrong value. It reads
// nothing. logs are all files of the log, whatever the shard; if there are none, only the
// output is checked.
func (o Destination) CheckSchemas(ctx context.Context, opts keyscan.Options, logs []*source.File) error {
	if err := o.check(ctx); err != nil || len(logs) == 0 {
		return err
	}
	if err := source.CheckFiles("the log", logs); err != nil {
		return err
	}
	o.fill(ctx)
	opts.Mirrored = o.IsDir(ctx)
	_, err := o.unified(ctx, &opts, logs)
	return err
}

// unified is the schema of all Parquet files of an output.
type unified struct {
	schema []meta.Element
	// stored: all files of the log have the same Arrow schema in their metadata.
	stored bool
}

// unified returns the schema that all Parquet files of the output share, nil if each
// part keeps its own.
func (o Destination) unified(ctx context.Context, opts *keyscan.Options, logs []*source.File) (*unified, error) {
	switch o.schemaMode(ctx, opts, logs) {
	case dataset.UnionByName:
		if !o.pagesFit() {
			return nil, faults.Unsupported(fault.At{File: o.Name}, "a union of schemas, or fields of structs, in an output that is not Parquet").
				WithHint("write Parquet, or one output for each schema")
		}
		return unite(opts, logs)
	case dataset.Strict:
		return nil, o.alike(opts, logs)
	}
	return nil, nil
}

// unite returns the union of the files' schemas, or the given schema.
func unite(opts *keyscan.Options, logs []*source.File) (*unified, error) {
	schema, err := union(opts, logs)
	if err != nil {
		return nil, err
	}
	stored := logs[0].StoredSchema()
	differs := func(f *source.File) bool { return f.StoredSchema() != stored }
	return &unified{schema: schema, stored: !slices.ContainsFunc(logs[1:], differs)}, nil
}

// United returns a view of each file of the log: a file without rows that has the columns of
// their union, or of the given schema, and the metadata of the file. Views that are equal are one.
func United(opts keyscan.Options, logs []*source.File) ([]*source.File, error) {
	u, err := unite(&opts, logs)
	if err != nil {
		return nil, err
	}
	views := make([]*source.File, len(logs))
	var last *source.File
	for i, f := range logs {
		if i == 0 || !f.SharesSchema(logs[i-1]) {
			if last, err = u.view(f, last); err != nil {
				return nil, f.Failed(err)
			}
		}
		views[i] = last
	}
	return views, nil
}

// view returns the view of a file: like, if it is not nil and equal.
func (u *unified) view(f, like *source.File) (*source.File, error) {
	p, columns := f.Parquet().File(), map[string]bool(nil)
	if !u.describedBy(p) {
		columns = pagecopy.TopLevel(u.schema)
	}
	m := meta.Footer{Schema: u.schema, RowGroups: []meta.RowGroup{}, KeyValueMetadata: pagecopy.KeptMetadata(p.Metadata.KeyValueMetadata, columns)}
	if like != nil && slices.Equal(m.KeyValueMetadata, like.Parquet().File().Metadata.KeyValueMetadata) {
		return like, nil
	}
	b, err := m.Encode()
	if err != nil {
		return nil, err
	}
	t, err := arrowparquet.OpenFooter(b, f.Name())
	return source.NewTable(f.Name(), dataset.Parquet, t), err
}

// projection returns the schema with the leaves of f that become its leaves, -1
// where f has none, and the adapter that converts them.
func (u *unified) projection(f *parquet.File) (parquet.Projection, *adapt.Conversion, error) {
	p := parquet.Projection{Schema: u.schema}
	adapt, err := adapt.NewPicked(f, u.schema)
	if err != nil {
		return p, nil, err
	}
	for _, l := range adapt.Leaves {
		p.Leaves = append(p.Leaves, l.Leaf)
	}
	return p, adapt, nil
}

// describedBy reports whether other programs' descriptions of f's columns hold for
// the schema and the rows of all files.
func (u *unified) describedBy(f *parquet.File) bool {
	_, same := adapt.SameSchema(u.schema, f.Metadata.Schema)
	return same && u.stored && len(f.Root.Children) == f.StoredColumns()
}

func union(opts *keyscan.Options, logs []*source.File) (schema []meta.Element, err error) {
	var files []*parquet.File
	for _, f := range logs {
		if f.Parquet() == nil {
			return nil, faults.Unsupported(fault.At{File: f.Name()}, "an Arrow file in a union of schemas").
				WithHint("convert it to Parquet, or keep each file's own schema with {Schema per-file} {Output OUT/}")
		}
		files = append(files, f.Parquet().File())
	}
	var mirrored []string
	if opts.Mirrored {
		mirrored = source.Mirrored(logs)
	}
	same := func(a, b string) bool { return a == b || opts.IgnoreCase && strings.EqualFold(a, b) }
	columns, paths, err := chosen(opts, mirrored, logs)
	if err == nil {
		err = compatible(columns, logs, same)
	}
	if err != nil {
		return nil, err
	}
	if opts.Pinned == nil {
		schema, err = adapt.Union(files, columns)
	} else if schema, err = pinnedElements(opts.Pinned, columns); err == nil {
		err = fits(schema, files, opts.Columns, mirrored)
	}
	if err == nil && keys.PickFields(opts.Columns) {
		schema, err = adapt.Pick(schema, paths, same)
	}
	return schema, err
}

// fits returns an error if a file does not fit a given schema. If all columns are chosen, the schema
// must have the file's but those that are mirrored, or that a star leaves out.
func fits(schema []meta.Element, files []*parquet.File, columns, mirrored []string) (err error) {
	all := columns == nil
	choices, _ := keys.ParseChoices(columns, false)
	for _, c := range choices {
		if c.Path == nil {
			all = true
			for _, e := range c.Except {
				mirrored = append(mirrored, e.Path[0])
			}
		}
	}
	for _, f := range files {
		if all {
			err = adapt.Covers(schema, f, mirrored)
		} else {
			_, err = adapt.New(f, schema)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// AllColumns returns the columns of a union, or of the given schema. Their types may be others.
func AllColumns(o *keyscan.Options, logs []*source.File) (*arrow.Schema, error) {
	if o.Pinned == nil {
		return source.AllColumns(logs, o.IgnoreCase), nil
	}
	name, footer := (*options.Schema)(o.Pinned).Of()
	f, err := arrowparquet.OpenFooter(footer, name)
	if err != nil {
		return nil, err
	}
	return f.Schema(), nil
}

// chosen returns the names of the columns of a union, nil: all of the given schema, or of the files,
// and their paths, or those of the fields that are chosen of them.
func chosen(o *keyscan.Options, mirrored []string, logs []*source.File) (columns []string, paths []keys.Path, err error) {
	if o.Columns == nil && (len(mirrored) == 0 || o.Pinned != nil) {
		return nil, nil, nil
	}
	all, err := AllColumns(o, logs)
	if err != nil {
		return nil, nil, err
	}
	at, below, err := keys.ChooseIn(all, o.Columns, mirrored, o.IgnoreCase)
	if err != nil && o.Pinned != nil {
		return nil, nil, fmt.Errorf("the given schema: %w", err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("columns of the log: %w", err)
	}
	columns = []string{}
	for _, i := range at {
		columns = append(columns, all.Field(i).Name)
		for _, field := range below[i] {
			paths = append(paths, append(keys.Path{all.Field(i).Name}, field...))
		}
	}
	return columns, paths, nil
}

// compatible returns an error if columns of the union, nil: all, have the same name but do not fit. Two
// spellings would become two columns, each NULL where the other is not. Durations are integers in
// Parquet; only the stored Arrow schema has their unit.
func compatible(columns []string, logs []*source.File, same func(a, b string) bool) error {
	type origin struct{ text, file string }
	names, types := map[string]origin{}, map[string]origin{}
	for _, f := range logs {
		for _, field := range f.Schema().Fields() {
			if columns != nil && !slices.ContainsFunc(columns, func(name string) bool { return same(name, field.Name) }) {
				continue
			}
			folded := strings.ToLower(field.Name)
			first, ok := names[folded]
			if ok && first.text != field.Name && same(first.text, field.Name) {
				return faults.Of(cause.Schemas, faults.Mismatch(fault.At{File: f.Name(), Column: field.Name}, "the column's name in a union of schemas", first.text+" as in "+first.file, field.Name)).
					WithHint("keep each file's own schema with {Schema per-file} {Output OUT/}")
			}
			names[folded] = origin{field.Name, f.Name()}
			for path, typ := range leafTypes(field.Name, field.Type) {
				o, ok := types[path]
				if !ok {
					types[path] = origin{typ, f.Name()}
				} else if o.text != typ && strings.Contains(o.text+typ, "duration") {
					return faults.Of(cause.Schemas, faults.Mismatch(fault.At{File: f.Name(), Column: path}, "the column's type", o.text+" as in "+o.file, typ)).
						WithHint("write to a directory, where each file keeps its own types, or leave the column out")
				}
			}
		}
	}
	return nil
}

// alike returns an error if a file has another schema than the first: the Parquet
// schema where pages are copied, or the Arrow schema.
func (o Destination) alike(opts *keyscan.Options, logs []*source.File) error {
	first := logs[0]
	columns, err := opts.ColumnsOf(first)
	if err != nil {
		return err
	}
	want := opts.SchemaWith(first, columns)
	for _, f := range logs[1:] {
		cols, err := opts.ColumnsOf(f)
		if err != nil {
			return err
		}
		if f.SharesSchema(first) && slices.Equal(cols, columns) {
			continue
		}
		got := opts.SchemaWith(f, cols)
		differs := func(want, got string) error {
			return faults.Of(cause.Schemas, faults.Mismatch(fault.At{File: f.Name()}, "schema", want, got)).
				WithHint("write to a directory, {Output OUT/}, where each file keeps its own schema, or use {Schema union}")
		}
		if !got.Equal(want) {
			return differs(describe(want)+" as in "+first.Name(), describe(got))
		}
		if o.pagesFit() && f.Parquet() != nil && first.Parquet() != nil {
			a, b := first.Parquet().File().Project(columns), f.Parquet().File().Project(cols)
			if diff, same := adapt.SameSchema(a.Schema, b.Schema); !same {
				return differs("that of "+first.Name()+", the first", diff)
			}
		}
	}
	return nil
}

// pagesFit reports whether pages can be copied to the output.
func (o Destination) pagesFit() bool { return o.Format == dataset.Parquet }

// leafTypes lists the types without children in t, by path from the named column.
func leafTypes(name string, t arrow.DataType) map[string]string {
	leaves := map[string]string{}
	var walk func(path string, t arrow.DataType)
	walk = func(path string, t arrow.DataType) {
		nested, ok := t.(arrow.NestedType)
		switch {
		case !ok && t.ID() != arrow.NULL:
			leaves[path] = t.String()
		case ok:
			for i, f := range nested.Fields() {
				at := strconv.Itoa(i) // of a list or map
				if t.ID() == arrow.STRUCT {
					at = f.Name
				}
				walk(path+"."+at, f.Type)
			}
		}
	}
	walk(name, t)
	return leaves
}
