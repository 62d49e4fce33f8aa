package take

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/each"
)

// PlainType returns t with the value types of dictionaries in place of
// dictionary types, at any depth. Extension types keep the dictionaries of their
// storage.
func PlainType(t arrow.DataType) arrow.DataType {
	if d, ok := t.(*arrow.DictionaryType); ok {
		return PlainType(d.ValueType)
	}
	p := withFields(t, func(f arrow.Field) arrow.Field {
		f.Type = PlainType(f.Type)
		return f
	})
	if arrow.TypeEqual(p, t) {
		return t
	}
	return p
}

// withFields returns a list, map or struct type with its fields changed by fn. Other
// types stay as they are.
func withFields(t arrow.DataType, fn func(arrow.Field) arrow.Field) arrow.DataType {
	switch t := t.(type) {
	case *arrow.ListType:
		return arrow.ListOfField(fn(t.ElemField()))
	case *arrow.LargeListType:
		return arrow.LargeListOfField(fn(t.ElemField()))
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfField(t.Len(), fn(t.ElemField()))
	case *arrow.MapType:
		k, v := fn(t.KeyField()), fn(t.ItemField())
		m := arrow.MapOfWithMetadata(k.Type, k.Metadata, v.Type, v.Metadata)
		m.KeysSorted = t.KeysSorted
		m.SetItemNullable(v.Nullable)
		return m
	case *arrow.StructType:
		return arrow.StructOf(each.Slice(t.Fields(), fn)...)
	}
	return t
}

// PlainSchema returns the schema with the plain type of each column.
func PlainSchema(s *arrow.Schema) *arrow.Schema {
	fields := make([]arrow.Field, len(s.Fields()))
	for i, f := range s.Fields() {
		f.Type = PlainType(f.Type)
		fields[i] = f
	}
	md := s.Metadata()
	return arrow.NewSchema(fields, &md)
}

// PlainRecord returns rec with its dictionaries decoded, so that records with
// different dictionaries can be concatenated. Columns without dictionaries are
// shared. The caller releases the result.
func PlainRecord(mem memory.Allocator, rec arrow.Record) (arrow.Record, error) {
	return columns(rec, PlainSchema(rec.Schema()), rec.NumRows(), func(a arrow.Array) (arrow.Array, error) { return Plain(mem, a) })
}

// Plain returns a with its dictionaries decoded, or a itself if it has none. The
// caller releases the result.
func Plain(mem memory.Allocator, a arrow.Array) (arrow.Array, error) {
	if arrow.TypeEqual(PlainType(a.DataType()), a.DataType()) {
		a.Retain()
		return a, nil
	}
	rows := make([]int, a.Len())
	if d, ok := a.(*array.Dictionary); ok {
		for i := range rows {
			if rows[i] = -1; d.IsValid(i) {
				rows[i] = d.GetValueIndex(i)
			}
		}
		values, err := Array(mem, d.Dictionary(), rows)
		if err != nil {
			return nil, err
		}
		defer values.Release()
		return Plain(mem, values)
	}
	for i := range rows {
		rows[i] = i
	}
	fresh, err := Array(mem, a, rows) // so that no child has an offset
	if err != nil {
		return nil, err
	}
	defer fresh.Release()
	in := fresh.Data()
	children := make([]arrow.ArrayData, 0, len(in.Children()))
	defer each.Release(&children)
	for _, c := range in.Children() {
		child := array.MakeFromData(c)
		p, err := Plain(mem, child)
		child.Release()
		if err != nil {
			return nil, err
		}
		p.Data().Retain()
		children = append(children, p.Data())
		p.Release()
	}
	d := array.NewData(PlainType(a.DataType()), in.Len(), in.Buffers(), children, in.NullN(), 0)
	defer d.Release()
	return array.MakeFromData(d), nil
}
