package lake

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/scalar"
)

// Added is a file that is to be added to a table.
type Added struct {
	*parquet.File
	Name     string // below the table's directory
	Modified int64  // milliseconds since 1970
	Parts    []Part
}

// Part is the value of a column of partitions.
type Part struct {
	Name string
	Text *string // as Delta has values; nil: NULL
	JSON any     // as Iceberg has single values in JSON
}

// NewAdded returns what a table needs of a file. columns are those of its directories, as dt:date.
func NewAdded(f *parquet.File, name string, modified int64, columns []string) (*Added, error) {
	parts, err := hive.Parse(name)
	if err == nil && !utf8.ValidString(name) {
		err = faults.Unsupported(fault.At{File: f.Name}, "a name that is not UTF-8, in a table")
	}
	a := &Added{File: f, Name: name, Modified: modified}
	for _, column := range columns {
		at := strings.LastIndexByte(column, ':')
		v := Part{Name: column[:at]}
		for _, p := range parts {
			if p.Name == v.Name && err == nil {
				err = v.set(p, column[at+1:], f.Name)
			}
		}
		a.Parts = append(a.Parts, v)
	}
	return a, err
}

// set takes over the value of a directory.
func (v *Part) set(p hive.Part, typ, file string) error {
	t, err := (&Column{Type: typ}).Arrow()
	if err != nil {
		return err
	}
	a, ok := hive.Value(p, t)
	if !ok || !utf8.ValidString(p.Text) {
		return faults.Unsupported(fault.At{File: file, Column: v.Name}, "the value %q of type %s, in a table", p.Text, typ)
	}
	defer a.Release()
	if a.IsNull(0) {
		return nil
	}
	text := p.Text
	v.Text, v.JSON = &text, text
	switch a := a.(type) {
	case *array.String, *array.Binary, *array.FixedSizeBinary:
	case *array.Decimal128, *array.Decimal256:
		d := t.(arrow.DecimalType)
		n, _ := scalar.Decimal(text, int(d.GetPrecision()), int(d.GetScale()))
		text = decimalText(n, d)
		v.JSON = text
	case *array.Timestamp:
		at := time.UnixMicro(int64(a.Value(0))).UTC()
		iso := at.Format("2006-01-02T15:04:05.000000")
		if text, v.JSON = at.Format("2006-01-02 15:04:05.000000"), iso; typ == "timestamptz" {
			text, v.JSON = iso+"Z", iso+"+00:00"
		}
	default:
		text, v.JSON = a.ValueStr(0), a.GetOneForMarshal(0)
	}
	return nil
}

// Stats are what a footer says of a column.
type Stats struct {
	Path  []string
	ID    int32  // -1: none
	Type  string // as in Column; empty: one that tables lack
	Nulls int64  // negative: unknown
	// Least and Most are inclusive bounds as Iceberg's single values, and times in microseconds; nil: unknown.
	Least, Most []byte
}

// longestText is the number of bytes of a bound of text: readers of Delta, as package delta, doubt
// upper bounds of 32 characters.
const longestText = 31

// StatsOf returns the statistics of a file's columns outside lists and maps.
func StatsOf(f *parquet.File) (all []Stats) {
	orders := f.Orders()
	var walk func(nodes []*meta.Node)
	walk = func(nodes []*meta.Node) {
		for _, n := range nodes {
			if walk(n.Children); n.Leaf >= 0 && f.Leaves[n.Leaf].MaxRep == 0 {
				all = append(all, statsOf(f, n, orders[n.Leaf]))
			}
		}
	}
	walk(f.Root.Children)
	return all
}

// statsOf returns the statistics of a column. It has bounds if each row group has that is not all NULL.
func statsOf(f *parquet.File, n *meta.Node, order meta.Order) Stats {
	l := &f.Leaves[n.Leaf]
	s := Stats{Path: l.Path, ID: n.FieldID, Type: typeOf(l)}
	order = f.BelievedOrder(l, order)
	var b meta.Bounds
	for g, group := range f.RowGroups {
		nulls := f.Nulls(g, n.Leaf)
		if s.Nulls += nulls; nulls < 0 {
			s.Nulls = math.MinInt64 / 2
		}
		switch one := f.Bounds(g, n.Leaf, order); {
		case one.Lo == nil && nulls == group.Rows:
		case one.Lo == nil || order.ByteArrays() && meta.OpenEnded(one.Hi):
			b.Broken = true
		default:
			b.Add(order, one)
		}
	}
	lo, hi, _, _ := order.Shorten(b, longestText)
	if s.Type != "string" || utf8.Valid(lo) && utf8.Valid(hi) {
		s.Least, s.Most = single(l, lo, 0), single(l, hi, 999)
	}
	return s
}

// single returns a stored bound in the form of Stats; nil: it has none. Nanoseconds are rounded down
// once up have been added.
func single(l *meta.Leaf, v []byte, up int64) []byte {
	switch g := l.Logical; {
	case v == nil:
	case g.Kind == meta.Decimal:
		if l.Type == format.Int32 || l.Type == format.Int64 {
			v = bytes.Clone(v)
			slices.Reverse(v)
		}
		return meta.Significant(v)
	case g.Kind == meta.Timestamp && g.Unit != meta.Micros:
		t := int64(binary.LittleEndian.Uint64(v))
		at := time.UnixMilli(t)
		if g.Unit == meta.Nanos {
			at = time.Unix(0, t).Add(time.Duration(up))
		}
		if !HasText(at.UTC()) {
			return nil
		}
		return binary.LittleEndian.AppendUint64(nil, uint64(at.UnixMicro()))
	}
	return v
}

// typeOf returns the type of a column that a leaf is, as Column has it; empty: tables have none.
func typeOf(l *meta.Leaf) string {
	switch g := l.Logical; g.Kind {
	case meta.None, meta.BSON:
		if l.Type == format.FixedLenByteArray {
			return fmt.Sprintf("fixed[%d]", l.TypeLength)
		}
		return physical[l.Type]
	case meta.Int:
		if g.Signed {
			return strings.Replace(fmt.Sprintf("int%d", g.BitWidth), "int8", "tinyint", 1)
		}
	case meta.String, meta.Enum, meta.JSON:
		return "string"
	case meta.UUID:
		return uuidType
	case meta.Decimal:
		return fmt.Sprintf("decimal(%d,%d)", g.Precision, g.Scale)
	case meta.Date:
		return "date"
	case meta.Time:
		if g.Unit == meta.Micros {
			return "time"
		}
	case meta.Timestamp:
		name := "timestamp"
		if g.UTC {
			name += "tz"
		}
		if g.Unit == meta.Nanos {
			name += "_ns"
		}
		return name
	}
	return ""
}

// physical are the types of columns without an annotation.
var physical = map[format.Type]string{format.Boolean: "boolean", format.Int32: "int32", format.Int64: "int64", format.Float: "float", format.Double: "double", format.ByteArray: "binary"}
