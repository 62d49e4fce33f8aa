package keys

import (
	"cmp"
	"encoding/binary"
	"encoding/csv"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Text spells a key that is in normal form (see [Batch.Append]): text as it is, other values as
// casts from text read them. A composite key is a line of CSV. A value without a spelling, such
// as a date after the year 9999, is written in hexadecimal.
func Text(classes []Class, key []byte) string {
	if len(classes) == 1 {
		return partText(classes[0], key)
	}
	parts := make([]string, len(classes))
	for i, c := range classes {
		size, n := binary.Uvarint(key)
		if n <= 0 || size > uint64(len(key)-n) {
			return hex.EncodeToString(key)
		}
		parts[i], key = partText(c, key[n:n+int(size)]), key[n+int(size):]
	}
	var line strings.Builder
	w := csv.NewWriter(&line)
	_ = w.Write(parts) // to memory
	w.Flush()
	return strings.TrimSuffix(line.String(), "\n")
}

// textTypes are the types to which texts are cast, where they are not named like the
// class.
var textTypes = map[Class]string{Integer: "decimal(76,38)", Decimal: "decimal(76,38)", Float: "double", Instant: "timestamptz"}

// TextType returns the type to which texts are cast for a class under a rule; nil: no cast. ok
// is false if texts cannot have the class.
func TextType(c Class, r Rule) (t arrow.DataType, ok bool) {
	if c == r.Class(Bytes) {
		return nil, true
	}
	t, err := ParseType(cmp.Or(textTypes[c], string(c)))
	return t, err == nil
}

// FromTexts returns the keys of rows of texts. casts has the type to which each column is cast;
// nil: no cast. See [Batch.Faulty].
func FromTexts(casts []arrow.DataType, o Options, rows ...[]string) (*Batch, error) {
	fields, columns := make([]arrow.Field, len(casts)), make([]Column, len(casts))
	for i, cast := range casts {
		name := strconv.Itoa(i)
		fields[i], columns[i] = arrow.Field{Name: name, Type: arrow.BinaryTypes.String}, Column{Path: Path{name}, Cast: cast}
	}
	schema := arrow.NewSchema(fields, nil)
	enc, err := NewEncoder(schema, columns, o)
	if err != nil {
		return nil, err
	}
	build := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer build.Release()
	for _, texts := range rows {
		for i, text := range texts {
			build.Field(i).(*array.StringBuilder).Append(text)
		}
	}
	b := new(Batch)
	return b, enc.Encode(build.NewRecord(), b) // not released: the batch shares its memory
}

// partText is Text for a part.
func partText(c Class, part []byte) string {
	switch c {
	case Bytes:
		return string(part)
	case Instant, Timestamp:
		zone := ""
		if c == Instant {
			zone = "Z"
		}
		if t := time.Unix(int64(binary.LittleEndian.Uint64(part)), int64(binary.LittleEndian.Uint32(part[8:]))).UTC(); t.Year() >= 1 && t.Year() <= 9999 {
			return t.Format("2006-01-02 15:04:05.999999999") + zone
		}
	case Time:
		return time.Unix(0, int64(binary.LittleEndian.Uint64(part))).UTC().Format("15:04:05.999999999")
	case Decimal, Duration:
		if n, ok := Number(c, part); ok {
			places := 9
			if c == Decimal {
				places = max(0, int(int32(binary.LittleEndian.Uint32(part))))
			}
			return n.FloatString(places)
		}
	case Float:
		return strconv.FormatFloat(math.Float64frombits(binary.LittleEndian.Uint64(part)), 'g', -1, 64)
	case Integer, Boolean, Date, Fixed(16):
		write, _ := toText(c, arrow.BinaryTypes.String)
		if text, ok := write(nil, part); ok {
			return string(text)
		}
	}
	return hex.EncodeToString(part)
}
