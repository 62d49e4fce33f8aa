package partition

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/key"
)

// Schema returns the schema of what is kept of the file; see [ScanOptions.SchemaOf].
func (s *Scanner) Schema(f *File) (*arrow.Schema, error) { return s.opts.SchemaOf(f) }

// SchemaOf returns the schema of the columns to keep, with the file's own types.
func (o *ScanOptions) SchemaOf(f *File) (*arrow.Schema, error) {
	cols, err := o.columns(f)
	if cols == nil || err != nil {
		return f.Schema(), err
	}
	return project(f.Schema(), cols), nil
}

// columns returns the positions of the columns to keep; nil means all.
func (o *ScanOptions) columns(f *File) ([]int, error) {
	if o.Columns == nil {
		return nil, nil
	}
	cols := []int{}
	for _, name := range o.Columns {
		field, err := key.Path{name}.Resolve(f.Schema(), o.IgnoreCase)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if at := slices.Index(cols, field.Index[0]); at >= 0 {
			return nil, fmt.Errorf("%s: %s and %s are the same column (name it once)", f.Name, o.Columns[at], name)
		}
		cols = append(cols, field.Index[0])
	}
	return cols, nil
}

func project(schema *arrow.Schema, cols []int) *arrow.Schema {
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		fields[i] = schema.Field(c)
	}
	md := schema.Metadata()
	return Reshaped(arrow.NewSchema(fields, &md))
}

// Reshaped returns the schema without the metadata in which other programs
// describe the columns. It serves schemas whose columns are not a file's own.
func Reshaped(s *arrow.Schema) *arrow.Schema {
	return Without(s, describing...)
}

// describing are the keys of metadata in which programs describe the columns.
var describing = []string{"ARROW:schema", "pandas", "org.apache.spark.sql.parquet.row.metadata"}

// Without returns the schema without the metadata of the given keys.
func Without(s *arrow.Schema, drop ...string) *arrow.Schema {
	md := s.Metadata()
	var ks, vs []string
	for i, k := range md.Keys() {
		if !slices.Contains(drop, k) {
			ks, vs = append(ks, k), append(vs, md.Values()[i])
		}
	}
	kept := arrow.NewMetadata(ks, vs)
	return arrow.NewSchema(s.Fields(), &kept)
}

// readColumns returns the columns to keep (none if rows are only counted) and then
// those that only the keys need.
func (s *Scanner) readColumns(f *File) ([]int, error) {
	cols, err := s.opts.columns(f)
	if s.counted {
		cols = []int{}
	}
	if cols == nil || err != nil {
		return nil, err
	}
	for _, m := range s.opts.Match {
		enc, err := m.encoder(f.Name, f.Schema())
		if err != nil {
			return nil, err
		}
		for _, c := range enc.Columns() {
			if !slices.Contains(cols, c) {
				cols = append(cols, c)
			}
		}
	}
	return cols, nil
}
