package textout

import (
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// put appends the text of element i of an array. An error is a trouble.
type put func(dst []byte, i int) ([]byte, error)

// binder makes puts for arrays.
type binder struct {
	json bool // else fields of CSV or TSV
	tsv  bool
	only bool // fields of the only column
}

// column returns the put of a column.
func (b binder) column(f arrow.Field, a arrow.Array) put {
	field := b.bind(f, a)
	if !b.only || b.json {
		return field
	}
	return func(dst []byte, i int) ([]byte, error) {
		n := len(dst)
		dst, err := field(dst, i)
		switch {
		case err != nil:
			return dst, err
		case len(dst) == n && b.tsv:
			return dst, trouble{"is NULL in the only column: TSV would have an empty line", "keep another column, or write NDJSON or Parquet"}
		case len(dst) == n:
			return append(dst, `""`...), nil
		case string(dst[n:]) == `""`:
			return dst, trouble{"has an empty string in the only column, which CSV cannot tell from NULL", "keep another column, or write NDJSON or Parquet"}
		}
		return dst, nil
	}
}

// bind returns the put of an array, of which NULL is one.
func (b binder) bind(f arrow.Field, a arrow.Array) put {
	switch a := a.(type) {
	case *array.Null:
		return func(dst []byte, _ int) ([]byte, error) { return b.null(dst), nil }
	case array.ExtensionArray:
		f.Type = a.Storage().DataType()
		if name := a.ExtensionType().ExtensionName(); name != "" {
			f.Metadata = arrow.NewMetadata([]string{extensionKey}, []string{name})
		}
		return b.bind(f, a.Storage())
	case *array.Dictionary:
		f.Type = a.Dictionary().DataType()
		value := b.bind(f, a.Dictionary())
		return b.orNull(a, func(dst []byte, i int) ([]byte, error) { return value(dst, a.GetValueIndex(i)) })
	case *array.Struct, array.ListLike:
		return b.orNull(a, b.nested(f, a))
	case array.StringLike:
		return b.orNull(a, func(dst []byte, i int) ([]byte, error) { return b.text(dst, a.Value(i)) })
	}
	if value, bits := floatOf(a); value != nil {
		return b.orNull(a, func(dst []byte, i int) ([]byte, error) {
			v := value(i)
			if s := special(v); s != "" {
				return b.quoted(dst, func(dst []byte, _ int) ([]byte, error) { return append(dst, s...), nil }, i)
			}
			return appendFloat(dst, v, bits), nil
		})
	}
	value, number := plain(f, a)
	if number {
		return b.orNull(a, value)
	}
	return b.orNull(a, func(dst []byte, i int) ([]byte, error) { return b.quoted(dst, value, i) })
}

// extensionKey is the metadata key of the name of an extension type.
const extensionKey = "ARROW:extension:name"

func (b binder) null(dst []byte) []byte {
	if b.json {
		return append(dst, "null"...)
	}
	return dst
}

func (b binder) orNull(a arrow.Array, value put) put {
	if a.NullN() == 0 {
		return value
	}
	return func(dst []byte, i int) ([]byte, error) {
		if a.IsNull(i) {
			return b.null(dst), nil
		}
		return value(dst, i)
	}
}

// text appends a string.
func (b binder) text(dst []byte, s string) ([]byte, error) {
	switch {
	case b.json:
		return appendJSON(dst, s)
	case b.tsv:
		return appendTSV(dst, s)
	}
	return appendCSV(dst, s)
}

// quoted appends text without special characters: a string of JSON.
func (b binder) quoted(dst []byte, value put, i int) (_ []byte, err error) {
	n := len(dst)
	if b.json {
		dst = append(dst, '"')
	}
	if dst, err = value(dst, i); err != nil {
		return dst, err
	}
	switch {
	case b.json:
		return append(dst, '"'), nil
	case len(dst) == n: // of a binary value without bytes
		return b.text(dst, "")
	}
	return dst, nil
}

// nested returns the put of lists and structs: JSON, in CSV and TSV as the text of a field.
func (b binder) nested(f arrow.Field, a arrow.Array) put {
	if !b.json {
		value := binder{json: true}.nested(f, a)
		var scratch []byte
		return func(dst []byte, i int) (_ []byte, err error) {
			if scratch, err = value(scratch[:0], i); err != nil {
				return dst, err
			}
			return b.text(dst, unsafe.String(unsafe.SliceData(scratch), len(scratch)))
		}
	}
	if s, ok := a.(*array.Struct); ok {
		return b.structs(s)
	}
	list := a.(array.ListLike)
	elem := arrow.Field{Type: list.ListValues().DataType()}
	switch t := f.Type.(type) {
	case *arrow.MapType: // its entries are structs
	case interface{ ElemField() arrow.Field }:
		elem = t.ElemField()
	}
	value := b.bind(elem, list.ListValues())
	return func(dst []byte, i int) (_ []byte, err error) {
		dst = append(dst, '[')
		from, to := list.ValueOffsets(i)
		for at := from; at < to; at++ {
			if at > from {
				dst = append(dst, ',')
			}
			if dst, err = value(dst, int(at)); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	}
}

func (b binder) structs(s *array.Struct) put {
	var names [][]byte
	var values []put
	for i, f := range s.DataType().(*arrow.StructType).Fields() {
		name, _ := appendJSON(nil, f.Name) // it was checked
		names, values = append(names, append(name, ':')), append(values, b.bind(f, s.Field(i)))
	}
	return func(dst []byte, i int) (_ []byte, err error) {
		dst = append(dst, '{')
		for j, value := range values {
			if j > 0 {
				dst = append(dst, ',')
			}
			if dst, err = value(append(dst, names[j]...), i); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
}
