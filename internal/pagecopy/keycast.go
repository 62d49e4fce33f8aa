package pagecopy

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/decimal"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// keyCast converts keys of a table to the type of the log's key column, which has both
// in an output with [tables.Pairs].KeepTable.
type keyCast struct {
	From   *meta.Leaf
	To     *meta.Leaf
	value  castValue
	misfit error
}

// castValue appends a value, which has no length before it, in its new form. It
// returns false if there is no such form.
type castValue func(dst, v []byte) ([]byte, bool)

// shareKey lets the last leaf, a key of the log, have the keys of the table in rows
// without a log row.
func (a *pairPlan) shareKey(c tables.PairColumn, log tables.TableSpan, field arrow.Field) error {
	span, of := a.p.Of.Spans[c.Table], a.p.Of.Schema.Field(c.Table)
	to, from := take.PlainType(field.Type), take.PlainType(of.Type)
	unfit := fmt.Errorf("the key %s is %s in the log and %s in the IDs", c.Name, to, from)
	src, dst := &a.p.Of.Leaves[span.Leaf], &a.from.Leaves[log.Leaf]
	value, ok := castOf(src, dst, from, to)
	if !ok || len(src.Path) > 1 || len(dst.Path) > 1 || src.MaxRep+dst.MaxRep > 0 {
		return unfit
	}
	rest := &a.Leaves[len(a.Leaves)-1].Rest
	rest.Table, rest.As = span.Leaf, leaves.Shape{Shift: uint8(1 - src.MaxDef), MaxDef: 1}
	if value == nil {
		return nil
	}
	misfit := faults.Unsupported(fault.At{Column: field.Name}, "an ID's key of type %s in the log's column of type %s", from, to).
		WithHint("rename the ID's column and write {On %s=NAME}, so that each side keeps its own", field.Name)
	rest.Cast = &keyCast{From: src, To: dst, value: value, misfit: misfit}
	return nil
}

// Pages converts pages, none of which has a dictionary.
func (k *keyCast) Pages(in iter.Seq2[*parquet.Page, error]) iter.Seq2[*parquet.Page, error] {
	return func(yield func(*parquet.Page, error) bool) {
		var plain []byte
		for p, err := range in {
			if err == nil {
				plain, err = k.appendPlain(plain[:0], p)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&parquet.Page{Values: p.Values, Rows: p.Rows, NonNull: p.NonNull, Rep: p.Rep, Def: p.Def, Plain: plain}, nil) {
				return
			}
		}
	}
}

// appendPlain appends the converted values of a page in PLAIN form.
func (k *keyCast) appendPlain(dst []byte, p *parquet.Page) ([]byte, error) {
	w := k.From.Width()
	for i := range p.NonNull {
		var v []byte
		if w > 0 {
			v = p.Plain[i*w : (i+1)*w]
		} else {
			v = p.Bytes(i, nil)
		}
		start := len(dst)
		if k.To.Type == format.ByteArray {
			dst = append(dst, 0, 0, 0, 0)
		}
		var ok bool
		if dst, ok = k.value(dst, v); !ok {
			return nil, k.misfit
		}
		if k.To.Type == format.ByteArray {
			binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
		}
	}
	return dst, nil
}

// castOf returns the conversion between two leaves, which are the given types in
// Arrow. It is nil if values stay as they are. ok is false if values of one type are
// not simply those of the other.
func castOf(from, to *meta.Leaf, fromType, toType arrow.DataType) (value castValue, ok bool) {
	if from.Logical.Kind == meta.Null { // it has no values
		return nil, true
	}
	a, errA := keys.ClassOf(fromType)
	b, errB := keys.ClassOf(toType)
	if errA != nil || errB != nil || a != b {
		return nil, false
	}
	stored := from.Type == to.Type && from.TypeLength == to.TypeLength
	switch {
	case stored && arrow.TypeEqual(fromType, toType):
		return nil, true
	case from.Type == format.Int96 || to.Type == format.Int96:
		return nil, from.Type == to.Type
	}
	switch a {
	case keys.Integer:
		return castInteger(from, to), true
	case keys.Bytes:
		return castText(from, to), true
	case keys.Float:
		return castFloat(from, to)
	case keys.Decimal:
		return castDecimal(from, to)
	case keys.Instant, keys.Timestamp, keys.Time:
		return castTime(from, to), true
	}
	_, fixed := keys.FixedWidth(a)
	return nil, stored && (fixed || a == keys.Date || a == keys.Boolean)
}

// integerOf returns the width and the sign of a leaf's integers.
func integerOf(l *meta.Leaf) (bits int, signed bool) {
	switch {
	case l.Logical.Kind == meta.Int:
		return l.Logical.BitWidth, l.Logical.Signed
	case l.Type == format.Int32:
		return 32, true
	}
	return 64, true
}

func castInteger(from, to *meta.Leaf) castValue {
	bits, signed := integerOf(to)
	low, high := int64(0), int64(math.MaxInt64)
	if signed {
		low = -1 << (bits - 1)
	}
	switch {
	case signed:
		high = 1<<(bits-1) - 1
	case bits < 64:
		high = 1<<bits - 1
	}
	fromBits, fromSigned := integerOf(from)
	return func(dst, v []byte) ([]byte, bool) {
		x := loadInteger(v, fromBits == 32 && !fromSigned)
		if fromBits == 64 && !fromSigned && x < 0 { // too large for int64
			return append(dst, v...), bits == 64 && !signed
		}
		return storeInteger(dst, to, x), low <= x && x <= high
	}
}

// loadInteger reads an INT32 or INT64.
func loadInteger(v []byte, unsigned bool) int64 {
	switch {
	case len(v) == 8:
		return int64(binary.LittleEndian.Uint64(v))
	case unsigned:
		return int64(binary.LittleEndian.Uint32(v))
	}
	return int64(int32(binary.LittleEndian.Uint32(v)))
}

// storeInteger appends an INT32 or INT64.
func storeInteger(dst []byte, to *meta.Leaf, x int64) []byte {
	if to.Type == format.Int32 {
		return binary.LittleEndian.AppendUint32(dst, uint32(x))
	}
	return binary.LittleEndian.AppendUint64(dst, uint64(x))
}

// castText is the cast between strings and binaries. Only the former must be UTF-8.
func castText(from, to *meta.Leaf) castValue {
	if !isText(to) || isText(from) {
		return nil
	}
	return func(dst, v []byte) ([]byte, bool) { return append(dst, v...), utf8.Valid(v) }
}

// isText reports whether a leaf holds UTF-8.
func isText(l *meta.Leaf) bool {
	switch l.Logical.Kind {
	case meta.String, meta.Enum, meta.JSON:
		return true
	}
	return false
}

func castFloat(from, to *meta.Leaf) (castValue, bool) {
	switch {
	case from.Type == format.Float && to.Type == format.Double:
		return func(dst, v []byte) ([]byte, bool) {
			x := math.Float32frombits(binary.LittleEndian.Uint32(v))
			return binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(x))), true
		}, true
	case from.Type == format.Double && to.Type == format.Float:
		return func(dst, v []byte) ([]byte, bool) {
			x := math.Float64frombits(binary.LittleEndian.Uint64(v))
			return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(x))), float64(float32(x)) == x || x != x
		}, true
	}
	return nil, false // half precision
}

// castTime is the cast between units of times or timestamps.
func castTime(from, to *meta.Leaf) castValue {
	times, over := int64(1), int64(1)
	for u := from.Logical.Unit; u < to.Logical.Unit; u++ {
		times *= 1000
	}
	for u := to.Logical.Unit; u < from.Logical.Unit; u++ {
		over *= 1000
	}
	if times == 1 && over == 1 {
		return nil
	}
	low, high := math.MinInt64/times, math.MaxInt64/times
	return func(dst, v []byte) ([]byte, bool) {
		x := loadInteger(v, false)
		y := x / over * times
		fits := low <= x && x <= high && x%over == 0 && (to.Type == format.Int64 || int64(int32(y)) == y)
		return storeInteger(dst, to, y), fits
	}
}

// castDecimal is the cast between decimals of one scale, to those of no fewer digits.
func castDecimal(from, to *meta.Leaf) (castValue, bool) {
	if from.Logical.Scale != to.Logical.Scale || from.Logical.Precision > to.Logical.Precision {
		return nil, false
	}
	if from.Type == to.Type && from.TypeLength == to.TypeLength {
		return nil, true
	}
	width := to.TypeLength
	switch to.Type {
	case format.Int32:
		width = 4
	case format.Int64:
		width = 8
	}
	var buf [8]byte
	return func(dst, v []byte) ([]byte, bool) {
		if from.Type == format.Int32 || from.Type == format.Int64 {
			binary.BigEndian.PutUint64(buf[:], uint64(loadInteger(v, false)))
			v = buf[:]
		}
		if to.Type == format.ByteArray {
			return append(dst, v...), len(v) > 0
		}
		start := len(dst)
		dst, ok := decimal.AppendSigned(dst, v, width)
		if to.Type != format.FixedLenByteArray { // little-endian
			for b := dst[start:]; len(b) > 1; b = b[1 : len(b)-1] {
				b[0], b[len(b)-1] = b[len(b)-1], b[0]
			}
		}
		return dst, ok
	}, true
}
