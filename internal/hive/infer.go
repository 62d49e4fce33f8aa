package hive

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/scalar"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// File is a file in name=value directories.
type File struct {
	Name  string // for errors
	Parts []Part
}

// Column is a column that directories of all files stand for.
type Column struct {
	Name string
	Type arrow.DataType
}

// Infer returns the columns of files, in the order of the first one's directories.
// All files must have the same. A type that is not given is the first of int64,
// date32 and timestamp[us] that all values fit, else string:
//
//   - integers have no plus sign and no leading zeros;
//   - dates are YYYY-MM-DD;
//   - timestamps are YYYY-MM-DD, T or a space, HH:MM or HH:MM:SS and up to six
//     fractional digits, without a zone.
//
// A type of kept is taken instead if all values fit it. In a column that is not of strings,
// NULL in any case means NULL.
func Infer(files []File, given []Column, kept ...Column) ([]Column, error) {
	if len(files) == 0 {
		return nil, nil
	}
	first := files[0]
	columns := make([]Column, len(first.Parts))
	for i, p := range first.Parts {
		columns[i].Name = p.Name
		for _, g := range given {
			if g.Name == p.Name {
				columns[i].Type = g.Type
			}
		}
	}
	fits := make([]candidates, len(columns))
	for _, k := range slices.Backward(kept) {
		if i := index(columns, k.Name); i >= 0 {
			fits[i].kept = k.Type
		}
	}
	for _, f := range files {
		if err := Fits(f, columns, first.Name); err != nil {
			return nil, err
		}
		for _, p := range f.Parts {
			i := index(columns, p.Name)
			if columns[i].Type == nil {
				fits[i].add(p)
			} else if _, ok := Value(p, columns[i].Type); !ok {
				return nil, faults.Of(cause.Schemas, faults.Mismatch(fault.At{File: f.Name, Column: p.Name}, "the directory's value", "a value of type "+keys.TypeName(columns[i].Type), strconv.Quote(p.Text))).
					WithHint("give the column another type with {HiveTypes}")
			}
		}
	}
	for i := range columns {
		if columns[i].Type == nil {
			columns[i].Type = fits[i].best()
		}
	}
	return columns, nil
}

// Fits returns an error if the directories of a file do not stand for the columns,
// which are those of the file named like, if any. Their order does not matter.
func Fits(f File, columns []Column, like string) error {
	same := len(f.Parts) == len(columns)
	for _, p := range f.Parts {
		same = same && index(columns, p.Name) >= 0
	}
	if same {
		return nil
	}
	as := ""
	if like != "" {
		as = " as in " + like
	}
	var want, got []string
	for _, c := range columns {
		want = append(want, c.Name)
	}
	for _, p := range f.Parts {
		got = append(got, p.Name)
	}
	return faults.Of(cause.Schemas, faults.Mismatch(fault.At{File: f.Name}, "name=value directories", list(want)+as, list(got))).
		WithHint("read such directories separately, or without these columns with {Hive off}")
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func index(columns []Column, name string) int {
	return slices.IndexFunc(columns, func(c Column) bool { return c.Name == name })
}

// Value returns an array of the one value, or NULL, that a directory stands for in a
// column of the type. ok is false if the value does not have the type. The caller
// releases the array.
func Value(p Part, t arrow.DataType) (_ arrow.Array, ok bool) {
	if p.IsNull(t) {
		return text.Value("", true, t)
	}
	s := p.Text
	if t.ID() == arrow.TIMESTAMP && len(s) == len("2006-01-02 15:04") {
		s += ":00"
	}
	return text.Value(s, false, t)
}

// IsNull reports whether the directory stands for NULL in a column of the type. In types
// other than text an empty value and the word NULL, in upper or lower case, do so too.
func (p Part) IsNull(t arrow.DataType) bool {
	isText := t.ID() == arrow.STRING || t.ID() == arrow.BINARY
	return p.Null || !isText && (p.Text == "" || strings.EqualFold(p.Text, "NULL"))
}

// candidates are the types that all values so far do not fit.
type candidates struct {
	seen, notInteger, notDate, notTime bool
	kept                               arrow.DataType // which they fit; nil: none
}

func (c *candidates) add(p Part) {
	if c.kept != nil {
		if _, ok := Value(p, c.kept); !ok {
			c.kept = nil
		}
	}
	if p.Null || strings.EqualFold(p.Text, "NULL") {
		return
	}
	c.seen = true
	c.notInteger = c.notInteger || !integer(p.Text)
	c.notDate = c.notDate || !date(p.Text)
	c.notTime = c.notTime || !timestamp(p.Text)
}

func (c *candidates) best() arrow.DataType {
	switch {
	case c.kept != nil:
		return c.kept
	case !c.seen:
	case !c.notInteger:
		return arrow.PrimitiveTypes.Int64
	case !c.notDate:
		return arrow.FixedWidthTypes.Date32
	case !c.notTime:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	}
	return arrow.BinaryTypes.String
}

// integer reports whether s is how an int64 is written.
func integer(s string) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == s
}

func date(s string) bool {
	_, ok := scalar.Date(s)
	return ok
}

func timestamp(s string) bool {
	if len(s) == len("2006-01-02 15:04") {
		s += ":00"
	}
	_, nanos, ok := scalar.Timestamp(s, false)
	return ok && nanos%1000 == 0
}

// ParseTypes parses types of columns, such as "dt:date,price:decimal(9,2)", as
// [keys.ParseType] names them. Timestamps are in microseconds.
func ParseTypes(s string) (types []Column, err error) {
	for len(s) > 0 {
		item := s[:itemEnd(s)]
		s = strings.TrimPrefix(s[len(item):], ",")
		i := strings.LastIndexByte(item, ':')
		if i <= 0 || i == len(item)-1 {
			return nil, fmt.Errorf("%q: want NAME:TYPE,..., as dt:date,country:string", item)
		}
		c := Column{Name: strings.TrimSpace(item[:i])}
		if c.Type, err = keys.ParseType(item[i+1:]); err != nil {
			return nil, err
		}
		if t, ok := c.Type.(*arrow.TimestampType); ok { // the unit of those that are found
			c.Type = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: t.TimeZone}
		}
		if index(types, c.Name) >= 0 {
			return nil, fmt.Errorf("%s has two types", c.Name)
		}
		types = append(types, c)
	}
	return types, nil
}

// itemEnd returns the position of the first comma outside parentheses, or the length.
func itemEnd(s string) int {
	depth := 0
	for i, c := range s {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0:
			return i
		}
	}
	return len(s)
}
