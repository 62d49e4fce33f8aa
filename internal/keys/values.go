package keys

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Values are keys from a program: one column of Go values or of an Arrow array, or
// several combined by [Columns]. They refer to the caller's memory, which must not
// change while they are in use. Make them with one of the functions that return
// Values; the zero value has no column.
type Values struct{ columns []values }

// values is one column: exactly one of array, plain and text is set.
type values struct {
	typ   arrow.DataType
	n     int
	array arrow.Array
	plain []byte                           // fixed-width values in Arrow's layout
	text  func(dst []byte, row int) []byte // appends the string of a row
	valid []bool                           // by row: not NULL; nil: only NULLs of array are NULL
}

// Int64s returns integer keys.
func Int64s(v []int64) Values { return plain(arrow.PrimitiveTypes.Int64, v) }

// Uint64s returns integer keys. They equal those of Int64s with the same value.
func Uint64s(v []uint64) Values { return plain(arrow.PrimitiveTypes.Uint64, v) }

// UUIDs returns keys of 16 bytes.
func UUIDs(v [][16]byte) Values { return plain(&arrow.FixedSizeBinaryType{ByteWidth: 16}, v) }

// plain returns a column of values that have the same bytes in Arrow.
func plain[T any](t arrow.DataType, v []T) Values {
	var zero T
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), int(unsafe.Sizeof(zero))*len(v))
	return one(values{typ: t, plain: bytes, n: len(v)})
}

// Strings returns string keys. A filter's rule applies to them; with the rule uuid
// they are UUIDs in text form.
func Strings(v []string) Values { return text(v) }

// ByteSlices returns keys that are byte strings, of the same class as Strings. nil
// is the empty string, not NULL.
func ByteSlices(v [][]byte) Values { return text(v) }

func text[T string | []byte](v []T) Values {
	add := func(dst []byte, row int) []byte { return append(dst, v[row]...) }
	return one(values{typ: arrow.BinaryTypes.LargeBinary, text: add, n: len(v)})
}

// Array returns keys from an array of any supported key type. A NULL is not a key.
// The array is not retained. Using the keys of a nil array is an error.
func Array(a arrow.Array) Values {
	typ, n, ok := described(a)
	if !ok {
		return one(values{})
	}
	return one(values{typ: typ, array: a, n: n})
}

// described returns the type and length of an array. ok is false for nil, a nil
// pointer, and a struct around one.
func described(a arrow.Array) (typ arrow.DataType, n int, ok bool) {
	if a == nil {
		return nil, 0, false
	}
	defer func() {
		if r := recover(); r != nil {
			typ, n, ok = nil, 0, false
		}
	}()
	typ, n = a.DataType(), a.Len()
	return typ, n, typ != nil
}

// Columns returns composite keys of the columns of the given values, in order.
// All must have the same number of rows.
func Columns(v ...Values) Values {
	var all Values
	for _, x := range v {
		all.columns = append(all.columns, x.columns...)
	}
	return all
}

func one(v values) Values { return Values{columns: []values{v}} }

// Valid returns v with NULL added in each row i for which valid[i] is false.
func (v Values) Valid(valid []bool) Values {
	all := Values{columns: slices.Clone(v.columns)}
	for i := range all.columns {
		all.columns[i].and(valid)
	}
	return all
}

// and makes rows that are not valid NULL, too. A list whose length is not the column's is
// kept for checkValid to refuse.
func (c *values) and(valid []bool) {
	switch {
	case valid == nil || c.valid != nil && len(c.valid) != c.n:
	case c.valid == nil || len(valid) != c.n:
		c.valid = valid
	default:
		c.valid = slices.Clone(c.valid)
		for i, ok := range valid {
			c.valid[i] = c.valid[i] && ok
		}
	}
}

// Classes returns the classes of the columns.
func (v Values) Classes() (classes []Class, err error) {
	if len(v.columns) == 0 {
		return nil, errors.New("the keys have no column: make them with a function that returns Values")
	}
	for i, c := range v.columns {
		if c.typ == nil {
			return nil, faults.Mismatch(fault.At{}, fmt.Sprintf("key column %d", i+1), "an array", "nil")
		}
		class, err := ClassOf(c.typ)
		if err != nil {
			return nil, err
		}
		classes = append(classes, class)
	}
	return classes, nil
}

// Len returns the number of rows of the first column.
func (v Values) Len() int {
	if len(v.columns) == 0 {
		return 0
	}
	return v.columns[0].n
}

// ValueEncoder turns Values into batches of keys. It reuses its memory between
// calls and must not be used concurrently.
type ValueEncoder struct {
	options Options
	batch   Batch
	scratch []textScratch // one per column
}

// textScratch holds a column of strings in contiguous memory.
type textScratch struct {
	ends []int64
	data []byte
}

// NewValueEncoder returns an encoder for keys of o.Classes with o.Rule. Values of
// another class are an error, except that numbers are converted exactly: a number
// without an equal in the class becomes a key that matches nothing.
func NewValueEncoder(o Options) *ValueEncoder { return &ValueEncoder{options: o} }

// batchRows is the number of rows in a batch, small enough that the keys stay in
// the cache until they are used.
const batchRows = 1 << 13

// Encode calls fn with all rows of v, in order, in batches of a few thousand rows.
// first is the index in v of the batch's first row. The batch is valid until fn
// returns. Encode stops at the first error of fn and returns it.
func (e *ValueEncoder) Encode(v Values, fn func(first int, b *Batch) error) error {
	if e == nil {
		return errors.New("the encoder of values is nil: want one from NewValueEncoder")
	}
	steps, err := e.check(v)
	if err != nil {
		return err
	}
	if fn == nil {
		return errors.New("encode values: want a function that takes the batches, got nil")
	}
	for lo := 0; lo < v.Len(); lo += batchRows {
		if err := e.fill(v, steps, lo, min(lo+batchRows, v.Len())); err != nil {
			return err
		}
		if err := fn(lo, &e.batch); err != nil {
			return err
		}
	}
	return nil
}

// check compares the classes of the columns with the wanted ones.
func (e *ValueEncoder) check(v Values) ([]steps, error) {
	want := e.options.Classes
	if len(want) == 0 {
		return nil, errors.New("the encoder has no key classes: want one in Options.Classes for each column of the key")
	}
	if len(v.columns) != len(want) {
		return nil, faults.Of(cause.KeyTypes, faults.Mismatch(fault.At{}, "number of key columns", len(want), len(v.columns))).
			WithHint("give one column of values for each column of the key, in its order")
	}
	out := make([]steps, len(want))
	for i := range v.columns {
		c := &v.columns[i]
		if c.typ == nil {
			return nil, faults.Mismatch(fault.At{}, fmt.Sprintf("key column %d", i+1), "an array", "nil")
		}
		if c.n != v.Len() {
			return nil, faults.Mismatch(fault.At{}, fmt.Sprintf("rows of key column %d", i+1), v.Len(), c.n)
		}
		if err := c.checkValid(); err != nil {
			return nil, err
		}
		class, err := ClassOf(c.typ)
		if err != nil {
			return nil, err
		}
		s := steps{from: c.typ, of: e.options.Rule.Class(class)}
		if !s.of.comparable(want[i]) {
			return nil, faults.Of(cause.KeyTypes, faults.Mismatch(fault.At{}, "key class", want[i].word(), s.of.word())).
				WithHint("convert the values to the class of the key")
		}
		s.to = s.of
		if s.of == Null || s.of.Numeric() && want[i].Numeric() {
			s.to = want[i]
		}
		out[i] = s
	}
	return out, nil
}

// checkValid returns an error if the length of Valid's list is not the
// column's.
func (c *values) checkValid() error {
	switch {
	case c.valid == nil:
		return nil
	case c.array != nil:
		return errors.New("Valid is for Go values: want the NULLs of an Array in the array")
	case len(c.valid) != c.n:
		return faults.Mismatch(fault.At{}, "rows of Valid", c.n, len(c.valid))
	}
	return nil
}

// fill fills the batch with rows lo to hi, exclusive.
func (e *ValueEncoder) fill(v Values, steps []steps, lo, hi int) error {
	b := &e.batch
	if c := &v.columns[0]; len(v.columns) == 1 && c.array == nil && c.valid == nil && steps[0].asStored() && steps[0].to == Integer {
		b.SetInts(c.plain[8*lo:8*hi], hi-lo, 8, c.typ.ID() == arrow.INT64)
		return nil
	}
	b.reset(hi - lo)
	b.classes, b.rule = e.options.Classes, e.options.Rule
	if len(e.scratch) < len(v.columns) {
		e.scratch = make([]textScratch, len(v.columns))
	}
	parts := make([]part, len(v.columns))
	for i := range v.columns {
		a := v.columns[i].slice(lo, hi, &e.scratch[i])
		defer a.Release() // of memory that belongs to the caller or the scratch
		p, err := newPart(a, nil)
		if err != nil {
			return err
		}
		stored, _ := ClassOf(steps[i].from)
		p.rule, p.class, p.convert = e.options.Rule.Of(stored), steps[i].to, steps[i].converter()
		parts[i] = p
	}
	b.encode(parts)
	return nil
}

// slice returns rows lo to hi, exclusive, as an array over the column's memory or,
// for strings, over a copy in the scratch.
func (c *values) slice(lo, hi int, s *textScratch) arrow.Array {
	if c.array != nil {
		return array.NewSlice(c.array, int64(lo), int64(hi))
	}
	var d *array.Data
	bits, nulls := c.validity(lo, hi)
	if c.text != nil {
		s.gather(c, lo, hi)
		d = array.NewData(c.typ, hi-lo, []*memory.Buffer{bits, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(s.ends)), memory.NewBufferBytes(s.data)}, nil, nulls, 0)
	} else {
		width := len(c.plain) / c.n
		d = array.NewData(c.typ, hi-lo, []*memory.Buffer{bits, memory.NewBufferBytes(c.plain[width*lo : width*hi])}, nil, nulls, 0)
	}
	defer d.Release()
	return array.MakeFromData(d)
}

// validity returns the bitmap of rows lo to hi, exclusive, and the number of NULLs; nil
// without any.
func (c *values) validity(lo, hi int) (bits *memory.Buffer, nulls int) {
	if c.valid == nil {
		return nil, 0
	}
	set := make([]byte, bitutil.BytesForBits(int64(hi-lo)))
	for i, ok := range c.valid[lo:hi] {
		if ok {
			bitutil.SetBit(set, i)
		} else {
			nulls++
		}
	}
	return memory.NewBufferBytes(set), nulls
}

// gather copies the strings of rows lo to hi, exclusive, and their offsets in
// Arrow's layout.
func (s *textScratch) gather(c *values, lo, hi int) {
	s.ends, s.data = append(s.ends[:0], 0), s.data[:0]
	for row := lo; row < hi; row++ {
		s.data = c.text(s.data, row)
		s.ends = append(s.ends, int64(len(s.data)))
	}
}
