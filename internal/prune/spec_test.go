package prune

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// spec is a file with one column called k and one row group, as far as pruning
// examines it: the pages themselves are never read.
type spec struct {
	by     string // the writer
	leaf   meta.Element
	orders []format.ColumnOrder
	rows   int64
	stats  meta.Statistics
	pages  []specPage // nil: no page index
	claim  format.BoundaryOrder
	counts bool   // the column index has numbers of NULLs
	bloom  []byte // nil: none

	classes []keys.Class
	set     *exact.Set
	lo, hi  []byte // of the members, if there is no set
}

type specPage struct {
	rows     int64
	min, max []byte
	null     bool
	nulls    int64
}

// known is what a test's pruner knows about the members.
type known struct {
	columns string // of the file
	classes []keys.Class
	set     *exact.Set
	lo, hi  [][]byte // by column, if there is no set; nil: unknown
}

func (k *known) Empty() bool       { return k.set != nil && k.set.Len() == 0 }
func (k *known) Exact() *exact.Set { return k.set }

func (k *known) KeyRange(column int) (lo, hi []byte, ok bool) {
	if k.set != nil {
		lo, below, ok := k.set.Least()
		hi, negative, _ := k.set.Greatest()
		return keys.IntegerPart(lo, below), keys.IntegerPart(hi, negative), ok
	}
	return k.lo[column], k.hi[column], k.lo[column] != nil
}

// pruner returns the pruner of a file.
func (k *known) pruner(f *parquet.File, schema *arrow.Schema) (*Pruner, error) {
	columns, err := keys.ParseColumns(k.columns)
	if err != nil {
		return nil, err
	}
	return New(f, schema, columns, keys.Options{Classes: k.classes}, k)
}

// members returns what is known about the members of a spec.
func (s *spec) members() *known {
	k := &known{columns: "k" + strings.Repeat(",k", len(s.classes)-1), classes: s.classes, set: s.set}
	for range s.classes {
		k.lo, k.hi = append(k.lo, s.lo), append(k.hi, s.hi)
	}
	return k
}

const specChunk = 1 << 16 // bytes of the column chunk

// file returns the file of the spec.
func (s *spec) file(t testing.TB) []byte {
	t.Helper()
	b := append([]byte("PAR1"), make([]byte, specChunk)...)
	put := func(v any) (int64, int32) {
		at := len(b)
		enc, err := thrift.Marshal(new(thrift.CompactProtocol), v)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, enc...)
		return int64(at), int32(len(enc))
	}
	chunk := meta.ColumnChunk{MetaData: meta.ColumnMetaData{
		Type: s.leaf.Type.V, PathInSchema: []string{"k"}, NumValues: s.rows, Statistics: s.stats,
		TotalUncompressedSize: specChunk, TotalCompressedSize: specChunk, DataPageOffset: 4,
		Encodings: []format.Encoding{format.Plain},
	}}
	if s.pages != nil {
		offsets := format.OffsetIndex{}
		columns := format.ColumnIndex{BoundaryOrder: s.claim}
		row := int64(0)
		for i, p := range s.pages {
			offsets.PageLocations = append(offsets.PageLocations, format.PageLocation{
				Offset: 4 + 100*int64(i), CompressedPageSize: 100, FirstRowIndex: row,
			})
			row += p.rows
			columns.NullPages = append(columns.NullPages, p.null)
			columns.MinValues, columns.MaxValues = append(columns.MinValues, p.min), append(columns.MaxValues, p.max)
			if s.counts {
				columns.NullCounts = append(columns.NullCounts, p.nulls)
			}
		}
		if n := len(offsets.PageLocations); n > 0 {
			offsets.PageLocations[n-1].CompressedPageSize = int32(specChunk - 100*(n-1)) // up to the chunk's end
		}
		chunk.OffsetIndexOffset, chunk.OffsetIndexLength = put(&offsets)
		chunk.ColumnIndexOffset, chunk.ColumnIndexLength = put(&columns)
	}
	if s.bloom != nil {
		header := format.BloomFilterHeader{NumBytes: int32(len(s.bloom))}
		header.Algorithm.Value, header.Hash.Value = new(format.SplitBlockAlgorithm), new(format.XxHash)
		header.Compression.Value = new(format.BloomFilterUncompressed)
		at, n := put(&header)
		chunk.MetaData.BloomFilterOffset, chunk.MetaData.BloomFilterLength = at, n+int32(len(s.bloom))
		b = append(b, s.bloom...)
	}
	root := meta.Element{Name: "root", NumChildren: thrift.New[int32](1)}
	s.leaf.Name = "k"
	_, n := put(&meta.Footer{
		Version: 1, Schema: []meta.Element{root, s.leaf}, NumRows: s.rows, CreatedBy: s.by, ColumnOrders: s.orders,
		RowGroups: []meta.RowGroup{{Columns: []meta.ColumnChunk{chunk}, NumRows: s.rows, TotalByteSize: specChunk}},
	})
	return append(binary.LittleEndian.AppendUint32(b, uint32(n)), "PAR1"...)
}

// pruned returns the rows of group 0 that are left, as "0-100 200-300", and how
// many of the others are NULL. "all" means a pruner that prunes nothing.
func pruned(t testing.TB, file []byte, m *known) (string, int64, error) {
	t.Helper()
	f, err := parquet.Open(nil, bytes.NewReader(file), int64(len(file)), "test.parquet")
	if err != nil {
		t.Fatal(err)
	}
	table, err := arrowparquet.OpenParquet(bytes.NewReader(file), int64(len(file)), "test.parquet", arrowparquet.ParquetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.pruner(f, table.Schema())
	if err != nil {
		t.Fatal(err)
	}
	if p == nil {
		return "all", 0, nil
	}
	ranges, nulls, err := p.Rows(context.Background(), 0)
	if err != nil {
		return "", 0, err
	}
	var out []string
	for _, r := range ranges {
		out = append(out, fmt.Sprintf("%d-%d", r[0], r[1]))
	}
	return strings.Join(out, " "), nulls, nil
}

// Statistics.
func bounds(min, max []byte) meta.Statistics {
	return meta.Statistics{MinValue: thrift.New(min), MaxValue: thrift.New(max)}
}
func i32(v int32) []byte   { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }
func i64(v int64) []byte   { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
func f64(v float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)) }

// Leaves.
func leaf(t format.Type, opt bool, logical format.LogicalTypeValue) meta.Element {
	e := meta.Element{Type: thrift.New(t), RepetitionType: thrift.New(format.Required)}
	if opt {
		e.RepetitionType.V = format.Optional
	}
	if logical != nil {
		e.LogicalType = thrift.New(format.LogicalType{Value: logical})
	}
	return e
}
func unsignedLeaf(bits int8, opt bool) meta.Element {
	t := format.Int32
	if bits == 64 {
		t = format.Int64
	}
	return leaf(t, opt, &format.IntType{BitWidth: bits})
}
func fixedLeaf(n int32, logical format.LogicalTypeValue) meta.Element {
	e := leaf(format.FixedLenByteArray, false, logical)
	e.TypeLength = thrift.New(n)
	return e
}
func stampLeaf(unit format.TimeUnitValue, utc bool) meta.Element {
	return leaf(format.Int64, false, &format.TimestampType{IsAdjustedToUTC: utc, Unit: format.TimeUnit{Value: unit}})
}
func decimalType(precision, scale int32) *format.DecimalType {
	return &format.DecimalType{Precision: precision, Scale: scale}
}

// Members.
func ints(values ...int64) *exact.Set {
	s := exact.New()
	for _, v := range values {
		s.Add([]uint64{uint64(v)}, true)
	}
	return s
}
func naturals(values ...uint64) *exact.Set {
	s := exact.New()
	s.Add(values, false)
	return s
}
func stamp(sec int64, nanos uint32) []byte {
	return binary.LittleEndian.AppendUint32(i64(sec), nanos)
}
func decimal(scale int32, unscaled ...byte) []byte { return append(i32(scale), unscaled...) }

var typed = format.ColumnOrder{Value: new(format.TypeDefinedOrder)}

// base fills in what most specs have in common.
func (s spec) base() spec {
	if s.by == "" {
		s.by = "parquet-mr version 1.13.1 (build db4183109d5b734ec5930d870cdae161e408ddba)"
	}
	if s.rows == 0 {
		for _, p := range s.pages {
			s.rows += p.rows
		}
		if s.rows == 0 {
			s.rows = 300
		}
	}
	s.orders = []format.ColumnOrder{typed}
	s.counts = true
	return s
}
