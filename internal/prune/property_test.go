package prune

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	v15 "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	pq "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// Whatever the file and the set, no row that holds a member is pruned. The files
// are written by others: by parquet-go, with page indexes and Bloom filters, and by
// Arrow. Their keys are read on the generic path.

// keyKind is a type of key column: how it is declared and how a number is turned
// into one of its values.
type keyKind struct {
	name  string
	bits  int // of the numbers
	node  func() pq.Node
	value func(n int64) pq.Value
}

func fixedOf(n int64, width int) pq.Value {
	b := make([]byte, width)
	for i := range b {
		b[i] = byte(n >> (8 * min(width-1-i, 7)))
		if width-1-i > 7 {
			b[i] = byte(n >> 63)
		}
	}
	return pq.FixedLenByteArrayValue(b)
}

func int32Of(n int64) pq.Value { return pq.Int32Value(int32(n)) }

// narrowed limits a number to the values of a small integer type.
func narrowed(low, width int64) func(n int64) pq.Value {
	return func(n int64) pq.Value { return pq.Int32Value(int32(low + ((n%width)+width)%width)) }
}

var keyKinds = []keyKind{
	{"int64", 64, func() pq.Node { return pq.Leaf(pq.Int64Type) }, pq.Int64Value},
	{"int64 annotated", 64, func() pq.Node { return pq.Int(64) }, pq.Int64Value},
	{"uint64", 64, func() pq.Node { return pq.Uint(64) }, pq.Int64Value},
	{"int32", 32, func() pq.Node { return pq.Leaf(pq.Int32Type) }, int32Of},
	{"uint32", 32, func() pq.Node { return pq.Uint(32) }, int32Of},
	{"int16", 16, func() pq.Node { return pq.Int(16) }, narrowed(-1<<15, 1<<16)},
	{"uint8", 8, func() pq.Node { return pq.Uint(8) }, narrowed(0, 1<<8)},
	{"date", 32, pq.Date, int32Of},
	{"timestamp of milliseconds", 64, func() pq.Node { return pq.TimestampAdjusted(pq.Millisecond, true) }, pq.Int64Value},
	{"timestamp of nanoseconds", 64, func() pq.Node { return pq.TimestampAdjusted(pq.Nanosecond, false) }, pq.Int64Value},
	{"decimal in int32", 29, func() pq.Node { return pq.Decimal(3, 9, pq.Int32Type) }, narrowed(-999_999_999, 1_999_999_999)},
	{"decimal in int64", 56, func() pq.Node { return pq.Decimal(5, 18, pq.Int64Type) }, func(n int64) pq.Value { return pq.Int64Value(n % 1e17) }},
	{"decimal in 16 bytes", 64, func() pq.Node { return pq.Decimal(2, 38, pq.FixedLenByteArrayType(16)) }, func(n int64) pq.Value { return fixedOf(n, 16) }},
	{"string", 64, pq.String, func(n int64) pq.Value { return pq.ByteArrayValue(word(n)) }},
	{"binary", 64, func() pq.Node { return pq.Leaf(pq.ByteArrayType) }, func(n int64) pq.Value {
		if n%99 == 0 {
			return pq.ByteArrayValue(nil)
		}
		return pq.ByteArrayValue(binary.BigEndian.AppendUint64(bytes.Repeat([]byte{0xff}, int(uint64(n)>>60)), uint64(n)))
	}},
	{"uuid", 64, pq.UUID, func(n int64) pq.Value { return fixedOf(n, 16) }},
	{"double", 64, func() pq.Node { return pq.Leaf(pq.DoubleType) }, func(n int64) pq.Value {
		return pq.DoubleValue([]float64{float64(n), math.NaN(), math.Copysign(0, -1)}[max(n%7-4, 0)])
	}},
	{"boolean", 8, func() pq.Node { return pq.Leaf(pq.BooleanType) }, func(n int64) pq.Value { return pq.BooleanValue(n%2 == 0) }},
}

func word(n int64) []byte {
	return []byte(strings.Repeat("pre", int(uint64(n)>>61)) + fmt.Sprintf("%020d", uint64(n)))
}

// randomNumbers returns n numbers of about the given number of bits, in an order
// that often allows pruning.
func randomNumbers(rng *rand.Rand, n, bits int) []int64 {
	out := make([]int64, n)
	at := int64(rng.Uint64()) >> (64 - bits) / 2
	noise := 1 + rng.Uint64N(1<<rng.IntN(bits-1))
	step := int64(rng.Uint64N(uint64(1+(1<<(bits-2))/int64(n)) + 1))
	strangers := rng.IntN(3) == 0
	for i := range out {
		out[i] = at + int64(i)*step + int64(rng.Uint64N(noise))
		if strangers && rng.IntN(200) == 0 {
			out[i] = int64(rng.Uint64()) >> (64 - bits)
		}
	}
	return out
}

// writePages writes a file with small pages, their index and Bloom filters.
func writePages(t *testing.T, rng *rand.Rand, kind keyKind, optional, nested bool) []byte {
	t.Helper()
	node, def := kind.node(), 0
	if optional {
		node, def = pq.Optional(node), 1
	}
	fields, path := pq.Group{"k": node, "x": pq.Leaf(pq.Int32Type)}, []string{"k"}
	column := 0
	if nested {
		fields, path = pq.Group{"s": pq.Optional(pq.Group{"k": node}), "x": pq.Leaf(pq.Int32Type)}, []string{"s", "k"}
		def++
	}
	limit := []int{2, 8, 16, 1000}[rng.IntN(4)]
	opts := []pq.WriterOption{
		pq.NewSchema("log", fields), pq.CreatedBy("github.com/parquet-go/parquet-go", "0.32.0", ""),
		pq.PageBufferSize(64 + rng.IntN(1000)), pq.MaxRowsPerRowGroup(int64(100 + rng.IntN(2000))),
		pq.DataPageVersion(1 + rng.IntN(2)), pq.ColumnIndexSizeLimit(func([]string) int { return limit }),
	}
	if rng.IntN(2) == 0 && kind.name != "boolean" {
		opts = append(opts, pq.BloomFilters(pq.SplitBlockFilter(10, path...)))
	}
	var b bytes.Buffer
	w := pq.NewWriter(&b, opts...)
	hollow := 0 // rows left in a run of NULLs
	for i, n := range randomNumbers(rng, 1+rng.IntN(2000), kind.bits) {
		if rng.IntN(300) == 0 {
			hollow = rng.IntN(300)
		}
		v := kind.value(n).Level(0, def, column)
		if hollow--; def > 0 && (hollow > 0 || rng.IntN(20) == 0) {
			v = pq.ValueOf(nil).Level(0, rng.IntN(def), column)
		}
		if _, err := w.WriteRows([]pq.Row{{v, pq.Int32Value(int32(i)).Level(0, 0, 1)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// keysIn reads the keys of each row group on the generic path. "" is a NULL; others
// begin with a byte.
func keysIn(t testing.TB, file []byte, column string) (groups [][]string, schema *arrow.Schema, classes []keys.Class) {
	t.Helper()
	table, err := arrowparquet.OpenParquet(bytes.NewReader(file), int64(len(file)), "test.parquet", arrowparquet.ParquetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	paths, err := keys.ParseColumns(column)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := keys.NewEncoder(table.Schema(), paths, keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var batch keys.Batch
	for g := range table.NumGroups() {
		rows := make([]string, 0, table.GroupRows(g))
		for rec, err := range table.Read(context.Background(), g, nil) {
			if err != nil {
				t.Fatal(err)
			}
			if err := enc.Encode(rec, &batch); err != nil {
				t.Fatal(err)
			}
			base := len(rows)
			rows = append(rows, make([]string, rec.NumRows())...)
			for i, row := range batch.Rows {
				rows[base+int(row)] = "=" + string(batch.Append(nil, i))
			}
		}
		groups = append(groups, rows)
	}
	return groups, table.Schema(), enc.Classes()
}

// randomMembers picks members among the file's keys and near them.
func randomMembers(rng *rand.Rand, groups [][]string) (members map[string]bool) {
	members = map[string]bool{}
	var all []string
	for _, g := range groups {
		all = append(all, g...)
	}
	from := rng.IntN(len(all))
	near := all[from:min(from+1+rng.IntN(200), len(all))]
	for range rng.IntN(8) {
		m := near[rng.IntN(len(near))]
		if m == "" {
			continue
		}
		if len(m) > 1 && rng.IntN(3) == 0 { // one that may be in no row
			b := []byte(m)
			b[rng.IntN(min(2, len(b)-1))+1]++
			m = string(b)
		}
		members[m] = true
	}
	return members
}

// knownOf returns what is known about members: the set itself if exactly is set and
// that is possible, else their range.
func knownOf(t testing.TB, members map[string]bool, columns string, classes []keys.Class, exactly bool) *known {
	t.Helper()
	k := &known{columns: columns, classes: classes}
	if exactly && len(classes) == 1 && classes[0] == keys.Integer {
		k.set = exact.New()
		for m := range members {
			k.set.Add([]uint64{binary.LittleEndian.Uint64([]byte(m[1:]))}, m[9] == 1)
		}
		return k
	}
	bounds := keys.NewBounds(classes)
	for m := range members {
		part := []byte(m[1:])
		for i := range classes {
			if len(classes) > 1 {
				size, at := binary.Uvarint(part)
				bounds.Widen(i, part[at:at+int(size)], part[at:at+int(size)], true)
				part = part[at+int(size):]
			} else if keys.OrderOf(classes[0]) != keys.Unordered {
				bounds.Widen(0, part, part, true)
			}
		}
	}
	for i := range classes {
		lo, hi, ok := bounds.Column(i)
		if !ok {
			lo, hi = nil, nil
		}
		k.lo, k.hi = append(k.lo, lo), append(k.hi, hi)
	}
	return k
}

// checkPruned prunes the file and checks that the rows of all members are left and
// that NULLs are counted correctly. It returns the number of rows that are left.
func checkPruned(t testing.TB, what string, file []byte, groups [][]string, schema *arrow.Schema, members map[string]bool, m *known) (left, all int64) {
	t.Helper()
	f, err := parquet.Open(nil, bytes.NewReader(file), int64(len(file)), "test.parquet")
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.pruner(f, schema)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for g, rows := range groups {
		all += int64(len(rows))
		if p == nil {
			left += int64(len(rows))
			continue
		}
		ranges, nulls, err := p.Rows(context.Background(), g)
		if err != nil {
			t.Fatalf("%s: row group %d: %v", what, g, err)
		}
		inside, end := make([]bool, len(rows)), int64(0)
		for i, r := range ranges {
			if r[0] < end || r[0] == end && i > 0 || r[1] <= r[0] || r[1] > int64(len(rows)) {
				t.Fatalf("%s: row group %d of %d rows: ranges %v", what, g, len(rows), ranges)
			}
			end = r[1]
			left += r[1] - r[0]
			for row := r[0]; row < r[1]; row++ {
				inside[row] = true
			}
		}
		wantNulls := int64(0)
		for row, key := range rows {
			if members[key] && !inside[row] {
				t.Fatalf("%s: row group %d: row %d holds the member %q and was pruned: %v", what, g, row, key, ranges)
			}
			if key == "" && !inside[row] {
				wantNulls++
			}
		}
		if nulls >= 0 && nulls != wantNulls {
			t.Fatalf("%s: row group %d: %d NULLs outside, want %d", what, g, nulls, wantNulls)
		}
	}
	return left, all
}

func TestPruneProperty(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for _, kind := range keyKinds {
		left, all := int64(0), int64(0)
		for round := range 8 {
			optional, nested := rng.IntN(2) == 0, rng.IntN(3) == 0
			file := writePages(t, rng, kind, optional, nested)
			key := "k"
			if nested {
				key = "s.k"
			}
			groups, schema, classes := keysIn(t, file, key)
			for range 8 {
				members := randomMembers(rng, groups)
				filter := knownOf(t, members, key, classes, rng.IntN(2) == 0)
				what := fmt.Sprintf("%s, round %d", kind.name, round)
				l, a := checkPruned(t, what, file, groups, schema, members, filter)
				left, all = left+l, all+a
			}
		}
		switch kind.name {
		case "double", "boolean", "decimal in 16 bytes", "uuid": // no order, or one for which this writer is not trusted
			if left != all {
				t.Errorf("%s: %d of %d rows are left", kind.name, left, all)
			}
		default:
			if float64(left) > 0.85*float64(all) {
				t.Errorf("%s: %d of %d rows are left: that is no pruning", kind.name, left, all)
			}
		}
	}
}

// Each column of a composite key of two columns prunes.
func TestPruneComposite(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	left, all := int64(0), int64(0)
	for round := range 40 {
		var b bytes.Buffer
		w := pq.NewWriter(&b,
			pq.NewSchema("log", pq.Group{"day": pq.Optional(pq.Date()), "name": pq.Optional(pq.String())}),
			pq.PageBufferSize(64+rng.IntN(600)), pq.MaxRowsPerRowGroup(int64(100+rng.IntN(1000))),
			pq.CreatedBy("github.com/parquet-go/parquet-go", "0.32.0", ""))
		days, names := randomNumbers(rng, 1000, 32), randomNumbers(rng, 1000, 64)
		for i := range days {
			row := pq.Row{pq.Int32Value(int32(days[i])).Level(0, 1, 0), pq.ByteArrayValue(word(names[i])).Level(0, 1, 1)}
			for c := range row {
				if rng.IntN(30) == 0 {
					row[c] = pq.ValueOf(nil).Level(0, 0, c)
				}
			}
			if _, err := w.WriteRows([]pq.Row{row}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		groups, schema, classes := keysIn(t, b.Bytes(), "name,day")
		for range 10 {
			members := randomMembers(rng, groups)
			for m := range members { // members that were changed are no longer keys
				if !slices.ContainsFunc(groups, func(g []string) bool { return slices.Contains(g, m) }) {
					delete(members, m)
				}
			}
			filter := knownOf(t, members, "name,day", classes, false)
			l, a := checkPruned(t, fmt.Sprint("round ", round), b.Bytes(), groups, schema, members, filter)
			left, all = left+l, all+a
		}
	}
	if float64(left) > 0.6*float64(all) {
		t.Errorf("%d of %d rows are left: that is no pruning", left, all)
	}
}

// Arrow's Go writer: row groups without page indexes, and its faulty statistics.
func TestPruneArrow(t *testing.T) {
	if bits.UintSize < 64 {
		t.Skip("arrow/go's Parquet writer panics on a count that is not aligned to 64 bits")
	}
	rng := rand.New(rand.NewPCG(25, 26))
	types := []arrow.DataType{
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Uint32,
		arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint64, arrow.FixedWidthTypes.Date32, arrow.BinaryTypes.String,
		&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, &arrow.Decimal128Type{Precision: 20, Scale: 3},
		&arrow.FixedSizeBinaryType{ByteWidth: 5}, arrow.PrimitiveTypes.Float64,
	}
	left, all := int64(0), int64(0)
	for _, dt := range types {
		for range 8 {
			rec := randomRecord(t, rng, dt)
			var b bytes.Buffer
			w, err := pqarrow.NewFileWriter(rec.Schema(), &b, v15.NewWriterProperties(
				v15.WithDataPageSize(200), v15.WithMaxRowGroupLength(100), v15.WithBatchSize(32)), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Write(rec); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			groups, schema, classes := keysIn(t, b.Bytes(), "k")
			for range 10 {
				members := randomMembers(rng, groups)
				filter := knownOf(t, members, "k", classes, rng.IntN(2) == 0)
				l, a := checkPruned(t, dt.String(), b.Bytes(), groups, schema, members, filter)
				left, all = left+l, all+a
			}
		}
	}
	if float64(left) > 0.9*float64(all) {
		t.Errorf("%d of %d rows are left: that is no pruning", left, all)
	}
}

// randomRecord makes a column k of the type, with or without NULLs.
func randomRecord(t *testing.T, rng *rand.Rand, dt arrow.DataType) arrow.Record {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "k", Type: dt, Nullable: rng.IntN(2) == 0}}, nil))
	for i, n := range randomNumbers(rng, 1+rng.IntN(600), 32) {
		f := b.Field(0)
		if b.Schema().Field(0).Nullable && rng.IntN(10) == 0 {
			f.AppendNull()
			continue
		}
		switch f := f.(type) {
		case *array.Int8Builder:
			f.Append(int8(i))
		case *array.Uint8Builder:
			f.Append(uint8(i))
		case *array.Int32Builder:
			f.Append(int32(n))
		case *array.Uint32Builder:
			f.Append(uint32(n))
		case *array.Int64Builder:
			f.Append(n)
		case *array.Uint64Builder:
			f.Append(uint64(n))
		case *array.Date32Builder:
			f.Append(arrow.Date32(n))
		case *array.StringBuilder:
			f.Append(string(word(n))[:uint64(n)%20])
		case *array.TimestampBuilder:
			f.Append(arrow.Timestamp(n))
		case *array.Float64Builder:
			f.Append(float64(n))
		case *array.Decimal128Builder:
			if err := f.AppendValueFromString(fmt.Sprintf("%d.%03d", n/100_000, uint64(n)%1000)); err != nil {
				t.Fatal(err)
			}
		case *array.FixedSizeBinaryBuilder:
			f.Append(binary.BigEndian.AppendUint64(nil, uint64(n))[3:])
		default:
			t.Fatalf("no builder for %s", dt)
		}
	}
	return b.NewRecord()
}
