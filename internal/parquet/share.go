package parquet

import (
	"reflect"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// Share replaces f's schema and metadata by those of another file if they are
// equal, apart from the other's constants, and reports whether they are. It saves
// memory for logs of many files, whose footers consist mostly of these.
func (f *File) Share(like *File) bool {
	a, b := f.Metadata, like.stored()
	if len(a.Schema) != len(b.elements) || !reflect.DeepEqual(a.KeyValueMetadata, like.Metadata.KeyValueMetadata) ||
		!reflect.DeepEqual(a.Schema, b.elements) || !reflect.DeepEqual(a.ColumnOrders, b.orders) {
		return false
	}
	a.Schema, a.KeyValueMetadata, a.ColumnOrders = b.elements, like.Metadata.KeyValueMetadata, b.orders
	f.Schema = b.Schema
	bytes := meta.ElementBytes * int64(len(a.Schema))
	for _, kv := range a.KeyValueMetadata {
		bytes += int64(len(kv.Key) + len(kv.Value))
	}
	_ = f.charge(fault.At{}, -min(bytes, f.footer)) // returning memory does not fail
	return true
}
