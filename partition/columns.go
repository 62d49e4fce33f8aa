package partition

import (
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
)

func project(schema *arrow.Schema, cols []int) *arrow.Schema {
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		fields[i] = schema.Field(c)
	}
	md := schema.Metadata()
	return Reshaped(arrow.NewSchema(fields, &md))
}

// Reshaped returns the schema without the metadata in which other programs describe
// the columns. It is for schemas whose columns differ from those of a file.
func Reshaped(s *arrow.Schema) *arrow.Schema {
	return withoutKeys(s, describing...)
}

// describing are the keys of metadata in which programs describe the columns.
var describing = []string{"ARROW:schema", "pandas", "org.apache.spark.sql.parquet.row.metadata"}

// withoutKeys returns the schema without the metadata of the given keys.
func withoutKeys(s *arrow.Schema, drop ...string) *arrow.Schema {
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
