package generic

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	v15 "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
)

const (
	maxValueSize = 128 << 20 // bytes; a page with a larger value would not be read back
	writeEntries = 4 << 10   // handed to v15 at once, which looks at a page's size in between
	writeBytes   = 512 << 10
)

// leafValues collects the entries of one leaf for one row group, in the form
// that v15's column writers take. Only values that are there are held.
type leafValues struct {
	def, rep []int16
	entries  int

	bools   []bool
	int32s  []int32
	int64s  []int64
	floats  []float32
	doubles []float64
	bytes   []v15.ByteArray
	fixed   []v15.FixedLenByteArray
}

// add takes the entries of one array.
func (v *leafValues) add(l *leafShape, arr arrow.Array, slots []slot, width int) error {
	v.entries += len(slots)
	for _, s := range slots {
		if l.maxDef > 0 {
			v.def = append(v.def, s.def)
		}
		if l.maxRep > 0 {
			v.rep = append(v.rep, s.rep)
		}
	}
	return v.values(arr, slots, width)
}

// each calls f with the index of every slot that has a value.
func each(slots []slot, f func(i int)) {
	for _, s := range slots {
		if s.index >= 0 {
			f(int(s.index))
		}
	}
}

func (v *leafValues) values(arr arrow.Array, slots []slot, width int) (err error) {
	add32 := func(n int32) { v.int32s = append(v.int32s, n) }
	add64 := func(n int64) { v.int64s = append(v.int64s, n) }
	switch a := arr.(type) {
	case *array.Null:
	case *array.Boolean:
		each(slots, func(i int) { v.bools = append(v.bools, a.Value(i)) })
	case *array.Int8:
		each(slots, func(i int) { add32(int32(a.Value(i))) })
	case *array.Int16:
		each(slots, func(i int) { add32(int32(a.Value(i))) })
	case *array.Int32:
		each(slots, func(i int) { add32(a.Value(i)) })
	case *array.Int64:
		each(slots, func(i int) { add64(a.Value(i)) })
	case *array.Uint8:
		each(slots, func(i int) { add32(int32(a.Value(i))) })
	case *array.Uint16:
		each(slots, func(i int) { add32(int32(a.Value(i))) })
	case *array.Uint32:
		each(slots, func(i int) { add32(int32(a.Value(i))) })
	case *array.Uint64:
		each(slots, func(i int) { add64(int64(a.Value(i))) })
	case *array.Float32:
		each(slots, func(i int) { v.floats = append(v.floats, a.Value(i)) })
	case *array.Float64:
		each(slots, func(i int) { v.doubles = append(v.doubles, a.Value(i)) })
	case *array.Date32:
		each(slots, func(i int) { add32(int32(a.Value(i))) })
	case *array.Date64:
		err = v.dates(a, slots)
	case *array.Time32:
		f := int64(1)
		if a.DataType().(*arrow.Time32Type).Unit == arrow.Second {
			f = 1000
		}
		each(slots, func(i int) { add32(int32(int64(a.Value(i)) * f)) })
	case *array.Time64:
		each(slots, func(i int) { add64(int64(a.Value(i))) })
	case *array.Duration:
		each(slots, func(i int) { add64(int64(a.Value(i))) })
	case *array.Timestamp:
		err = v.timestamps(a, slots)
	default:
		err = v.byteValues(arr, slots, width)
	}
	return err
}

func (v *leafValues) dates(a *array.Date64, slots []slot) (err error) {
	const day = 24 * 60 * 60 * 1000
	each(slots, func(i int) {
		ms := int64(a.Value(i))
		if ms%day != 0 || ms/day != int64(int32(ms/day)) {
			err = fmt.Errorf("a date64 that is not a whole day")
		}
		v.int32s = append(v.int32s, int32(ms/day))
	})
	return err
}

func (v *leafValues) timestamps(a *array.Timestamp, slots []slot) (err error) {
	seconds := a.DataType().(*arrow.TimestampType).Unit == arrow.Second
	each(slots, func(i int) {
		t := int64(a.Value(i))
		if seconds {
			if t > math.MaxInt64/1000 || t < math.MinInt64/1000 {
				err = fmt.Errorf("a timestamp in seconds that does not fit into milliseconds")
			}
			t *= 1000
		}
		v.int64s = append(v.int64s, t)
	})
	return err
}

func (v *leafValues) byteValues(arr arrow.Array, slots []slot, width int) (err error) {
	add := func(b []byte) {
		if len(b) > maxValueSize {
			err = fmt.Errorf("unsupported: a value of %d bytes", len(b))
			return
		}
		v.bytes = append(v.bytes, b)
	}
	decimal := func(words ...uint64) {
		b := make([]byte, width)
		if e := bigEndian(b, words...); e != nil {
			err = e
		}
		v.fixed = append(v.fixed, b)
	}
	switch a := arr.(type) {
	case *array.String:
		if a.Len() > 0 {
			text, first := a.ValueBytes(), a.ValueOffset(0)
			each(slots, func(i int) { add(text[a.ValueOffset(i)-first : a.ValueOffset(i+1)-first]) })
		}
	case *array.LargeString:
		if a.Len() > 0 {
			text, first := a.ValueBytes(), a.ValueOffset(0)
			each(slots, func(i int) { add(text[a.ValueOffset(i)-first : a.ValueOffset(i+1)-first]) })
		}
	case *array.StringView:
		each(slots, func(i int) { add([]byte(a.Value(i))) })
	case *array.BinaryView:
		each(slots, func(i int) { add(a.Value(i)) })
	case *array.Binary:
		each(slots, func(i int) { add(a.Value(i)) })
	case *array.LargeBinary:
		each(slots, func(i int) { add(a.Value(i)) })
	case *array.FixedSizeBinary:
		each(slots, func(i int) { v.fixed = append(v.fixed, a.Value(i)) })
	case *array.Float16:
		each(slots, func(i int) {
			v.fixed = append(v.fixed, binary.LittleEndian.AppendUint16(nil, a.Value(i).Uint16()))
		})
	case *array.Decimal128:
		each(slots, func(i int) { decimal(a.Value(i).LowBits(), uint64(a.Value(i).HighBits())) })
	case *array.Decimal256:
		each(slots, func(i int) {
			w := a.Value(i).Array()
			decimal(w[:]...)
		})
	default:
		err = fmt.Errorf("unsupported: a column of type %s", arr.DataType())
	}
	return err
}

// write hands the entries to v15 in portions that depend on them alone.
func (v *leafValues) write(cw file.ColumnChunkWriter, maxDef int16) error {
	value := 0
	for from := 0; from < v.entries; {
		to, n := v.portion(from, value, maxDef)
		var def, rep []int16
		if v.def != nil {
			def = v.def[from:to]
		}
		if v.rep != nil {
			rep = v.rep[from:to]
		}
		if err := v.batch(cw, value, value+n, def, rep); err != nil {
			return err
		}
		from, value = to, value+n
	}
	return nil
}

// portion returns the end of the portion of entries that begins at from, and
// the number of values in it, the first of which is value.
func (v *leafValues) portion(from, value int, maxDef int16) (to, values int) {
	bytes := 0
	for to = from; to < v.entries && to-from < writeEntries && (to == from || bytes < writeBytes); to++ {
		if v.def != nil && v.def[to] != maxDef {
			continue
		}
		switch {
		case v.bytes != nil:
			bytes += len(v.bytes[value+values])
		case v.fixed != nil:
			bytes += len(v.fixed[value+values])
		}
		values++
	}
	return to, values
}

func (v *leafValues) batch(cw file.ColumnChunkWriter, from, to int, def, rep []int16) (err error) {
	switch w := cw.(type) {
	case *file.BooleanColumnChunkWriter:
		_, err = w.WriteBatch(part(v.bools, from, to), def, rep)
	case *file.Int32ColumnChunkWriter:
		_, err = w.WriteBatch(part(v.int32s, from, to), def, rep)
	case *file.Int64ColumnChunkWriter:
		_, err = w.WriteBatch(part(v.int64s, from, to), def, rep)
	case *file.Float32ColumnChunkWriter:
		_, err = w.WriteBatch(part(v.floats, from, to), def, rep)
	case *file.Float64ColumnChunkWriter:
		_, err = w.WriteBatch(part(v.doubles, from, to), def, rep)
	case *file.ByteArrayColumnChunkWriter:
		_, err = w.WriteBatch(part(v.bytes, from, to), def, rep)
	case *file.FixedLenByteArrayColumnChunkWriter:
		_, err = w.WriteBatch(part(v.fixed, from, to), def, rep)
	default:
		err = fmt.Errorf("no column writer for %v", cw.Type())
	}
	return err
}

// part is s[from:to], empty but never nil: to v15 nil means that there are no
// values to count.
func part[T any](s []T, from, to int) []T {
	if s == nil {
		return []T{}
	}
	return s[from:to]
}
