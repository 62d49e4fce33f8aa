package iceberg

import (
	"bytes"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/avro"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// value is a value of a partition or a bound.
type value = lake.Value

// ofAvro returns a value of a manifest, with its own memory.
func ofAvro(v *avro.Value) value {
	switch {
	case v == nil || v.Kind == avro.Null:
		return value{Kind: 'n'}
	case v.Kind == avro.Boolean || v.Kind == avro.Int || v.Kind == avro.Long:
		return value{Kind: 'i', Int: v.Int}
	case v.Kind == avro.Float || v.Kind == avro.Double:
		return value{Kind: 'f', Float: v.Float}
	case v.Kind == avro.Fixed:
		return value{Kind: 'x', Bytes: slices.Clone(v.Bytes)}
	}
	return value{Kind: 'b', Bytes: slices.Clone(v.Bytes)}
}

// key tells values of a field of partitions apart. Files that were written before a column got a wider
// type have values of the narrower one.
func key(v *value) string {
	switch b := v.Bytes; v.Kind {
	case 'i':
		return "i" + strconv.FormatInt(v.Int, 10)
	case 'f':
		return "f" + strconv.FormatUint(math.Float64bits(v.Float), 16)
	case 'b':
		return "b" + hex.EncodeToString(b)
	case 'x':
		return "x" + hex.EncodeToString(meta.Significant(b)) // decimals of a narrower type have fewer bytes
	}
	return "n"
}

// ordered reports whether the bounds of a type are in order. Of others, which writers have made, none is true.
func ordered(typ string, least, most *value) bool {
	switch {
	case least.Kind != most.Kind:
		return false
	case least.Kind == 'i':
		return least.Int <= most.Int
	case least.Kind == 'f':
		return least.Float <= most.Float
	case typ == "string":
		return bytes.Compare(least.Bytes, most.Bytes) <= 0
	}
	return lake.Signed(least.Bytes).Cmp(lake.Signed(most.Bytes)) <= 0
}

// texts returns the ends of a range of a type as texts; empty: they have none.
func texts(typ string, least, most *value) (lo, hi string) {
	lo, ok := least.Text(typ)
	hi, too := most.Text(typ)
	if !ok || !too || typ == "binary" || !ordered(typ, least, most) {
		return "", ""
	}
	return lo, hi
}

// result returns the type of a field's values.
func (f *specField) result() string {
	if f.Transform == "identity" || strings.HasPrefix(f.Transform, "truncate[") {
		return f.typ
	}
	return "int32"
}

// texts returns the range of the source of a field whose values are in a range.
func (f *specField) texts(least, most *value) (lo, hi string) {
	from, to, ok := source(f.Transform, f.typ, *least, *most)
	if !ok || !ordered(f.typ, least, most) {
		return "", ""
	}
	return texts(f.typ, &from, &to)
}

// source returns the range of values of a column that a transform takes to a range.
func source(transform, typ string, least, most value) (lo, hi value, ok bool) {
	if transform == "identity" {
		return least, most, true
	}
	if least.Kind != 'i' || most.Kind != 'i' {
		return lo, hi, false
	}
	if w, ok := strings.CutPrefix(transform, "truncate["); ok {
		width, err := strconv.ParseInt(strings.TrimSuffix(w, "]"), 10, 32)
		end := most.Int + width - 1
		overflows := end < most.Int || most.Int <= math.MaxInt32 && end > math.MaxInt32 // also of an int that is a long now
		return least, value{Kind: 'i', Int: end}, err == nil && width > 0 && (typ == "int32" || typ == "int64") && !overflows
	}
	from := least.Int
	if from <= 0 { // old writers cut times before 1970 towards it
		from--
	}
	first, ok := start(transform, from)
	after, too := start(transform, most.Int+1)
	switch {
	case !ok || !too:
	case typ == "date":
		return value{Kind: 'i', Int: first.Unix() / 86400}, value{Kind: 'i', Int: after.Unix()/86400 - 1}, true
	case typ == "timestamp" || typ == "timestamptz":
		return value{Kind: 'i', Int: first.UnixMicro()}, value{Kind: 'i', Int: after.UnixMicro() - 1}, true
	}
	return lo, hi, false
}

// start returns the first time that a transform takes to a value.
func start(transform string, v int64) (t time.Time, ok bool) {
	perYear := map[string]int64{"year": 1, "month": 12, "day": 366, "hour": 366 * 24}[transform]
	if perYear == 0 || v/perYear < -2000 || v/perYear > 9000 {
		return t, false
	}
	switch transform {
	case "year":
		t = time.Date(1970+int(v), 1, 1, 0, 0, 0, 0, time.UTC)
	case "month":
		t = time.Date(1970, time.Month(1+v), 1, 0, 0, 0, 0, time.UTC)
	case "day":
		t = time.Unix(v*86400, 0).UTC()
	default:
		t = time.Unix(v*3600, 0).UTC()
	}
	return t, lake.HasText(t)
}
