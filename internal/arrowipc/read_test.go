package arrowipc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/bloomjoin/bloomjoin/fault"
)

var i32 = arrow.PrimitiveTypes.Int32

func le32(v ...int32) *memory.Buffer {
	return memory.NewBufferBytes(bytes.Clone(arrow.Int32Traits.CastToBytes(v)))
}

func ints(v ...int32) arrow.ArrayData {
	return raw{dt: i32, n: len(v), bufs: []*memory.Buffer{nil, le32(v...)}}.data()
}

func bits(b ...byte) *memory.Buffer { return memory.NewBufferBytes(b) }

// Arrays that break the rules of their type. Each is written unchecked.
func TestBadArrays(t *testing.T) {
	ab := words("a", "b")
	dict := &arrow.DictionaryType{IndexType: i32, ValueType: arrow.BinaryTypes.String}
	ree := arrow.RunEndEncodedOf(i32, arrow.BinaryTypes.String)
	kids := []arrow.Field{field1("a", i32), field1("b", i32)}
	codes := []arrow.UnionTypeCode{1, 3}
	sparse, dense := arrow.SparseUnionOf(kids, codes), arrow.DenseUnionOf(kids, codes)
	two := []arrow.ArrayData{ints(1, 2), ints(3, 4)}
	views := func(v ...byte) *memory.Buffer { return bits(append(v, make([]byte, 16-len(v))...)...) }
	for _, c := range []struct {
		what string
		raw  raw
		want string // in the error; empty: it is readable
	}{
		{"falling offsets", raw{dt: arrow.BinaryTypes.Binary, n: 3, bufs: []*memory.Buffer{nil, le32(0, 2, 1, 2), bits(1, 2)}}, "smaller than the one before"},
		{"offsets begin below zero", raw{dt: arrow.ListOf(i32), n: 1, bufs: []*memory.Buffer{nil, le32(-1, 1)}, kids: []arrow.ArrayData{ints(1)}}, "offsets from -1"},
		{"list beyond its child", raw{dt: arrow.ListOf(i32), n: 1, bufs: []*memory.Buffer{nil, le32(0, 3)}, kids: []arrow.ArrayData{ints(1, 2)}}, "offsets from 0 to 3 in 2"},
		{"list view beyond its child", raw{dt: arrow.ListViewOf(i32), n: 1, bufs: []*memory.Buffer{nil, le32(1), le32(2)}, kids: []arrow.ArrayData{ints(1, 2)}}, "list 0"},
		{"list view beyond, at NULL", raw{dt: arrow.ListViewOf(i32), n: 1, nulls: 1, bufs: []*memory.Buffer{bits(0), le32(1), le32(2)}, kids: []arrow.ArrayData{ints(1, 2)}}, ""},
		{"index", raw{dt: dict, n: 2, bufs: []*memory.Buffer{nil, le32(0, 2)}, dict: ab}, "index 2 in a dictionary of 2"},
		{"negative index", raw{dt: dict, n: 1, bufs: []*memory.Buffer{nil, le32(-1)}, dict: ab}, "index -1"},
		{"negative index at NULL", raw{dt: dict, n: 2, nulls: 1, bufs: []*memory.Buffer{bits(1), le32(1, -1)}, dict: ab}, ""},
		{"view below zero", raw{dt: arrow.BinaryTypes.StringView, n: 1, bufs: []*memory.Buffer{nil, views(0xFF, 0xFF, 0xFF, 0xFF)}}, "view 0"},
		{"view of no buffer", raw{dt: arrow.BinaryTypes.StringView, n: 1, bufs: []*memory.Buffer{nil, views(13)}}, "view 0"},
		{"view beyond", raw{dt: arrow.BinaryTypes.StringView, n: 1, bufs: []*memory.Buffer{nil, views(13, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 8), bits(0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8)}}, "view 0"},
		{"view with another prefix", raw{dt: arrow.BinaryTypes.StringView, n: 1, bufs: []*memory.Buffer{nil, views(13, 0, 0, 0, 1, 2, 3, 5), bits(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)}}, "view 0"},
		{"view beyond, at NULL", raw{dt: arrow.BinaryTypes.StringView, n: 1, nulls: 1, bufs: []*memory.Buffer{bits(0), views(13)}}, ""},
		{"unknown type id", raw{dt: sparse, n: 2, bufs: []*memory.Buffer{nil, bits(1, 2)}, kids: two}, "type id 2"},
		{"union offset", raw{dt: dense, n: 2, bufs: []*memory.Buffer{nil, bits(1, 3), le32(0, 2)}, kids: two}, "value 1 lies outside"},
		{"run ends fall", raw{dt: ree, n: 2, bufs: []*memory.Buffer{nil}, kids: []arrow.ArrayData{ints(2, 2), ab}}, "does not rise"},
		{"run ends stop", raw{dt: ree, n: 3, bufs: []*memory.Buffer{nil}, kids: []arrow.ArrayData{ints(1, 2), ab}}, "stop at 2 of 3"},
		{"null count", raw{dt: i32, n: 3, nulls: 2, bufs: []*memory.Buffer{bits(0b101), le32(1, 2, 3)}}, "1 NULLs in the bitmap, 2"},
		{"short child", raw{dt: arrow.StructOf(kids...), n: 3, bufs: []*memory.Buffer{nil}, kids: two}, "2 values, its parent 3"},
		{"short list child", raw{dt: arrow.FixedSizeListOf(2, i32), n: 2, bufs: []*memory.Buffer{nil}, kids: two[:1]}, "2 list elements"},
		{"short values", raw{dt: i32, n: 2, bufs: []*memory.Buffer{nil, le32(1)}}, "4 bytes where 2 values need 8"},
		{"short bitmap", raw{dt: i32, n: 9, nulls: 1, bufs: []*memory.Buffer{bits(0xFE), le32(1, 2, 3, 4, 5, 6, 7, 8, 9)}}, "bitmap of 1 bytes"},
		{"short offsets", raw{dt: arrow.BinaryTypes.Binary, n: 2, bufs: []*memory.Buffer{nil, le32(0, 1), bits(1)}}, "8 bytes where 2 values need 12"},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, zstd := range []bool{false, true} {
				b := stream(schemaMessage(c.raw.dt), batchMessages(c.raw, zstd))
				mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
				rows, err := walk(b, true, mem)
				mem.AssertSize(t, 0)
				if c.want == "" {
					if err != nil || rows != int64(c.raw.n) {
						t.Errorf("zstd=%v: %d rows, %v", zstd, rows, err)
					}
				} else if !errors.Is(err, fault.ErrCorrupt) || !zstd && !strings.Contains(err.Error(), c.want) {
					t.Errorf("zstd=%v: %v, want %q", zstd, err, c.want)
				}
			}
		})
	}
}

func words(v ...string) arrow.ArrayData {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.AppendValues(v, nil)
	return b.NewArray().Data()
}

var wordDict = &arrow.DictionaryType{IndexType: i32, ValueType: arrow.BinaryTypes.String}

// coded returns a batch of a dictionary column.
func coded(v ...int32) []byte {
	return batchMessages(raw{dt: wordDict, n: len(v), bufs: []*memory.Buffer{nil, le32(v...)}}, false)
}

// read walks a table and returns the text of its first column's values.
func read(tab *Table) (out []string, err error) {
	for g := range tab.NumGroups() {
		for rec, err := range tab.Read(context.Background(), g, nil) {
			if err != nil {
				return out, err
			}
			for i := range int(rec.NumRows()) {
				out = append(out, strings.Clone(rec.Column(0).ValueStr(i)))
			}
		}
	}
	return out, nil
}

func TestDictionaries(t *testing.T) {
	allNull := batchMessages(raw{dt: wordDict, n: 2, nulls: 2, bufs: []*memory.Buffer{bits(0), le32(7, 8)}}, false)
	s := schemaMessage(wordDict)
	for _, c := range []struct {
		what string
		in   []byte
		want string // values, or the error
	}{
		{"deltas", stream(s, dictMessage(words("a", "b"), 0, false), coded(1), dictMessage(words("c"), 0, true), dictMessage(words("d"), 0, true), coded(3, 2, 0)), "[b d c a]"},
		{"replaced", stream(s, dictMessage(words("a", "b"), 0, false), coded(1), dictMessage(words("c"), 0, false), coded(0)), "[b c]"},
		{"delta, then replaced", stream(s, dictMessage(words("a"), 0, false), dictMessage(words("b"), 0, true), dictMessage(words("c"), 0, false), coded(0)), "[c]"},
		{"index into what was replaced", stream(s, dictMessage(words("a", "b"), 0, false), dictMessage(words("c"), 0, false), coded(1)), "index 1 in a dictionary of 1"},
		{"not there yet, all NULL", stream(s, allNull, dictMessage(words("a"), 0, false), coded(0)), "[(null) (null) a]"},
		{"not there", stream(s, coded(0)), "dictionary 0 is missing"},
		{"delta to nothing", stream(s, dictMessage(words("a"), 0, true)), "is not there yet"},
		{"unknown id", stream(s, dictMessage(words("a"), 1, false)), "not in the schema"},
		{"of another layout", stream(s, dictMessage(ints(1), 0, false)), "a buffer of 4 bytes"},
	} {
		t.Run(c.what, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			tab, err := openBytes(c.in, true, mem)
			if err != nil {
				t.Fatal(err)
			}
			got, err := read(tab)
			if fmt.Sprint(got) != c.want && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, %v, want %s", got, err, c.want)
			}
		})
	}
}

// A column that is not selected costs nothing: its dictionary is not read, and its
// values are not checked.
func TestProjection(t *testing.T) {
	b := rawBatch{}
	b.add(raw{dt: wordDict, n: 1, bufs: []*memory.Buffer{nil, le32(99)}}.data())
	b.add(ints(7))
	in := stream(schemaMessage(wordDict, i32), dictMessage(raw{dt: arrow.BinaryTypes.String, n: 1, bufs: []*memory.Buffer{nil, le32(5, 3), bits(1)}}.data(), 0, false), b.message(1, -1, false))
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	tab, err := openBytes(in, true, mem)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read(tab); !errors.Is(err, fault.ErrCorrupt) {
		t.Error(err)
	}
	for _, cols := range [][]int{{1}, {1, 1}, {}} {
		for rec, err := range tab.Read(context.Background(), 0, cols) {
			if err != nil || rec.NumRows() != 1 || int(rec.NumCols()) != len(cols) {
				t.Errorf("columns %v: %v, %v", cols, rec, err)
			}
			for _, c := range rec.Columns() {
				if c.ValueStr(0) != "7" {
					t.Error(c)
				}
			}
		}
	}
	for _, cols := range [][]int{{2}, {-1}} {
		for _, err := range tab.Read(context.Background(), 0, cols) {
			if err == nil {
				t.Errorf("columns %v", cols)
			}
		}
	}
	for _, err := range tab.Read(context.Background(), 1, nil) {
		if err == nil {
			t.Error("group 1")
		}
	}
}

// A stream ends after its end marker and nowhere else: its writer may have failed between
// two messages.
func TestStreamEnds(t *testing.T) {
	s, b := schemaMessage(i32), batchMessages(raw{dt: i32, n: 1, bufs: []*memory.Buffer{nil, le32(5)}}, false)
	whole := stream(s, b, b)
	for n := range len(whole) + 1 {
		for _, opts := range []StreamOptions{{}, {Size: int64(n)}, {Size: int64(len(whole))}, {Once: true}} {
			tab, err := OpenStream(bytesOpener(whole[:n]), "cut", nil, opts)
			if err == nil {
				_, err = read(tab)
			}
			if (n == len(whole)) != (err == nil) {
				t.Errorf("%+v, cut at %d of %d: %v", opts, n, len(whole), err)
			}
			if err != nil {
				wantCorrupt(t, err)
			}
			if between := n == len(s) || n == len(s)+len(b); between && !strings.Contains(err.Error(), "without its end marker") {
				t.Errorf("%+v, cut at %d: %v", opts, n, err)
			}
		}
	}
	legacy := append(stream(s[4:], b[4:])[:len(s)+len(b)-8], 0, 0, 0, 0) // before 0.15
	for what, c := range map[string]struct {
		in []byte
		ok bool
	}{
		"zeros behind":    {append(bytes.Clone(whole), 0, 0, 0, 0), true},
		"bytes behind":    {append(bytes.Clone(whole), 0, 1), false},
		"a second stream": {append(bytes.Clone(whole), whole...), false},
		"no markers":      {legacy, true},
		"two schemas":     {stream(s, s, b), false},
		"a file":          {append([]byte("ARROW1\x00\x00"), whole...), false},
		"nothing":         {nil, false},
		"only an end":     {stream(), false},
		"text":            {[]byte("id,name\n1,x\n"), false},
	} {
		_, err := walk(c.in, true, nil)
		if c.ok != (err == nil) {
			t.Errorf("%s: %v", what, err)
		}
		if err != nil {
			wantCorrupt(t, err)
		}
	}
	// A claimed body that is missing is not allocated.
	huge := rawBatch{nodes: [][2]int64{{1 << 30, 0}}, bufs: [][2]int64{{0, 0}, {0, 4 << 30}}, body: make([]byte, 4<<20)}
	msg := huge.message(1<<30, -1, false)
	binary.LittleEndian.PutUint64(msg[bytes.Index(msg, binary.LittleEndian.AppendUint64(nil, 4<<20)):], 4<<30)
	peak := &peakAllocator{Allocator: memory.NewGoAllocator()}
	_, err := walk(stream(s, msg), true, peak)
	wantCorrupt(t, err)
	if peak.peak > 16<<20 || peak.peak < 1<<20 {
		t.Errorf("%d bytes at once", peak.peak)
	}
}

// The claimed size of compressed buffers is checked before it is allocated.
func TestCompressedClaims(t *testing.T) {
	good := rawBatch{zstd: true}
	good.add(ints(1, 2, 3))
	prefix := binary.LittleEndian.AppendUint64(nil, 12)
	for claim, want := range map[int64]error{
		12: nil, 13: fault.ErrCorrupt, 11: fault.ErrCorrupt, 0: fault.ErrCorrupt, -2: fault.ErrCorrupt,
		-1: nil, 1 << 20: fault.ErrCorrupt, 1 << 40: fault.ErrUnsupported, -1 << 63: fault.ErrCorrupt, maxBuffer + 1: fault.ErrUnsupported,
	} {
		b := rawBatch{zstd: true, nodes: good.nodes, bufs: good.bufs, body: bytes.Clone(good.body)}
		binary.LittleEndian.PutUint64(b.body[bytes.Index(b.body, prefix):], uint64(claim))
		peak := &peakAllocator{Allocator: memory.NewGoAllocator()}
		_, err := walk(stream(schemaMessage(i32), b.message(3, -1, false)), true, peak)
		if !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("claim of %d: %v, want %v", claim, err, want)
		}
		if peak.peak > 2<<20 {
			t.Errorf("claim of %d: %d bytes at once", claim, peak.peak)
		}
	}
	// Many buffers, each of them small enough.
	u := unpacker{codec: codecZstd}
	for i := range 6 {
		err := u.allow(fault.At{}, 200<<20, 1<<20)
		if i < 5 && err != nil {
			t.Errorf("buffer %d: %v", i, err)
		} else if i == 5 {
			wantUnsupported(t, err)
		}
	}
}

// Nodes and buffers that do not fit the schema.
func TestBadHeaders(t *testing.T) {
	for what, b := range map[string]rawBatch{
		"no nodes":         {bufs: [][2]int64{{0, 0}, {0, 8}}},
		"too many nodes":   {nodes: [][2]int64{{1, 0}, {1, 0}}, bufs: [][2]int64{{0, 0}, {0, 8}}},
		"too many buffers": {nodes: [][2]int64{{1, 0}}, bufs: [][2]int64{{0, 0}, {0, 4}, {0, 4}}},
		"too few buffers":  {nodes: [][2]int64{{1, 0}}, bufs: [][2]int64{{0, 0}}},
		"other length":     {nodes: [][2]int64{{2, 0}}, bufs: [][2]int64{{0, 0}, {0, 8}}},
		"negative length":  {nodes: [][2]int64{{-1, 0}}, bufs: [][2]int64{{0, 0}, {0, 8}}},
		"negative nulls":   {nodes: [][2]int64{{1, -1}}, bufs: [][2]int64{{0, 0}, {0, 8}}},
		"more nulls":       {nodes: [][2]int64{{1, 2}}, bufs: [][2]int64{{0, 8}, {0, 8}}},
		"buffer outside":   {nodes: [][2]int64{{1, 0}}, bufs: [][2]int64{{0, 0}, {8, 8}}},
		"negative offset":  {nodes: [][2]int64{{1, 0}}, bufs: [][2]int64{{0, 0}, {-8, 8}}},
		"negative size":    {nodes: [][2]int64{{1, 0}}, bufs: [][2]int64{{0, 0}, {0, -8}}},
		"offset overflows": {nodes: [][2]int64{{1, 0}}, bufs: [][2]int64{{0, 0}, {1<<63 - 4, 8}}},
		"overlapping":      {nodes: [][2]int64{{1, 1}}, bufs: [][2]int64{{0, 8}, {0, 8}}},
	} {
		b.body = make([]byte, 8)
		_, err := walk(stream(schemaMessage(i32), b.message(1, -1, false)), true, nil)
		if !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Lengths without any bytes.
	for n, want := range map[int64]error{maxUnbacked: nil, maxUnbacked + 1: fault.ErrUnsupported, 1 << 62: fault.ErrUnsupported} {
		b := rawBatch{nodes: [][2]int64{{n, n}}}
		if _, err := walk(stream(schemaMessage(arrow.Null), b.message(n, -1, false)), true, nil); !errors.Is(err, want) {
			t.Errorf("%d NULLs: %v", n, err)
		}
	}
	if _, err := walk(stream(schemaMessage(), (&rawBatch{}).message(1<<40, -1, false)), true, nil); !errors.Is(err, fault.ErrUnsupported) {
		t.Error(err)
	}
}

// Where buffers without bytes lie means nothing, and gaps are padding.
func TestEmptyBuffers(t *testing.T) {
	b := rawBatch{nodes: [][2]int64{{2, 0}}, bufs: [][2]int64{{1 << 40, 0}, {8, 8}}, body: append(make([]byte, 8), le32(4, 5).Bytes()...)}
	for _, off := range []int64{0, 3, 16, -1, 1 << 40} {
		b.bufs[0][0] = off
		tab, err := openBytes(stream(schemaMessage(i32), b.message(2, -1, false)), true, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := read(tab); err != nil || fmt.Sprint(got) != "[4 5]" {
			t.Errorf("empty at %d: %v, %v", off, got, err)
		}
	}
}

var errStorage = errors.New("storage is gone")

// A storage error is not reported as corrupt input.
func TestStorageError(t *testing.T) {
	rec := sample(rand.New(rand.NewPCG(1, 1)), memory.DefaultAllocator, arrow.NewSchema(oddFields(), nil), 3)
	b := encode(t, true, WriterOptions{}, rec)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	for n := 0; n < len(b)-8; n += 3 {
		open := func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(errStorage))), nil
		}
		tab, err := OpenStream(open, "x", mem, StreamOptions{})
		if err == nil {
			_, err = read(tab)
		}
		if !errors.Is(err, errStorage) || errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
	b = encode(t, false, WriterOptions{}, rec)
	for fail := range 40 {
		calls := 0
		r := readerAt(func(p []byte, off int64) (int, error) {
			if calls++; calls > fail {
				return 0, errStorage
			}
			return bytes.NewReader(b).ReadAt(p, off)
		})
		tab, err := OpenFile(0, r, int64(len(b)), "x", mem)
		if err == nil {
			_, err = read(tab)
			tab.Close()
		}
		if calls > fail && (!errors.Is(err, errStorage) || errors.Is(err, fault.ErrCorrupt)) {
			t.Errorf("at call %d: %v", fail, err)
		}
	}
}

type readerAt func([]byte, int64) (int, error)

func (f readerAt) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

// Groups can be read in any order from any goroutine.
func TestConcurrent(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	rec := sample(rand.New(rand.NewPCG(1, 1)), memory.DefaultAllocator, arrow.NewSchema(oddFields(), nil), 20)
	recs := []arrow.Record{rec, rec, rec, rec}
	b := encode(t, false, WriterOptions{Zstd: true}, recs...)
	tab, err := openBytes(b, false, mem)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	var wg sync.WaitGroup
	for g := range 4 {
		for range 3 {
			wg.Go(func() {
				if n := tab.GroupRows(g); n != 20 {
					t.Errorf("%d rows", n)
				}
				for got, err := range tab.Read(context.Background(), g, nil) {
					if err != nil || !sameRecord(got, rec) {
						t.Errorf("group %d: %v", g, err)
					}
				}
			})
		}
	}
	wg.Wait()
}

func TestOnceAndContext(t *testing.T) {
	rec := sample(rand.New(rand.NewPCG(1, 1)), memory.DefaultAllocator, arrow.NewSchema(wideFields(), nil), 3)
	b := encode(t, true, WriterOptions{}, rec, rec, rec)
	opened, closed := 0, 0
	open := func() (io.ReadCloser, error) {
		opened++
		return closer{bytes.NewReader(b), &closed}, nil
	}
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	tab, err := OpenStream(open, "-", mem, StreamOptions{Once: true})
	if err != nil || opened != 1 || closed != 0 {
		t.Fatal(err, opened, closed)
	}
	if got, err := read(tab); err != nil || len(got) != 9 || opened != 1 || closed != 1 {
		t.Error(got, err, opened, closed)
	}
	if _, err := read(tab); err == nil {
		t.Error("read twice")
	}
	tab, _ = OpenStream(open, "-", mem, StreamOptions{Once: true})
	if tab.Close(); closed != 2 {
		t.Error("not closed")
	}
	tab, err = OpenStream(open, "a", mem, StreamOptions{Size: int64(len(b))})
	if err != nil || tab.NumGroups() != 1 || tab.GroupRows(0) != -1 || tab.GroupBytes(0) != int64(len(b)) {
		t.Error(err, tab)
	}
	for range tab.Read(context.Background(), 0, nil) {
		break // must not leak
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	for _, err := range tab.Read(ctx, 0, nil) {
		if n++; n == 2 && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		cancel()
	}
	if opened != closed {
		t.Errorf("opened %d times, closed %d", opened, closed)
	}
	b = encode(t, true, WriterOptions{Metadata: map[string]string{"now": "another"}}, rec)
	if _, err := read(tab); !errors.Is(err, fault.ErrMismatch) {
		t.Error(err)
	}
}

type closer struct {
	io.Reader
	n *int
}

func (c closer) Close() error { *c.n++; return nil }

// uuidType is an extension type for tests.
type uuidType struct{ arrow.ExtensionBase }

type uuidArray struct{ array.ExtensionArrayBase }

func (*uuidType) ArrayType() reflect.Type { return reflect.TypeOf(uuidArray{}) }
func (*uuidType) ExtensionName() string   { return "test.uuid" }
func (*uuidType) Serialize() string       { return "v1" }
func (*uuidType) String() string          { return "uuid" }
func (t *uuidType) ExtensionEquals(o arrow.ExtensionType) bool {
	return o.ExtensionName() == t.ExtensionName()
}
func (*uuidType) Deserialize(dt arrow.DataType, data string) (arrow.ExtensionType, error) {
	if data != "v1" {
		return nil, errors.New("another version")
	}
	return &uuidType{arrow.ExtensionBase{Storage: dt}}, nil
}

// Registered extension types are kept; unknown ones become their storage type and
// keep their metadata.
func TestExtension(t *testing.T) {
	dt := &uuidType{arrow.ExtensionBase{Storage: &arrow.FixedSizeBinaryType{ByteWidth: 2}}}
	storage := array.NewData(dt, 2, []*memory.Buffer{bits(1), bits(1, 2, 3, 4)}, nil, 1, 0)
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{field1("u", dt), field1("l", arrow.ListOf(dt))}, nil), []arrow.Array{
		array.MakeFromData(storage),
		array.MakeFromData(array.NewData(arrow.ListOf(dt), 2, []*memory.Buffer{nil, le32(0, 1, 2)}, []arrow.ArrayData{storage}, 0, 0)),
	}, 2)
	b := encode(t, false, WriterOptions{}, rec)
	tab, err := openBytes(b, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := tab.Schema().Field(0)
	if f.Type.ID() != arrow.FIXED_SIZE_BINARY || f.Metadata.FindKey(extensionName) < 0 {
		t.Errorf("unknown: %v", f)
	}
	if got, err := read(tab); err != nil || fmt.Sprint(got) != "[AQI= (null)]" {
		t.Error(got, err)
	}
	if err := arrow.RegisterExtensionType(dt); err != nil {
		t.Fatal(err)
	}
	defer arrow.UnregisterExtensionType(dt.ExtensionName())
	compare(t, b, false, []arrow.Record{rec})
	var bad bytes.Buffer
	s := arrow.NewSchema([]arrow.Field{{Name: "u", Type: i32, Metadata: arrow.NewMetadata([]string{extensionName}, []string{"test.uuid"})}}, nil)
	ipc.NewWriter(&bad, ipc.WithSchema(s)).Close()
	_, err = openBytes(bad.Bytes(), true, nil)
	wantUnsupported(t, err)
}
