package tables

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/parquet-go/parquet-go/encoding/thrift"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/decimal"
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
	out, err := castArray(mem, key, f.Type)
	if err == nil && !sameKeys(key, out) { // as a float64 that no float32 equals, or an instant between two
		out.Release()
		err = errors.New("not every value has an equal there")
	}
	if err != nil {
		e := faults.Unsupported(fault.At{Column: f.Name}, "an ID's key of type %s in the log's column of type %s", key.DataType(), f.Type)
		return nil, e.WithHint("rename the ID's column and write {On %s=NAME}, so that each side keeps its own", f.Name)
	}
	return out, nil
}

// keysOf returns the keys of an array.
func keysOf(a arrow.Array) (b keys.Batch, err error) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "key", Type: a.DataType(), Nullable: true}}, nil)
	enc, err := keys.NewEncoder(schema, []keys.Column{{Path: keys.Path{"key"}}}, keys.Options{}) // of its own class, whatever the join compares
	if err != nil {
		return b, err
	}
	rec := array.NewRecord(schema, []arrow.Array{a}, int64(a.Len()))
	defer rec.Release()
	return b, enc.Encode(rec, &b)
}

// sameKeys reports whether two arrays hold the same keys in the same rows.
func sameKeys(a, b arrow.Array) bool {
	x, err := keysOf(a)
	y, err2 := keysOf(b)
	if err != nil || err2 != nil || !slices.Equal(x.Rows, y.Rows) {
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

// castArray converts the keys of an array to a type. Values that do not fit get another key,
// unless that is an error.
func castArray(mem memory.Allocator, a arrow.Array, t arrow.DataType) (out arrow.Array, err error) {
	defer func() {
		if r := recover(); r != nil { // of arrow, for types that it does not build
			out, err = nil, fmt.Errorf("casting %s to %s: %v", a.DataType(), t, r)
		}
	}()
	of, err := keysOf(a)
	if err != nil {
		return nil, err
	}
	b := array.NewBuilder(mem, t)
	defer b.Release()
	put := putterOf(b, t, a)
	if len(of.Rows) > 0 && (put == nil || !sameClass(a.DataType(), t)) {
		return nil, errors.New("the types have no values in common")
	}
	var value []byte
	for i, row := range of.Rows {
		b.AppendNulls(int(row) - b.Len())
		value = of.Append(value[:0], i)
		if err := put(value, int(row)); err != nil {
			return nil, err
		}
	}
	b.AppendNulls(a.Len() - b.Len())
	return b.NewArray(), nil
}

// putterOf returns a function that appends a key of a row, given in its normal form, to a builder. It
// is nil if the builder has no such values.
func putterOf(builder array.Builder, t arrow.DataType, from arrow.Array) func(key []byte, row int) error {
	number := func(key []byte) int64 { return int64(binary.LittleEndian.Uint64(key)) }
	units := func(key []byte) int64 { // of seconds and nanoseconds
		unit := int64(t.(arrow.TemporalWithUnit).TimeUnit().Multiplier())
		return number(key)*(1e9/unit) + int64(binary.LittleEndian.Uint32(key[8:]))/unit
	}
	simple := func(put func(key []byte)) func([]byte, int) error {
		return func(key []byte, _ int) error { put(key); return nil }
	}
	switch b := builder.(type) {
	case interface{ Append(string) }:
		return func(key []byte, _ int) error {
			if !utf8.Valid(key) {
				return errors.New("not every value is text")
			}
			b.Append(string(key))
			return nil
		}
	case interface{ Append([]byte) }:
		return simple(b.Append)
	case *array.BooleanBuilder:
		return simple(func(key []byte) { b.Append(key[0] != 0) })
	case *array.Date32Builder:
		return simple(func(key []byte) { b.Append(arrow.Date32(number(key))) })
	case *array.Date64Builder:
		return simple(func(key []byte) { b.Append(arrow.Date64(number(key) * 86_400_000)) })
	case *array.TimestampBuilder:
		return simple(func(key []byte) { b.Append(arrow.Timestamp(units(key))) })
	case *array.DurationBuilder:
		return simple(func(key []byte) { b.Append(arrow.Duration(units(key))) })
	case *array.Time32Builder:
		return simple(func(key []byte) { b.Append(arrow.Time32(number(key) / int64(t.(*arrow.Time32Type).Unit.Multiplier()))) })
	case *array.Time64Builder:
		return simple(func(key []byte) { b.Append(arrow.Time64(number(key) / int64(t.(*arrow.Time64Type).Unit.Multiplier()))) })
	case *array.Decimal128Builder:
		of := t.(*arrow.Decimal128Type)
		return unscaled(of.Precision, of.Scale, func(v *big.Int) { b.Append(decimal.From128(v)) })
	case *array.Decimal256Builder:
		of := t.(*arrow.Decimal256Type)
		return unscaled(of.Precision, of.Scale, func(v *big.Int) { b.Append(decimal.From256(v)) })
	}
	switch {
	case arrow.IsInteger(t.ID()):
		signed := arrow.IsSignedInteger(plain(from.DataType()).ID())
		return func(key []byte, _ int) error {
			if signed {
				return builder.AppendValueFromString(strconv.FormatInt(number(key), 10))
			}
			return builder.AppendValueFromString(strconv.FormatUint(uint64(number(key)), 10))
		}
	case arrow.IsFloating(t.ID()):
		return func(key []byte, row int) error {
			v := math.Float64frombits(uint64(number(key)))
			if v == 0 { // whose sign is not part of the key
				return builder.AppendValueFromString(from.ValueStr(row))
			}
			return builder.AppendValueFromString(strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	return nil
}

// plain returns the type of a dictionary's values, or the type itself.
func plain(t arrow.DataType) arrow.DataType {
	if d, ok := t.(*arrow.DictionaryType); ok {
		return d.ValueType
	}
	return t
}

// unscaled returns a function that appends a decimal key at a scale.
func unscaled(precision, scale int32, put func(*big.Int)) func(key []byte, _ int) error {
	factor := new(big.Rat).SetInt(keys.Pow10(int(max(scale, -scale))))
	if scale < 0 {
		factor.Inv(factor)
	}
	return func(key []byte, _ int) error {
		n, ok := keys.Number(keys.Decimal, key)
		if !ok || !n.Mul(n, factor).IsInt() || n.Num().CmpAbs(keys.Pow10(int(precision))) >= 0 {
			return errors.New("not every value fits the decimals")
		}
		put(n.Num())
		return nil
	}
}

// KeyCast converts keys of a table to the type of a log's key column, which has both. It is
// safe for concurrent use.
type KeyCast struct {
	from arrowparquet.Assembly // of optional keys
	to   *arrow.Schema
}

// KeyCast returns the conversion of a column of one leaf to the type of a log's field, which has
// one optional leaf. It returns nil if the pages need no conversion. ok is false if it cannot make
// such pages.
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
