package parquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	pg "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// A widenCase is a stored type, the wider type of a table, and numbers that the former holds.
type widenCase struct {
	name         string
	narrow, wide pg.Node
	value, wider func(n int64) pg.Value
	bits         int // of the numbers
}

// twosComplement is the test's own form of decimals in bytes.
func twosComplement(n int64, size int) []byte {
	v := big.NewInt(n)
	if n < 0 {
		v.Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	return v.FillBytes(make([]byte, size))
}

func widenCases() []widenCase {
	int32s := func(n int64) pg.Value { return pg.Int32Value(int32(n)) }
	fixed := func(size int) func(int64) pg.Value {
		return func(n int64) pg.Value { return pg.FixedLenByteArrayValue(twosComplement(n, size)) }
	}
	bytes := func(precision, size int) pg.Node { return pg.Decimal(2, precision, pg.FixedLenByteArrayType(size)) }
	return []widenCase{
		{"int to long", pg.Leaf(pg.Int32Type), pg.Leaf(pg.Int64Type), int32s, pg.Int64Value, 32},
		{"byte to long", pg.Int(8), pg.Leaf(pg.Int64Type), int32s, pg.Int64Value, 8},
		{
			"float to double", pg.Leaf(pg.FloatType), pg.Leaf(pg.DoubleType),
			func(n int64) pg.Value { return pg.FloatValue(float32(n) / 3) }, func(n int64) pg.Value { return pg.DoubleValue(float64(float32(n) / 3)) }, 40,
		},
		{"decimal 4 to 8", pg.Decimal(2, 9, pg.Int32Type), pg.Decimal(2, 18, pg.Int64Type), int32s, pg.Int64Value, 28},
		{"decimal 4 to bytes", pg.Decimal(2, 9, pg.Int32Type), bytes(20, 9), int32s, fixed(9), 28},
		{"decimal 8 to bytes", pg.Decimal(2, 18, pg.Int64Type), bytes(38, 16), pg.Int64Value, fixed(16), 58},
		{"decimal in 2 bytes to 4", bytes(4, 2), bytes(9, 4), fixed(2), fixed(4), 13},
		{"decimal in 5 bytes to 16", bytes(11, 5), bytes(38, 16), fixed(5), fixed(16), 35},
	}
}

// Three leaves: always set, at times NULL, and in lists.
func widenSchema(of pg.Node, e encoding.Encoding) *pg.Schema {
	of = pg.Encoded(of, e)
	return pg.NewSchema("schema", pg.Group{"a": of, "b": pg.Optional(of), "c": pg.List(pg.Optional(of))})
}

// encodes reports whether an encoding has values of a type.
func encodes(of pg.Node, e encoding.Encoding) (ok bool) {
	defer func() { ok = recover() == nil }()
	pg.Encoded(of, e)
	return
}

// widenFile writes rows of numbers, drawn alike for each seed, as values.
func widenFile(t testing.TB, seed uint64, rows, bits int, schema *pg.Schema, value func(int64) pg.Value, opts ...pg.WriterOption) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	draw := func() int64 { return int64(r.Uint64()) >> (64 - bits) >> r.IntN(bits) }
	var b bytes.Buffer
	w := pg.NewGenericWriter[any](&b, append([]pg.WriterOption{schema, pg.PageBufferSize(200), pg.MaxRowsPerRowGroup(200), pg.CreatedBy("parquet-mr", "1.14", "x")}, opts...)...)
	for i := range rows {
		few := r.IntN(3) > 0 && i%100 < 50
		next := func() pg.Value {
			if n := draw(); !few {
				return value(n)
			}
			return value(int64(r.IntN(5)) - 2)
		}
		row := pg.Row{next().Level(0, 0, 0), pg.NullValue().Level(0, 0, 1)}
		if r.IntN(4) > 0 {
			row[1] = next().Level(0, 1, 1)
		}
		n := r.IntN(4)
		if n == 0 {
			row = append(row, pg.NullValue().Level(0, 0, 2))
		}
		for k := range n {
			v := pg.NullValue().Level(min(k, 1), 1, 2)
			if r.IntN(4) > 0 {
				v = next().Level(min(k, 1), 2, 2)
			}
			row = append(row, v)
		}
		if _, err := w.WriteRows([]pg.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// widenedTo opens a file with a view that has the types of another.
func widenedTo(t testing.TB, room *PageBudget, narrow []byte, wide *File) *File {
	t.Helper()
	f, err := Open(room, bytes.NewReader(narrow), int64(len(narrow)), "narrow")
	if err == nil {
		v := View{Elements: wide.Metadata.Schema}
		for l := range wide.Leaves {
			v.Leaves = append(v.Leaves, l)
		}
		err = f.Adopt(&v, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// chunkEntries reads a chunk, or some of its rows, by a Chunk or a RowReader.
func chunkEntries(f *File, g, l int, rows []uint32, inBatches bool) (out []string, err error) {
	leaf := &f.Leaves[l]
	add := func(p *Page, dict *Dictionary) {
		rep, def := p.Rep, p.Def
		if rep == nil {
			rep = make([]uint8, p.Values)
		}
		if def == nil {
			def = make([]uint8, p.Values)
		}
		out = entries(rep, def, leaf.MaxDef, func(i int) []byte { return valueOf(leaf, p, dict, i) }, out)
	}
	ctx := context.Background()
	if inBatches {
		r := f.NewRowReader(ctx, g, []int{l}, rows)
		defer r.Close()
		r.Rows, r.Bytes, r.Again, r.Keep = 17, 1<<20, 1<<20, 1<<20
		for r.Left() > 0 && err == nil {
			_, err = r.Next(func(int) error {
				return r.Pages(ctx, func(_ int, p *Page, dict *Dictionary) error {
					add(p, dict)
					return r.Charge(leaf, p, dict)
				})
			})
		}
		return out, err
	}
	c := f.Chunk(g, l)
	defer c.Close()
	if rows != nil {
		c.Select(rows)
	}
	for {
		p, err := c.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if f.Viewed() && p.Stored != nil || p.Undecoded() {
			return nil, errors.New("a page as it is stored")
		}
		add(p, c.Dictionary())
	}
}

// eachWidened calls a test with files of each type in each form, narrow and wide.
func eachWidened(t *testing.T, test func(t *testing.T, c widenCase, narrow []byte, wide *File)) {
	codecs := []compress.Codec{&pg.Uncompressed, &pg.Snappy}
	for i, c := range widenCases() {
		for name, e := range map[string]encoding.Encoding{
			"plain": &pg.Plain, "dict": &pg.RLEDictionary, "delta": &pg.DeltaBinaryPacked, "split": &pg.ByteStreamSplit, "shared": &pg.DeltaByteArray,
		} {
			if !encodes(c.narrow, e) {
				continue
			}
			for version := 1; version <= 2; version++ {
				t.Run(fmt.Sprintf("%s/%s/%d", c.name, name, version), func(t *testing.T) {
					opts := []pg.WriterOption{pg.DataPageVersion(version), pg.Compression(codecs[(i+version)%2])}
					narrow := widenFile(t, uint64(i), 500, c.bits, widenSchema(c.narrow, e), c.value, opts...)
					as := e
					if !encodes(c.wide, e) {
						as = &pg.Plain
					}
					wide, err := openBytes(widenFile(t, uint64(i), 500, c.bits, widenSchema(c.wide, as), c.wider, opts...), "wide")
					if err != nil {
						t.Fatal(err)
					}
					test(t, c, narrow, wide)
				})
			}
		}
	}
}

// Pages of a wider type are those of a file that stores it, whichever rows are read and how.
func TestWidenedPages(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	forms := map[string]bool{}
	eachWidened(t, func(t *testing.T, c widenCase, narrow []byte, wide *File) {
		f := widenedTo(t, nil, narrow, wide)
		for g := range f.RowGroups {
			for l := range f.Leaves {
				for k, rows := range [][]uint32{nil, nil, {0, 1, 150}, pick(rng, int(f.RowGroups[g].Rows)-1, 9, 30), {uint32(f.RowGroups[g].Rows) - 1}} {
					if len(rows) == 0 && rows != nil {
						continue
					}
					if rows != nil && int64(rows[len(rows)-1]) >= f.RowGroups[g].Rows {
						continue
					}
					want, err := chunkEntries(wide, g, l, rows, true)
					if err != nil {
						t.Fatal(err)
					}
					got, err := chunkEntries(f, g, l, rows, k%2 == 1)
					if err != nil || !slices.Equal(got, want) {
						t.Fatalf("row group %d, leaf %d, rows %v: %v, %d entries, want %d", g, l, rows, err, len(got), len(want))
					}
				}
				pages, dict := readBack(t, f, g, l)
				forms[fmt.Sprint(dict != nil, pages[0].coded, len(pages) > 2)] = true
				d, err := f.Chunk(g, l).ReadDictionary(t.Context())
				if err != nil || (d == nil) != (dict == nil) || d != nil && len(d.Plain) != d.Len*f.Leaves[l].Width() {
					t.Fatalf("dictionary %v, %v", d, err)
				}
			}
		}
	})
	if !forms["true true true"] || !forms["false false true"] {
		t.Errorf("forms %v", forms)
	}
}

// Statistics and column indexes are those of the values in the wider type, and no Bloom filter is left.
func TestWidenedClaims(t *testing.T) {
	eachWidened(t, func(t *testing.T, c widenCase, narrow []byte, wide *File) {
		if stored, err := openBytes(narrow, "narrow"); err != nil {
			t.Fatal(err)
		} else if stored.Leaves[0].TypeLength > 0 { // parquet-go compares decimals without their sign
			if narrow, err = copyWhole(stored, WriterOptions{Compression: enc.Compression{Codec: format.Zstd}}, new(copies)); err != nil {
				t.Fatal(err)
			}
		}
		f := widenedTo(t, nil, narrow, wide)
		if notes, err := auditFile(f); err != nil || notes != "" {
			t.Fatalf("%v; notes %s", err, notes)
		}
		for g := range f.RowGroups {
			for l := range f.Leaves {
				order, s := f.Orders()[l], &f.Metadata.RowGroups[g].Columns[l].MetaData.Statistics
				pages, _ := readBack(t, f, g, l)
				x, _, err := f.OffsetIndex(g, l)
				if err != nil {
					t.Fatal(err)
				}
				columns, ok, err := f.ColumnIndex(g, l, x)
				if err != nil || !ok {
					t.Fatal("no column index", err)
				}
				var all meta.Bounds
				for i, p := range pages {
					var plain []byte
					for _, v := range p.values {
						plain = append(plain, v...)
					}
					b, err := order.BoundsOf(plain, len(p.values))
					if err != nil {
						t.Fatal(err)
					}
					all.Add(order, b)
					if got := (meta.Bounds{Lo: columns.Min[i], Hi: columns.Max[i]}); len(p.values) > 0 && !same(order, got, b) {
						t.Fatalf("page %d of leaf %d: %v, want %v", i, l, got, b)
					}
				}
				if s.MinValue.Valid && !same(order, meta.Bounds{Lo: s.MinValue.V, Hi: s.MaxValue.V}, all) || !f.BoundsBelieved(&f.Leaves[l]) {
					t.Fatalf("leaf %d: %+v, want %v", l, s, all)
				}
			}
		}
	})
}

// same compares bounds whose zeros may have either sign.
func same(o meta.Order, a, b meta.Bounds) bool {
	return o.Admits(a) && o.Admits(b) && bytes.Equal(o.Widen(a).Lo, b.Lo) && bytes.Equal(o.Widen(a).Hi, b.Hi)
}

// A copy of a file in wider types is a file that stores them: nothing is copied as it is stored.
func TestWidenedCopies(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	eachWidened(t, func(t *testing.T, c widenCase, narrow []byte, wide *File) {
		f := widenedTo(t, nil, narrow, wide)
		n := copies{whys: map[string]int{}}
		out, err := copyWhole(f, sameCodec(f), &n)
		if err != nil || n.whole > 0 || len(n.whys) != 1 {
			t.Fatalf("%v, %+v", err, n)
		}
		again, err := openBytes(out, "copy")
		if err != nil {
			t.Fatal(err)
		}
		if notes, err := auditFile(again); err != nil || notes != "" {
			t.Fatalf("%v; notes %s", err, notes)
		}
		w, err := NewWriter(io.Discard, f.Metadata.Schema, f.Metadata.ColumnOrders, sameCodec(f))
		if err != nil {
			t.Fatal(err)
		}
		for g := range f.RowGroups {
			for l := range f.Leaves {
				want, _ := chunkEntries(wide, g, l, nil, false)
				if got, err := chunkEntries(again, g, l, nil, true); err != nil || len(got) == 0 || want != nil && !slices.Equal(got, want) {
					t.Fatalf("row group %d, leaf %d: %v", g, l, err)
				}
				ch := f.Chunk(g, l)
				ch.Undecoded()
				ch.Select(maxRows(rng, f.RowGroups[g].Rows))
				for p, err := ch.Next(t.Context()); err == nil; p, err = ch.Next(t.Context()) {
					if p.Undecoded() || p.Stored != nil {
						t.Fatal("a page as it is stored")
					}
				}
				if _, why, err := w.CopyChunk(t.Context(), f, g, l, l, CopyOptions{}); why == "" || err != nil {
					t.Fatal("a chunk as it is stored", err)
				}
			}
		}
	})
}

// The memory of wider values is charged, and counted as needed.
func TestWidenedRoom(t *testing.T) {
	eachWidened(t, func(t *testing.T, c widenCase, narrow []byte, wide *File) {
		f := widenedTo(t, NewPageBudget(1<<30), narrow, wide)
		g, err := Open(NewPageBudget(1<<30), bytes.NewReader(narrow), int64(len(narrow)), "narrow")
		if err != nil {
			t.Fatal(err)
		}
		for l := range f.Leaves {
			a, b := f.Chunk(0, l), g.Chunk(0, l)
			p, err := a.Next(t.Context())
			if _, other := b.Next(t.Context()); err != nil || other != nil {
				t.Fatal(err, other)
			}
			n := p.Values
			if p.Coded {
				n = a.Dictionary().Len
			}
			more := int64(n * f.Leaves[l].Width())
			if got := a.buf.charged - b.buf.charged; got != more {
				t.Errorf("leaf %d: %d bytes more are charged, want %d", l, got, more)
			}
			if got := f.Need(0, l) - g.Need(0, l); got != more {
				t.Errorf("leaf %d: %d bytes more are needed, want %d", l, got, more)
			}
			if a.buf.Size() < more || f.RowBytes(0, []int{l}) <= g.RowBytes(0, []int{l}) {
				t.Errorf("leaf %d: buffers of %d bytes, rows of %f", l, a.buf.Size(), f.RowBytes(0, []int{l}))
			}
			a.Close()
			b.Close()
		}
	})
}

// widenedAlike compares a file read in wider types with the same file read as it is stored.
func widenedAlike(t testing.TB, narrow []byte, wide *File) {
	plain, err := openBytes(narrow, "narrow")
	if err != nil {
		return
	}
	f := widenedTo(t, NewPageBudget(64<<20), narrow, wide)
	for g := range f.RowGroups {
		for l := range f.Leaves {
			rows := []uint32{0, 3, 4, 5, 90}
			for _, some := range [][]uint32{nil, rows} {
				got, err := chunkEntries(f, g, l, some, false)
				was, before := chunkEntries(plain, g, l, some, false)
				if (err == nil) != (before == nil) || errors.Is(err, panics.ErrRecovered) {
					t.Fatalf("%v; as stored: %v", err, before)
				}
				if err == nil && !slices.EqualFunc(got, was, func(a, b string) bool { return a == widenedText(b) }) {
					t.Fatalf("row group %d, leaf %d: other values", g, l)
				}
				if err != nil && !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
					t.Fatal(err)
				}
			}
			_ = f.Audit(context.Background(), g, l, func(error) {})
		}
	}
}

// widenedText widens an entry of an INT32 that is the last of its words.
func widenedText(entry string) string {
	var rep, def int
	var v []byte
	if n, _ := fmt.Sscanf(entry, "%d %d %x", &rep, &def, &v); n < 3 {
		return entry
	}
	return fmt.Sprintf("%d %d %x", rep, def, binary.LittleEndian.AppendUint64(nil, uint64(int64(int32(binary.LittleEndian.Uint32(v))))))
}

// FuzzWidened changes the pages of a file: reading them in a wider type fails if and only if reading them as
// they are stored does.
func FuzzWidened(f *testing.F) {
	var files [][]byte
	var wide *File
	for _, e := range []encoding.Encoding{&pg.Plain, &pg.RLEDictionary, &pg.DeltaBinaryPacked, &pg.ByteStreamSplit} {
		c := widenCases()[0]
		opts := []pg.WriterOption{pg.DataPageVersion(1 + len(files)%2), pg.Compression([]compress.Codec{&pg.Uncompressed, &pg.Snappy}[len(files)/2])}
		files = append(files, widenFile(f, 1, 100, c.bits, widenSchema(c.narrow, e), c.value, opts...))
		var err error
		if wide, err = openBytes(widenFile(f, 1, 1, c.bits, widenSchema(c.wide, &pg.Plain), c.wider), "wide"); err != nil {
			f.Fatal(err)
		}
	}
	footerAt := func(b []byte) int { return len(b) - 8 - int(binary.LittleEndian.Uint32(b[len(b)-8:])) }
	rng := rand.New(rand.NewPCG(1, 1))
	for i, b := range files {
		pages := b[4:footerAt(b)]
		f.Add(uint8(i), pages)
		for range 100 {
			changed := slices.Clone(pages)
			changed[rng.IntN(len(changed))] ^= 1 << rng.IntN(8)
			f.Add(uint8(i), changed)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, pages []byte) {
		b := slices.Clone(files[int(which)%len(files)])
		copy(b[4:footerAt(b)], pages)
		widenedAlike(t, b, wide)
	})
}

// A bound that is no value of the stored type is no bound of the wider one.
func TestWidenedBadBounds(t *testing.T) {
	from, to := &meta.Leaf{Type: format.Int32}, &meta.Leaf{Type: format.Int64}
	w, err := newWidening(from, to)
	if err != nil {
		t.Fatal(err)
	}
	md := meta.ColumnMetaData{BloomFilterOffset: 7, TotalUncompressedSize: math.MaxInt64 - 1}
	md.Statistics = meta.Statistics{MinValue: thrift.New(make([]byte, 8)), MaxValue: thrift.New([]byte{255, 255, 255, 255})}
	w.chunk(&md)
	s := &md.Statistics
	if s.MinValue.Valid || !bytes.Equal(s.MaxValue.V, bytes.Repeat([]byte{255}, 8)) || !s.MaxValue.Valid || md.BloomFilterOffset != 0 || md.TotalUncompressedSize < math.MaxInt64/2 {
		t.Errorf("%+v", md)
	}
	if w.statistics(s); s.MaxValue.Valid {
		t.Error("a bound of 8 bytes is one of 4")
	}
	// NaNs keep their bits, and zeros their sign.
	if w, err = newWidening(&meta.Leaf{Type: format.Float}, &meta.Leaf{Type: format.Double}); err != nil {
		t.Fatal(err)
	}
	nan := w.bound([]byte{1, 0, 128, 255})
	if zero := w.bound([]byte{0, 0, 0, 128}); !math.IsNaN(math.Float64frombits(binary.LittleEndian.Uint64(nan))) || nan[7] != 255 || !math.Signbit(math.Float64frombits(binary.LittleEndian.Uint64(zero))) {
		t.Errorf("%x, %x", nan, zero)
	}
}

// What would change the meaning of values, or cut them, is no widening.
func TestNoWidening(t *testing.T) {
	decimal := func(t format.Type, length, precision, scale int) *meta.Leaf {
		return &meta.Leaf{Type: t, TypeLength: length, Logical: meta.Logical{Kind: meta.Decimal, Precision: precision, Scale: scale}}
	}
	plain := func(t format.Type) *meta.Leaf { return &meta.Leaf{Type: t} }
	unsigned := &meta.Leaf{Type: format.Int32, Logical: meta.Logical{Kind: meta.Int, BitWidth: 32}}
	date, at := &meta.Leaf{Type: format.Int32, Logical: meta.Logical{Kind: meta.Date}}, &meta.Leaf{Type: format.Int64, Logical: meta.Logical{Kind: meta.Timestamp}}
	for _, c := range [][2]*meta.Leaf{
		{unsigned, plain(format.Int64)}, {plain(format.Int64), plain(format.Int32)}, {plain(format.Int32), plain(format.Double)}, {date, at}, {plain(format.Int32), at},
		{plain(format.Double), plain(format.Float)}, {plain(format.ByteArray), decimal(format.FixedLenByteArray, 9, 20, 2)},
		{decimal(format.Int32, 0, 9, 2), decimal(format.Int64, 0, 18, 3)}, {decimal(format.Int64, 0, 18, 2), decimal(format.FixedLenByteArray, 8, 18, 2)},
		{decimal(format.FixedLenByteArray, 9, 20, 2), decimal(format.FixedLenByteArray, 8, 20, 2)}, {decimal(format.Int32, 0, 9, 2), plain(format.Int64)},
		{&meta.Leaf{Type: format.FixedLenByteArray, TypeLength: 4}, &meta.Leaf{Type: format.FixedLenByteArray, TypeLength: 16}},
		{plain(format.Float), at},
	} {
		if w, err := newWidening(c[0], c[1]); err == nil {
			t.Errorf("%+v to %+v: %+v", c[0], c[1], w)
		}
	}
	if w, err := newWidening(decimal(format.Int32, 0, 4, 2), decimal(format.Int32, 0, 9, 2)); w != nil || err != nil {
		t.Errorf("%+v, %v", w, err)
	}
}

// A page whose wider values take too much is refused.
func TestWidenedTooLarge(t *testing.T) {
	c := Chunk{f: new(File), buf: new(Buffers), leaf: new(meta.Leaf)}
	long := &meta.Leaf{Type: format.FixedLenByteArray, TypeLength: 1 << 20, Logical: meta.Logical{Kind: meta.Decimal, Precision: 4}}
	short := &meta.Leaf{Type: format.Int32, Logical: meta.Logical{Kind: meta.Decimal, Precision: 4}}
	var err error
	if c.wide, err = newWidening(short, long); err != nil {
		t.Fatal(err)
	}
	c.page.Plain = make([]byte, 4*(enc.MaxPageSize>>20+1))
	if err := c.finish(t.Context(), new(meta.PageHeader)); !errors.Is(err, fault.ErrUnsupported) {
		t.Error(err)
	}
}
