package output

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/take"
)

func project(schema *arrow.Schema, cols []int) *arrow.Schema {
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		fields[i] = schema.Field(c)
	}
	md := schema.Metadata()
	return take.WithoutKeys(arrow.NewSchema(fields, &md), take.Describing...)
}
