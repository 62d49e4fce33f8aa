package arrowparquet

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

const maxValueSize = 128 << 20 // bytes; a page with a larger value could not be read back

// leafPage builds pages of a leaf's entries in reusable memory.
type leafPage struct {
	parquet.Page
	rep, def []uint8
	plain    []byte
	holds    bool // its values go to no file
}

// fill builds the page of one array's entries.
func (p *leafPage) fill(l *leafShape, arr arrow.Array, slots []slot) error {
	p.rep, p.def, p.plain = p.rep[:0], p.def[:0], p.plain[:0]
	p.Page = parquet.Page{Values: len(slots)}
	for _, s := range slots {
		if s.rep == 0 {
			p.Rows++
		}
		if s.index >= 0 {
			p.NonNull++
		}
	}
	if l.maxDef > 0 {
		for _, s := range slots {
			p.def = append(p.def, s.def)
		}
		p.Def = p.def
	}
	if l.maxRep > 0 {
		for _, s := range slots {
			p.rep = append(p.rep, s.rep)
		}
		p.Rep = p.rep
	}
	err := error(nil)
	if p.holds = l.raw; p.holds {
		err = p.raw(arr, slots)
	} else {
		err = p.values(arr, slots, l.length)
	}
	p.Plain = p.plain
	return err
}

// each calls f with the index of every slot that has a value.
func each(slots []slot, f func(i int)) {
	for _, s := range slots {
		if s.index >= 0 {
			f(int(s.index))
		}
	}
}

func (p *leafPage) add32(n int32) { p.plain = binary.LittleEndian.AppendUint32(p.plain, uint32(n)) }
func (p *leafPage) add64(n int64) { p.plain = binary.LittleEndian.AppendUint64(p.plain, uint64(n)) }

func add32[T ~int8 | ~int16 | ~int32 | ~uint8 | ~uint16 | ~uint32](p *leafPage, slots []slot, values []T) {
	each(slots, func(i int) { p.add32(int32(values[i])) })
}

func add64[T ~int64 | ~uint64](p *leafPage, slots []slot, values []T) {
	each(slots, func(i int) { p.add64(int64(values[i])) })
}

// values appends the values. width is the size of fixed-length byte arrays.
func (p *leafPage) values(arr arrow.Array, slots []slot, width int) (err error) {
	switch a := arr.(type) {
	case *array.Null:
	case *array.Boolean:
		n := 0
		each(slots, func(i int) {
			if n%8 == 0 {
				p.plain = append(p.plain, 0)
			}
			if a.Value(i) {
				p.plain[n/8] |= 1 << (n % 8)
			}
			n++
		})
	case *array.Int8:
		add32(p, slots, a.Int8Values())
	case *array.Int16:
		add32(p, slots, a.Int16Values())
	case *array.Int32:
		add32(p, slots, a.Int32Values())
	case *array.Int64:
		add64(p, slots, a.Int64Values())
	case *array.Uint8:
		add32(p, slots, a.Uint8Values())
	case *array.Uint16:
		add32(p, slots, a.Uint16Values())
	case *array.Uint32:
		add32(p, slots, a.Uint32Values())
	case *array.Uint64:
		add64(p, slots, a.Uint64Values())
	case *array.Float32:
		each(slots, func(i int) { p.add32(int32(math.Float32bits(a.Value(i)))) })
	case *array.Float64:
		each(slots, func(i int) { p.add64(int64(math.Float64bits(a.Value(i)))) })
	case *array.Date32:
		add32(p, slots, a.Date32Values())
	case *array.Date64:
		err = p.dates(a, slots)
	case *array.Time32:
		f := int64(1)
		if a.DataType().(*arrow.Time32Type).Unit == arrow.Second {
			f = 1000
		}
		each(slots, func(i int) { p.add32(int32(int64(a.Value(i)) * f)) })
	case *array.Time64:
		add64(p, slots, a.Time64Values())
	case *array.Duration:
		add64(p, slots, a.DurationValues())
	case *array.Timestamp:
		err = p.timestamps(a, slots)
	default:
		err = p.byteValues(arr, slots, width)
	}
	return err
}

func (p *leafPage) dates(a *array.Date64, slots []slot) (err error) {
	const day = 24 * 60 * 60 * 1000
	each(slots, func(i int) {
		ms := int64(a.Value(i))
		if ms%day != 0 || ms/day != int64(int32(ms/day)) {
			err = fmt.Errorf("a date64 that is not a whole day")
		}
		p.add32(int32(ms / day))
	})
	return err
}

func (p *leafPage) timestamps(a *array.Timestamp, slots []slot) (err error) {
	seconds := a.DataType().(*arrow.TimestampType).Unit == arrow.Second
	each(slots, func(i int) {
		t := int64(a.Value(i))
		if seconds {
			if t > math.MaxInt64/1000 || t < math.MinInt64/1000 {
				err = fmt.Errorf("a timestamp in seconds that does not fit into milliseconds")
			}
			t *= 1000
		}
		p.add64(t)
	})
	return err
}

func (p *leafPage) byteValues(arr arrow.Array, slots []slot, width int) (err error) {
	add := func(b string) {
		if len(b) > maxValueSize && !p.holds {
			err = fmt.Errorf("unsupported: a value of %d bytes", len(b))
			return
		}
		p.plain = binary.LittleEndian.AppendUint32(p.plain, uint32(len(b)))
		p.plain = append(p.plain, b...)
	}
	decimal := func(words ...uint64) {
		n := len(p.plain)
		p.plain = append(p.plain, make([]byte, width)...)
		if e := bigEndian(p.plain[n:], words...); e != nil {
			err = e
		}
	}
	switch a := arr.(type) {
	case *array.FixedSizeBinary:
		each(slots, func(i int) { p.plain = append(p.plain, a.Value(i)...) })
	case *array.Float16:
		each(slots, func(i int) { p.plain = binary.LittleEndian.AppendUint16(p.plain, a.Value(i).Uint16()) })
	case *array.Decimal128:
		each(slots, func(i int) { decimal(a.Value(i).LowBits(), uint64(a.Value(i).HighBits())) })
	case *array.Decimal256:
		each(slots, func(i int) {
			w := a.Value(i).Array()
			decimal(w[:]...)
		})
	default:
		value := take.Text(arr)
		if value == nil {
			return fmt.Errorf("unsupported: a column of type %s", arr.DataType())
		}
		each(slots, func(i int) { add(value(i)) })
	}
	return err
}
