package keyindex

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Value is a key that is looked for.
type Value struct {
	Bytes string // its normal form
	Hash  uint64
}

// Parse returns the key that texts stand for, one of each key column, in the column's type.
// The error does not repeat them.
func (f *Facts) Parse(texts []string) (v Value, err error) {
	if len(texts) != len(f.Classes) {
		return v, faults.Mismatch(fault.At{}, "a key of "+f.Key, fmt.Sprintf("%d values", len(f.Classes)), fmt.Sprint(len(texts))).
			WithHint("separate values by commas, and put one that has a comma in double quotes")
	}
	var fields []arrow.Field
	var columns []keys.Column
	var arrays []arrow.Array
	for i, text := range texts {
		name := strconv.Itoa(i)
		cast, err := castOf(keys.Class(f.Classes[i]), text, f.Rule())
		if err != nil {
			return v, fmt.Errorf("key column %s: %w", f.Key, err)
		}
		fields = append(fields, arrow.Field{Name: name, Type: arrow.BinaryTypes.String})
		columns = append(columns, keys.Column{Path: keys.Path{name}, Cast: cast})
		b := array.NewStringBuilder(memory.DefaultAllocator)
		b.Append(text)
		arrays = append(arrays, b.NewArray())
	}
	schema := arrow.NewSchema(fields, nil)
	rec := array.NewRecord(schema, arrays, 1)
	defer rec.Release()
	enc, err := keys.NewEncoder(schema, columns, keys.Options{Rule: f.Rule()})
	if err != nil {
		return v, err
	}
	var b keys.Batch
	if err := enc.Encode(rec, &b); err != nil {
		return v, err
	}
	if _, faulty := b.Faulty(); faulty || len(b.Rows) != 1 {
		return v, faults.Mismatch(fault.At{}, "a key of "+f.Key, "a value of class "+strings.Join(f.Classes, ","), "another text").
			WithHint("write integers as 12345, dates as 2024-05-01, and strings as they are")
	}
	return Value{string(b.Append(nil, 0)), b.HashAt(hash, 0)}, nil
}

// castOf returns the type in which a text is a value of a class; nil: it is one already.
func castOf(c keys.Class, text string, rule keys.Rule) (arrow.DataType, error) {
	if c == keys.Bytes || c == keys.Fixed(16) && rule&keys.UUID != 0 {
		return nil, nil
	}
	name := string(c)
	switch c {
	case keys.Integer:
		if name = "uint64"; strings.HasPrefix(text, "-") {
			name = "int64"
		}
	case keys.Decimal:
		_, fraction, _ := strings.Cut(text, ".")
		name = fmt.Sprintf("decimal(76,%d)", min(len(fraction), 76))
	case keys.Instant:
		name = "timestamptz"
	case keys.Float:
		name = "double"
	case keys.Null, keys.Duration:
		return nil, faults.Unsupported(fault.At{}, "looking for a value of class %s", c)
	}
	return keys.ParseType(name)
}
