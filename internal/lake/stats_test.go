package lake

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// TestSingle: bounds as the specification of Iceberg writes values; those of nanoseconds are rounded outward.
func TestSingle(t *testing.T) {
	le := func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
	millis, nanos := meta.Logical{Kind: meta.Timestamp}, meta.Logical{Kind: meta.Timestamp, Unit: meta.Nanos}
	decimal := meta.Logical{Kind: meta.Decimal, Precision: 9, Scale: 2}
	for _, c := range []struct {
		typ    format.Type
		as     meta.Logical
		stored []byte
		lo, hi string
	}{
		{format.Int64, millis, le(1), "e803000000000000", "e803000000000000"},
		{format.Int64, millis, le(-1), "18fcffffffffffff", "18fcffffffffffff"},
		{format.Int64, millis, le(math.MaxInt64), "", ""},
		{format.Int64, millis, le(math.MinInt64), "", ""},
		{format.Int64, nanos, le(1), "0000000000000000", "0100000000000000"},
		{format.Int64, nanos, le(-1), "ffffffffffffffff", "0000000000000000"},
		{format.Int64, nanos, le(2000), "0200000000000000", "0200000000000000"},
		{format.Int64, nanos, le(math.MaxInt64), "f753e3a59bc42000", "f853e3a59bc42000"},
		{format.Int32, decimal, []byte{0xd2, 4, 0, 0}, "04d2", "04d2"},
		{format.Int32, decimal, []byte{0xff, 0xff, 0xff, 0xff}, "ff", "ff"},
		{format.Int64, decimal, le(128), "0080", "0080"},
		{format.FixedLenByteArray, decimal, []byte{0xff, 0x80}, "80", "80"},
		{format.ByteArray, decimal, []byte{0, 0}, "00", "00"},
		{format.ByteArray, meta.Logical{Kind: meta.String}, []byte("é"), "c3a9", "c3a9"},
	} {
		l := &meta.Leaf{Type: c.typ, Logical: c.as}
		before := hex.EncodeToString(c.stored)
		lo, hi := single(l, c.stored, 0), single(l, c.stored, 999)
		if got, most := hex.EncodeToString(lo), hex.EncodeToString(hi); got != c.lo || most != c.hi {
			t.Errorf("%v %v %s: %s to %s, want %s to %s", c.typ, c.as, before, got, most, c.lo, c.hi)
		}
		if hex.EncodeToString(c.stored) != before {
			t.Errorf("%s: the footer was changed", before)
		}
	}
}

// TestStatsOf: a column has bounds if each row group has that is not all NULL, and those of text begin with
// the empty one, which this writer leaves out.
func TestStatsOf(t *testing.T) {
	fields := []arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "u", Type: arrow.PrimitiveTypes.Uint32, Nullable: true}, {Name: "text", Type: arrow.BinaryTypes.String, Nullable: true}}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrow.NewSchema(fields, nil), strings.NewReader(`[
		{"n": 4, "u": 1, "text": "b"}, {"n": 1, "u": 2, "text": "c"}, {"n": null, "u": null, "text": null}, {"n": null, "u": null, "text": null}, {"n": -2, "u": 5, "text": ""}]`))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := pqarrow.WriteTable(array.NewTableFromRecords(rec.Schema(), []arrow.Record{rec}), &b, 2, nil, pqarrow.DefaultWriterProps()); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.Open(nil, bytes.NewReader(b.Bytes()), int64(b.Len()), "f")
	if err != nil {
		t.Fatal(err)
	}
	all := StatsOf(f)
	if n := all[0]; n.Nulls != 2 || n.Type != "int32" || hex.EncodeToString(n.Least) != "feffffff" || hex.EncodeToString(n.Most) != "04000000" {
		t.Error(n)
	}
	if u := all[1]; u.Type != "" || u.Nulls != 2 {
		t.Error(u)
	}
	if text := all[2]; text.Nulls != 2 || text.Least == nil || len(text.Least) > 0 || string(text.Most) != "c" {
		t.Error(text)
	}
	s := &f.Metadata.RowGroups[1].Columns[0].MetaData.Statistics
	if s.NullCount.V = 1; StatsOf(f)[0].Least != nil {
		t.Error("bounds, although a value has none")
	}
	if s.NullCount.Valid = false; StatsOf(f)[0].Least != nil || StatsOf(f)[0].Nulls >= 0 {
		t.Error("bounds or NULLs, although a row group may have values without either")
	}
}
