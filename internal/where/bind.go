package where

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// bind implements Bind and BindSome.
func (c *Cond) bind(at fault.At, schema *arrow.Schema, ignoreCase, some bool) (*Bound, error) {
	b := &Bound{root: c.root}
	for _, t := range c.root.tests(nil) {
		field, err := resolve(t.path, at, schema, ignoreCase)
		var missing *keys.NotFoundError
		if some && errors.As(err, &missing) && missing.Missing() {
			b.preds = append(b.preds, &Pred{column: -1})
			continue
		}
		if err != nil {
			return nil, err
		}
		at := at
		at.Column = pathText(t.path)
		p, err := newPred(at, t, field.Type)
		if err != nil {
			return nil, err
		}
		p.column = slices.IndexFunc(b.columns, func(f keys.Field) bool { return slices.Equal(f.Index, field.Index) })
		if p.column < 0 {
			p.column = len(b.columns)
			b.columns = append(b.columns, field)
		}
		b.preds = append(b.preds, p)
	}
	return b, nil
}

// resolve finds a column.
func resolve(p keys.Path, at fault.At, schema *arrow.Schema, ignoreCase bool) (keys.Field, error) {
	field, err := p.Resolve(schema, ignoreCase)
	switch {
	case errors.Is(err, fault.ErrUnsupported):
		at.Column = pathText(p)
		return field, faults.Unsupported(at, "a condition on a field below a list or map").WithHint("a condition can test a column, or a field of structs")
	case err != nil && at.File != "":
		return field, fmt.Errorf("%s: condition: %w", at, err)
	case err != nil:
		return field, fmt.Errorf("condition: %w", err)
	}
	return field, nil
}

// kind is how the values of a column compare with literals.
type kind uint8

const (
	kindOther kind = iota // only IS NULL
	kindNull
	kindBool
	kindInteger
	kindDecimal
	kindFloat
	kindDouble
	kindString
	kindBinary
	kindDate
	kindTime
	kindTimestamp // without a zone
	kindInstant   // with a zone
)

// words describe a kind of column in errors: its values, a literal, and an example of
// how to write one.
type words struct{ holds, want, write string }

var wordsOf = map[kind]words{
	kindBool:      {"booleans", "a boolean", "TRUE or FALSE"},
	kindInteger:   {"integers", "an integer", "it as 42"},
	kindDecimal:   {"decimals", "a decimal", "it as 1.5"},
	kindFloat:     {"floats", "a number", "it as 1.5 or 'NaN'"},
	kindDouble:    {"doubles", "a number", "it as 1.5 or 'NaN'"},
	kindString:    {"strings", "a string", "it as 'text'"},
	kindBinary:    {"bytes", "bytes", `them as 'text', with \x00 for any byte`},
	kindDate:      {"dates", "a date", "it as '2024-05-01'"},
	kindTime:      {"times of day", "a time of day", "it as '10:30:00'"},
	kindTimestamp: {"timestamps without a zone", "a timestamp", "it as '2024-05-01 10:30:00'"},
	kindInstant:   {"timestamps with a zone", "a timestamp", "it as '2024-05-01 10:30:00+02:00'"},
}

// describe returns what a column holds and its type, for errors.
func describe(typ columnType, of arrow.DataType) string {
	if of == arrow.DataType(keys.Int96) {
		return wordsOf[typ.kind].holds + " (INT96)"
	}
	return fmt.Sprintf("%s (%s)", wordsOf[typ.kind].holds, of)
}

// maxScale limits the scale of decimals, which files may set to anything.
const maxScale = 1000

// columnType has the properties of a column's type that predicates need.
type columnType struct {
	kind  kind
	unit  int64 // nanoseconds of a stored unit: dates, times, timestamps
	scale int   // decimals
	width int   // bytes of fixed-width binary; 0: any
}

// plain returns the type inside dictionaries, runs and extensions other than [keys.Int96].
func plain(t arrow.DataType) arrow.DataType {
	for {
		switch inner := t.(type) {
		case *keys.Int96Type:
			return t
		case *arrow.DictionaryType:
			t = inner.ValueType
		case *arrow.RunEndEncodedType:
			t = inner.Encoded()
		case arrow.ExtensionType:
			t = inner.StorageType()
		default:
			return t
		}
	}
}

// Alike reports whether every condition that applies to both types has the same truth for
// equal values of the two.
func Alike(a, b arrow.DataType) bool {
	x, y := typeOf(a), typeOf(b)
	switch x.kind {
	case kindBool, kindInteger, kindDecimal, kindString, kindDate, kindTime, kindTimestamp, kindInstant:
		return x.kind == y.kind
	}
	return arrow.TypeEqual(plain(a), plain(b)) // floats: literals are rounded to the type
}

func typeOf(t arrow.DataType) columnType {
	switch t := plain(t).(type) {
	case *keys.Int96Type:
		if t.Class() == keys.Instant {
			return columnType{kind: kindInstant, unit: 1}
		}
		return columnType{kind: kindTimestamp, unit: 1}
	case *arrow.NullType:
		return columnType{kind: kindNull}
	case *arrow.BooleanType:
		return columnType{kind: kindBool}
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type, *arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type, *arrow.Uint64Type:
		return columnType{kind: kindInteger}
	case *arrow.Float16Type, *arrow.Float32Type:
		return columnType{kind: kindFloat}
	case *arrow.Float64Type:
		return columnType{kind: kindDouble}
	case arrow.DecimalType:
		if s := int(t.GetScale()); -maxScale <= s && s <= maxScale {
			return columnType{kind: kindDecimal, scale: s}
		}
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return columnType{kind: kindString}
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return columnType{kind: kindBinary}
	case *arrow.FixedSizeBinaryType:
		return columnType{kind: kindBinary, width: t.ByteWidth}
	case *arrow.Date32Type:
		return columnType{kind: kindDate, unit: nanosPerDay}
	case *arrow.Date64Type:
		return columnType{kind: kindDate, unit: 1_000_000}
	case *arrow.Time32Type:
		return columnType{kind: kindTime, unit: int64(t.Unit.Multiplier())}
	case *arrow.Time64Type:
		return columnType{kind: kindTime, unit: int64(t.Unit.Multiplier())}
	case *arrow.TimestampType:
		if t.TimeZone == "" {
			return columnType{kind: kindTimestamp, unit: int64(t.Unit.Multiplier())}
		}
		return columnType{kind: kindInstant, unit: int64(t.Unit.Multiplier())}
	}
	return columnType{kind: kindOther}
}
