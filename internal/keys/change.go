package keys

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// This file encodes keys that are cast, normalised by a rule or converted to
// another class of numbers.

// outcome is the result of turning a value into a key.
type outcome uint8

const (
	isKey    outcome = iota
	isVoid           // the value has no equal in the other side's class
	isUnfit          // the value cannot be an ID under the rule
	isMisfit         // the value does not fit its cast
)

// drop records why a row has no key.
func (b *Batch) drop(row uint32, why outcome) {
	switch why {
	case isMisfit:
		b.misfits = append(b.misfits, row)
	case isUnfit:
		b.unfit = append(b.unfit, row)
		fallthrough
	case isVoid:
		b.void = append(b.void, row)
	}
}

// value returns a row's value as a part of a composite key, valid until the next
// call.
func (p *part) value(row int) (value []byte, out outcome) {
	value = p.stored(p.tmp[0][:0], row)
	p.tmp[0] = value
	var ok bool
	if p.cast != nil {
		if value, ok = p.cast(p.tmp[1][:0], value); !ok {
			return nil, isMisfit
		}
		p.tmp[1] = value
	}
	if p.rule != 0 {
		p.tmp[3] = slices.Grow(p.tmp[3][:0], 3*len(value)) // for an escape of each byte
		if value, ok = p.rule.apply(value, p.tmp[3]); !ok {
			return nil, isUnfit
		}
	}
	if p.convert != nil {
		if value, ok = p.convert(p.tmp[2][:0], value); !ok {
			return nil, isVoid
		}
		p.tmp[2] = value
	}
	return value, isKey
}

// encodeChanged encodes a key of one column.
func encodeChanged(p *part, b *Batch) {
	kept := b.Rows[:0]
	for _, row := range b.Rows {
		value, out := p.value(int(row))
		if out != isKey {
			b.drop(row, out)
			continue
		}
		kept = append(kept, row)
		b.data = append(b.data, value...)
		b.ends = append(b.ends, len(b.data))
	}
	b.Rows = kept
}

// encodeChangedComposite encodes a key of several columns.
func encodeChangedComposite(parts []part, b *Batch) {
	kept := b.Rows[:0]
rows:
	for _, row := range b.Rows {
		start := len(b.data)
		why := isKey
		for i := range parts { // every part, because a misfit in any of them is an error
			value, out := parts[i].value(int(row))
			why = max(why, out)
			b.data = binary.AppendUvarint(b.data, uint64(len(value)))
			b.data = append(b.data, value...)
		}
		if why != isKey {
			b.data = b.data[:start]
			b.drop(row, why)
			continue rows
		}
		kept = append(kept, row)
		b.ends = append(b.ends, len(b.data))
	}
	b.Rows = kept
}

// encodeIntegers encodes a key of one column that is converted to integers.
func encodeIntegers(p *part, b *Batch) {
	b.isInt = true
	integer := p.integers()
	kept := b.Rows[:0]
	var negatives []uint32 // positions
	above := false
	for _, row := range b.Rows {
		v, negative, out := integer(int(row))
		if out != isKey {
			b.drop(row, out)
			continue
		}
		if negative {
			negatives = append(negatives, uint32(len(kept)))
		} else {
			above = above || v > math.MaxInt64
		}
		kept = append(kept, row)
		b.ints = append(b.ints, v)
	}
	b.Rows = kept
	b.signed = len(negatives) > 0
	if above && b.signed {
		for i, v := range b.ints {
			if v > math.MaxInt64 {
				b.raise(i, len(b.ints))
			}
		}
		for _, i := range negatives {
			b.above[i] = false
		}
	}
}

// integers returns a function that reads a row's key, in two's complement if
// negative. The most common non-integer columns, floats and decimals, are read
// without going through the normal form.
func (p *part) integers() func(row int) (v uint64, negative bool, out outcome) {
	index := func(row int) int { return row }
	leaf := unwrapped(p.leaf)
	if d := p.dict; d != nil {
		index, leaf = d.GetValueIndex, unwrapped(d.Dictionary())
	}
	if p.cast == nil {
		switch a := leaf.(type) {
		case *array.Float64:
			return func(row int) (uint64, bool, outcome) { return keyOf(wholeFloat(a.Value(index(row)))) }
		case *array.Float32:
			return func(row int) (uint64, bool, outcome) { return keyOf(wholeFloat(float64(a.Value(index(row))))) }
		case *array.Decimal128:
			if scale := a.DataType().(*arrow.Decimal128Type).Scale; scale >= 0 && scale <= 18 {
				return p.wholeDecimals(a, index, Pow10(int(scale)).Int64())
			}
		}
	}
	return p.anyInteger
}

// keyOf returns the outcome for a number; ok says whether it is a 64-bit integer.
func keyOf(v uint64, negative, ok bool) (uint64, bool, outcome) {
	if !ok {
		return 0, false, isVoid
	}
	return v, negative, isKey
}

// wholeDecimals reads decimals whose unscaled value for the integer 1 is one.
func (p *part) wholeDecimals(a *array.Decimal128, index func(int) int, one int64) func(row int) (uint64, bool, outcome) {
	return func(row int) (uint64, bool, outcome) {
		n := a.Value(index(row))
		v := int64(n.LowBits())
		if n.HighBits() != v>>63 {
			return p.anyInteger(row)
		}
		return keyOf(uint64(v/one), v < 0, v%one == 0)
	}
}

func (p *part) anyInteger(row int) (uint64, bool, outcome) {
	value, out := p.value(row)
	if out != isKey {
		return 0, false, out
	}
	v, negative := integerOf(value)
	return v, negative, isKey
}

// ErrMisfit is wrapped by errors about a value that does not fit the type it is
// cast to.
var ErrMisfit = cause.New(cause.Misfit, "a cast never rounds")

// Fit returns an error if a row of the batch has a value that does not fit its
// column's cast, unless misfits are NULLs. at is the batch's place for the error.
func (b *Batch) Fit(at fault.At, columns []Column) error {
	if len(b.misfits) == 0 || b.lenient {
		return nil
	}
	return Misfit(at, columns, len(b.Rows) > 0)
}

// Misfit returns the error of [Batch.Fit]. If others is set, other values fit: only then is a NULL
// for each misfit a remedy.
func Misfit(at fault.At, columns []Column, others bool) error {
	var casts, names []string
	for _, c := range columns {
		if c.Cast != nil {
			casts, names = append(casts, TypeName(c.Cast)), append(names, c.Path.String())
		}
	}
	at.Column = strings.Join(names, ",")
	hint := fault.Text("name a type that holds the values of the column, or another column")
	if others {
		hint = "name a type that holds all values, or count the others as NULL with {NullMisfits}"
	}
	return &fault.Error{
		Kind: fault.ErrMismatch, At: at, What: faults.Textf("cast to %s", strings.Join(casts, ", ")),
		Want: "a value of that type", Got: "one that has no equal there", Err: ErrMisfit,
		Hint: hint,
	}
}
