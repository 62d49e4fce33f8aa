package take

import (
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
)

// Describing are the metadata keys in which programs describe the columns of a
// schema. They are wrong once the columns change: Spark and parquet-avro would read
// what is described, not what is there.
var Describing = []string{
	"ARROW:schema", "pandas", "org.apache.spark.sql.parquet.row.metadata",
	"iceberg.schema", "parquet.avro.schema", "avro.schema",
}

// FieldID is the key of a column's Parquet field id in the metadata of its field. Field
// ids are unique within one schema only.
const FieldID = "PARQUET:field_id"

// WithoutKeys returns the schema without the metadata of the given keys.
func WithoutKeys(s *arrow.Schema, drop ...string) *arrow.Schema {
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

// WithoutFieldKeys returns the field without the metadata of the given keys, in it
// and in all fields of its type.
func WithoutFieldKeys(f arrow.Field, drop ...string) arrow.Field {
	var ks, vs []string
	for i, k := range f.Metadata.Keys() {
		if !slices.Contains(drop, k) {
			ks, vs = append(ks, k), append(vs, f.Metadata.Values()[i])
		}
	}
	f.Metadata = arrow.NewMetadata(ks, vs)
	f.Type = withFields(f.Type, func(f arrow.Field) arrow.Field { return WithoutFieldKeys(f, drop...) })
	return f
}
