package take

import (
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
)

// Describing are the metadata keys in which programs describe the columns of a
// schema. They are wrong once the columns change.
var Describing = []string{"ARROW:schema", "pandas", "org.apache.spark.sql.parquet.row.metadata"}

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
