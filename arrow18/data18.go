package arrow18

import (
	"sync/atomic"

	arrow18 "github.com/apache/arrow-go/v18/arrow"
	array18 "github.com/apache/arrow-go/v18/arrow/array"
	memory18 "github.com/apache/arrow-go/v18/arrow/memory"
	arrow15 "github.com/apache/arrow/go/v15/arrow"
	array15 "github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Record18 converts a record of v15 without copying its values. The caller
// releases the result, which keeps the record's memory alive until then.
func Record18(rec arrow15.Record) (arrow18.RecordBatch, error) {
	if rec == nil {
		return nil, nil
	}
	schema, err := Schema18(rec.Schema())
	if err != nil {
		return nil, err
	}
	return record18(rec, schema)
}

// Array18 converts an array of v15 without copying its values. The caller
// releases the result, which keeps the array's memory alive until then. An
// extension type that is not registered in v18 becomes its storage type.
func Array18(arr arrow15.Array) (_ arrow18.Array, err error) {
	if arr == nil {
		return nil, nil
	}
	defer recovered(&err)
	t, err := Type18(arr.DataType())
	if err != nil {
		return nil, err
	}
	return array18Of("", arr.Data(), t)
}

// record18 converts a record to the schema, which Schema18 has made of its own.
func record18(rec arrow15.Record, schema *arrow18.Schema) (_ arrow18.RecordBatch, err error) {
	defer recovered(&err)
	cols := make([]arrow18.Array, 0, rec.NumCols())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i, f := range schema.Fields() {
		c, err := array18Of(f.Name, rec.Column(i).Data(), f.Type)
		if err != nil {
			return nil, err
		}
		cols = append(cols, c)
	}
	return array18.NewRecordBatch(schema, cols, rec.NumRows()), nil
}

// array18Of makes an array of the data, as the type.
func array18Of(path string, data arrow15.ArrayData, t arrow18.DataType) (arrow18.Array, error) {
	d, err := data18(path, data, t)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return array18.MakeFromData(d), nil
}

// data18 wraps the buffers of data, its children's and its dictionary's, as data
// of the type, which must have the same layout.
func data18(path string, data arrow15.ArrayData, t arrow18.DataType) (*array18.Data, error) {
	stored := storage18(t)
	if from := storage15(data.DataType()); !sameLayout(from, stored) {
		return nil, faults.Mismatch(fault.At{Column: path}, "type of an array's data", stored.String()+" as in the field", from.String())
	}
	buffers := make([]*memory18.Buffer, len(data.Buffers()))
	for i, b := range data.Buffers() {
		if b != nil {
			data.Retain()
			buffers[i] = memory18.NewBufferWithAllocator(b.Bytes(), &lease18{source: data})
			defer buffers[i].Release()
		}
	}
	if dict, _ := data.Dictionary().(*array15.Data); dict != nil {
		dt, ok := stored.(*arrow18.DictionaryType)
		if !ok {
			return nil, faults.Corrupt(fault.At{Column: path}, "an array of %s has a dictionary", stored)
		}
		values, err := data18(path, dict, dt.ValueType)
		if err != nil {
			return nil, err
		}
		defer values.Release()
		return array18.NewDataWithDictionary(t, data.Len(), buffers, data.NullN(), data.Offset(), values), nil
	}
	types := children18(stored)
	if len(types) != len(data.Children()) {
		return nil, faults.Corrupt(fault.At{Column: path}, "an array of %s has %d children", stored, len(data.Children()))
	}
	children := make([]arrow18.ArrayData, len(types))
	for i, c := range data.Children() {
		child, err := data18(below(path, types[i].Name), c, types[i].Type)
		if err != nil {
			return nil, err
		}
		defer child.Release()
		children[i] = child
	}
	return array18.NewData(t, data.Len(), buffers, children, data.NullN(), data.Offset()), nil
}

// storage18 returns the type below any extension types.
func storage18(t arrow18.DataType) arrow18.DataType {
	for {
		ext, ok := t.(arrow18.ExtensionType)
		if !ok {
			return t
		}
		t = ext.StorageType()
	}
}

// children18 returns the fields of the arrays below an array of the type.
func children18(t arrow18.DataType) []arrow18.Field {
	if n, ok := t.(arrow18.NestedType); ok {
		return n.Fields()
	}
	return nil
}

// lease18 is the allocator of a buffer of v18 over memory of v15, of which it
// holds one reference until the buffer is freed.
type lease18 struct {
	source arrow15.ArrayData
	ended  atomic.Bool
}

// Allocate is not called: a buffer made over memory has some.
func (l *lease18) Allocate(size int) []byte { return memory18.DefaultAllocator.Allocate(size) }

// Reallocate copies, so that resizing a buffer leaves its source as it is.
func (l *lease18) Reallocate(size int, b []byte) []byte {
	resized := make([]byte, size)
	copy(resized, b)
	l.Free(b)
	return resized
}

// Free releases the source, once.
func (l *lease18) Free([]byte) {
	if !l.ended.Swap(true) {
		l.source.Release()
	}
}
