package arraycopy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/compute"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// castKey converts the keys of IDs to the type of the log's key column. A key that
// the type cannot represent is an error.
func castKey(mem memory.Allocator, key arrow.Array, f arrow.Field) (arrow.Array, error) {
	if arrow.TypeEqual(key.DataType(), f.Type) {
		key.Retain()
		return key, nil
	}
	out, err := castArray(compute.WithAllocator(context.Background(), mem), key, f.Type)
	if err == nil && !sameKeys(key, out) { // as a float64 that no float32 equals
		out.Release()
		err = errors.New("not every value has an equal there")
	}
	if err != nil {
		e := faults.Unsupported(fault.At{Column: f.Name}, "an ID's key of type %s in the log's column of type %s", key.DataType(), f.Type)
		return nil, e.WithHint("rename the ID's column and write {On %s=NAME}, so that each side keeps its own", f.Name)
	}
	return out, nil
}

// sameKeys reports whether two arrays hold the same keys in the same rows.
func sameKeys(a, b arrow.Array) bool {
	var batches [2]keys.Batch
	for i, col := range []arrow.Array{a, b} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "key", Type: col.DataType(), Nullable: true}}, nil)
		enc, err := keys.NewEncoder(schema, []keys.Column{{Path: keys.Path{"key"}}}, keys.Options{}) // both of one class, whatever the join compares
		if err != nil {
			return false
		}
		rec := array.NewRecord(schema, []arrow.Array{col}, int64(col.Len()))
		err = enc.Encode(rec, &batches[i])
		rec.Release()
		if err != nil {
			return false
		}
	}
	x, y := &batches[0], &batches[1]
	if !slices.Equal(x.Rows, y.Rows) {
		return false
	}
	var p, q []byte
	for i := range x.Rows {
		if p, q = x.Append(p[:0], i), y.Append(q[:0], i); !bytes.Equal(p, q) {
			return false
		}
	}
	return true
}

// castArray is Arrow's safe cast, except between instants of different zones: these
// are the same numbers, and Arrow v15 panics on them.
func castArray(ctx context.Context, a arrow.Array, t arrow.DataType) (out arrow.Array, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("casting %s to %s: %v", a.DataType(), t, r)
		}
	}()
	from, ok := a.DataType().(*arrow.TimestampType)
	to, ok2 := t.(*arrow.TimestampType)
	if !ok || !ok2 {
		return compute.CastArray(ctx, a, compute.SafeCastOptions(t))
	}
	if from.Unit != to.Unit {
		b, err := compute.CastArray(ctx, a, compute.SafeCastOptions(&arrow.TimestampType{Unit: to.Unit, TimeZone: from.TimeZone}))
		if err != nil {
			return nil, err
		}
		defer b.Release()
		a = b
	}
	d := a.Data()
	zoned := array.NewData(t, d.Len(), d.Buffers(), nil, d.NullN(), d.Offset())
	defer zoned.Release()
	return array.MakeFromData(zoned), nil
}
