package parquet

import (
	"reflect"

	"github.com/bloomjoin/bloomjoin/fault"
)

// Share replaces f's schema and metadata by those of another file if they are
// equal, and reports whether they are. It saves memory for logs of many files,
// whose footers consist mostly of these.
func (f *File) Share(like *File) bool {
	a, b := f.Metadata, like.Metadata
	if len(a.Schema) != len(b.Schema) || !reflect.DeepEqual(a.KeyValueMetadata, b.KeyValueMetadata) ||
		!reflect.DeepEqual(a.Schema, b.Schema) || !reflect.DeepEqual(a.ColumnOrders, b.ColumnOrders) {
		return false
	}
	a.Schema, a.KeyValueMetadata, a.ColumnOrders = b.Schema, b.KeyValueMetadata, b.ColumnOrders
	f.Root, f.Leaves, f.shared = like.Root, like.Leaves, like.shared
	bytes := elementBytes * int64(len(a.Schema))
	for _, kv := range a.KeyValueMetadata {
		bytes += int64(len(kv.Key) + len(kv.Value))
	}
	_ = f.charge(fault.At{}, -min(bytes, f.footer)) // returning memory does not fail
	return true
}
