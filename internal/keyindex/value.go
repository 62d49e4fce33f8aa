package keyindex

import (
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
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
		return v, faults.Of(cause.Usage, faults.Mismatch(fault.At{}, "a key of "+f.Key, fmt.Sprintf("%d values", len(f.Classes)), len(texts))).
			WithHint("separate values by commas, and put one that has a comma in double quotes")
	}
	casts := make([]arrow.DataType, len(texts))
	for i, text := range texts {
		if casts[i], err = castOf(keys.Class(f.Classes[i]), text, f.Rule()); err != nil {
			return v, fmt.Errorf("key column %s: %w", f.Key, err)
		}
	}
	b, err := keys.FromTexts(casts, keys.Options{Rule: f.Rule()}, texts)
	if err != nil {
		return v, err
	}
	if _, faulty := b.Faulty(); faulty || len(b.Rows) != 1 {
		return v, faults.Of(cause.KeyTypes, faults.Mismatch(fault.At{}, "a key of "+f.Key, "a value of class "+strings.Join(f.Classes, ","), "another text")).
			WithHint("write integers as 12345, dates as 2024-05-01, and strings as they are")
	}
	return Value{string(b.Append(nil, 0)), b.HashAt(hash, 0)}, nil
}

// castOf returns the type in which a text is a value of a class; nil: it is one already.
func castOf(c keys.Class, text string, rule keys.Rule) (arrow.DataType, error) {
	switch c {
	case keys.Integer:
		if strings.HasPrefix(text, "-") {
			return keys.ParseType("int64")
		}
		return keys.ParseType("uint64")
	case keys.Decimal:
		_, fraction, _ := strings.Cut(text, ".")
		return keys.ParseType(fmt.Sprintf("decimal(76,%d)", min(len(fraction), 76)))
	}
	t, ok := keys.TextType(c, rule)
	if !ok {
		return nil, faults.Unsupported(fault.At{}, "looking for a value of class %s", c)
	}
	return t, nil
}
