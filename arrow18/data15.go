package arrow18

import (
	"sync/atomic"

	arrow18 "github.com/apache/arrow-go/v18/arrow"
	array18 "github.com/apache/arrow-go/v18/arrow/array"
	arrow15 "github.com/apache/arrow/go/v15/arrow"
	array15 "github.com/apache/arrow/go/v15/arrow/array"
	memory15 "github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Record15 converts a record of v18 without copying its values. The caller
// releases the result, which keeps the record's memory alive until then.
func Record15(rec arrow18.RecordBatch) (arrow15.Record, error) {
	if rec == nil {
		return nil, nil
	}
	schema, err := Schema15(rec.Schema())
	if err != nil {
		return nil, err
	}
	return record15(rec, schema)
}

// Array15 converts an array of v18 without copying its values. The caller
// releases the result, which keeps the array's memory alive until then. An
// extension type that is not registered in v15 becomes its storage type.
func Array15(arr arrow18.Array) (_ arrow15.Array, err error) {
	if arr == nil {
		return nil, nil
	}
	defer recovered(&err)
	t, err := Type15(arr.DataType())
	if err != nil {
		return nil, err
	}
	return array15Of("", arr.Data(), t)
}

// record15 converts a record to the schema, which Schema15 has made of its own.
func record15(rec arrow18.RecordBatch, schema *arrow15.Schema) (_ arrow15.Record, err error) {
	defer recovered(&err)
	cols := make([]arrow15.Array, 0, rec.NumCols())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i, f := range schema.Fields() {
		c, err := array15Of(f.Name, rec.Column(i).Data(), f.Type)
		if err != nil {
			return nil, err
		}
		cols = append(cols, c)
	}
	return array15.NewRecord(schema, cols, rec.NumRows()), nil
}

// array15Of makes an array of the data, as the type.
func array15Of(path string, data arrow18.ArrayData, t arrow15.DataType) (arrow15.Array, error) {
	d, err := data15(path, data, t)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return array15.MakeFromData(d), nil
}

// data15 wraps the buffers of data, its children's and its dictionary's, as data
// of the type, which must have the same layout.
func data15(path string, data arrow18.ArrayData, t arrow15.DataType) (*array15.Data, error) {
	stored := storage15(t)
	if from := storage18(data.DataType()); !sameLayout(stored, from) {
		return nil, faults.Mismatch(fault.At{Column: path}, "type of an array's data", stored.String()+" as in the field", from.String())
	}
	buffers := make([]*memory15.Buffer, len(data.Buffers()))
	for i, b := range data.Buffers() {
		if b != nil {
			data.Retain()
			buffers[i] = memory15.NewBufferWithAllocator(b.Bytes(), &lease15{source: data})
			defer buffers[i].Release()
		}
	}
	if dict, _ := data.Dictionary().(*array18.Data); dict != nil {
		dt, ok := stored.(*arrow15.DictionaryType)
		if !ok {
			return nil, faults.Corrupt(fault.At{Column: path}, "an array of %s has a dictionary", stored)
		}
		values, err := data15(path, dict, dt.ValueType)
		if err != nil {
			return nil, err
		}
		defer values.Release()
		return array15.NewDataWithDictionary(t, data.Len(), buffers, data.NullN(), data.Offset(), values), nil
	}
	types := children15(stored)
	if len(types) != len(data.Children()) {
		return nil, faults.Corrupt(fault.At{Column: path}, "an array of %s has %d children", stored, len(data.Children()))
	}
	children := make([]arrow15.ArrayData, len(types))
	for i, c := range data.Children() {
		child, err := data15(below(path, types[i].Name), c, types[i].Type)
		if err != nil {
			return nil, err
		}
		defer child.Release()
		children[i] = child
	}
	return array15.NewData(t, data.Len(), buffers, children, data.NullN(), data.Offset()), nil
}

// storage15 returns the type below any extension types.
func storage15(t arrow15.DataType) arrow15.DataType {
	for {
		ext, ok := t.(arrow15.ExtensionType)
		if !ok {
			return t
		}
		t = ext.StorageType()
	}
}

// children15 returns the fields of the arrays below an array of the type.
func children15(t arrow15.DataType) []arrow15.Field {
	if n, ok := t.(arrow15.NestedType); ok {
		return n.Fields()
	}
	return nil
}

// lease15 is the allocator of a buffer of v15 over memory of v18, of which it
// holds one reference until the buffer is freed.
type lease15 struct {
	source arrow18.ArrayData
	ended  atomic.Bool
}

// Allocate is not called: a buffer made over memory has some.
func (l *lease15) Allocate(size int) []byte { return memory15.DefaultAllocator.Allocate(size) }

// Reallocate copies, so that resizing a buffer leaves its source as it is.
func (l *lease15) Reallocate(size int, b []byte) []byte {
	resized := make([]byte, size)
	copy(resized, b)
	l.Free(b)
	return resized
}

// Free releases the source, once.
func (l *lease15) Free([]byte) {
	if !l.ended.Swap(true) {
		l.source.Release()
	}
}
