package arrowparquet

import (
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// rename gives a file's columns other names, also in the Arrow schema that it stores. It shares them with
// like, unless that is nil, if this file's schema is shared.
func rename(f, like *parquet.File, names func([]string) ([]string, error)) error {
	own := f.Root.Names()
	to, err := names(own)
	if err != nil || slices.Equal(to, own) || f.RenamedLike(like, to) {
		return err
	}
	describes := func(kv meta.KeyValue) bool { return slices.Contains(take.Describing, kv.Key) }
	metadata := slices.DeleteFunc(slices.Clone(f.Metadata.KeyValueMetadata), describes)
	if stored := (&Parquet{f: f}).StoredSchema(); stored != "" {
		_, schema, err := plan(f, int96Micros)
		if err != nil {
			return err
		}
		fields := make([]StoredField, len(to))
		for i := range fields {
			fields[i] = StoredField{schema.Field(i), stored, i}
			fields[i].Field.Name = to[i]
		}
		text, err := StoreFields(fields, slices.DeleteFunc(parseStored(stored).metadata, describes))
		if err != nil {
			return err
		}
		metadata = append(metadata, meta.KeyValue{Key: SchemaKey, Value: text})
	}
	return f.Rename(to, metadata)
}
