package tables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/compute"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/parquet-go/parquet-go/encoding/thrift"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/adapt"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// CastKey converts the keys of IDs to the type of the log's key column. A key that
// the type cannot represent is an error.
func CastKey(mem memory.Allocator, key arrow.Array, f arrow.Field) (arrow.Array, error) {
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

// KeyCast converts keys of a table to the type of a log's key column, which has both. It is
// safe for concurrent use.
type KeyCast struct {
	from arrowparquet.Assembly // of optional keys
	to   *arrow.Schema
}

// KeyCast returns the conversion of a column that is one leaf to the type of a field of a log,
// whose optional leaf is the only one of a schema. It returns nil if pages of the one are pages
// of the other. ok is false if it makes no such pages.
func (c *Columns) KeyCast(column int, field arrow.Field, leaf []meta.Element) (cast *KeyCast, ok bool) {
	span, of := c.Spans[column], c.Schema.Field(column)
	own := &c.Leaves[span.Leaf]
	alike := append([]meta.Element{{Name: "schema", NumChildren: thrift.New(int32(1))}}, c.Elements[span.Element])
	if own.Logical.Kind == meta.Null || arrow.TypeEqual(of.Type, field.Type) && adapt.SameLayout(alike, leaf) {
		return nil, true
	}
	field.Nullable = true
	cast = &KeyCast{to: arrow.NewSchema([]arrow.Field{field}, nil)}
	shred, err := arrowparquet.NewShredder(cast.to)
	if err != nil || !sameClass(of.Type, field.Type) || !adapt.SameLayout(shred.Schema(), leaf) {
		return nil, false
	}
	if c.assemblies != nil {
		cast.from = c.assemblies[column]
	} else if cast.from, err = arrowparquet.LeafAssembly(*own); err != nil {
		return nil, false
	}
	if own.MaxDef == 0 {
		cast.from = cast.from.Optional()
	}
	return cast, true
}

// sameClass reports whether keys of two types are of one class.
func sameClass(a, b arrow.DataType) bool {
	c, err := keys.ClassOf(a)
	d, err2 := keys.ClassOf(b)
	return err == nil && err2 == nil && c == d
}

// Pages converts pages of optional keys without dictionary. A page is valid until the next one.
func (k *KeyCast) Pages(in iter.Seq2[*parquet.Page, error]) iter.Seq2[*parquet.Page, error] {
	return func(yield func(*parquet.Page, error) bool) {
		more := true
		for p, err := range in {
			if err == nil {
				err = k.page(p, func(p *parquet.Page) { more = yield(p, nil) })
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

// page passes the page that the keys of a page make to emit.
func (k *KeyCast) page(p *parquet.Page, emit func(*parquet.Page)) error {
	mem := memory.DefaultAllocator
	stored, err := k.from.Array(mem, p.Values, func(int) iter.Seq2[*parquet.Page, error] {
		return func(yield func(*parquet.Page, error) bool) { yield(p, nil) }
	})
	if err != nil {
		return err
	}
	defer stored.Release()
	cast, err := CastKey(mem, stored, k.to.Field(0))
	if err != nil {
		return err
	}
	defer cast.Release()
	shred, err := arrowparquet.NewShredder(k.to)
	if err != nil {
		return err
	}
	rec := array.NewRecord(k.to, []arrow.Array{cast}, int64(p.Values))
	defer rec.Release()
	return shred.Shred(rec, func(_ int, p *parquet.Page) error {
		emit(p)
		return nil
	})
}
