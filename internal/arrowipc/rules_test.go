package arrowipc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
)

// notChecked are rules of the format that are not checked, and why.
var notChecked = map[string]string{
	"padding is zero":                             "no value lies there, and writers leave there what was in memory",
	"short views are padded with zeros":           "as above",
	"messages of a stream have a multiple of 8":   "their lengths say where the next one begins, and pyarrow reads them",
	"a file holds a stream from byte 8":           "Polars writes its first message without a length",
	"a file has an end marker before its footer":  "the footer says where messages are; older writers omit it",
	"offsets begin at 0":                          "recommended only: slices of arrays begin later",
	"children are as long as their struct":        "longer ones are cut: writers of slices leave them so",
	"offsets of a dense union rise":               "each says alone where its value is",
	"a field that is not nullable has no NULLs":   "the bitmap decides, as in other readers",
	"a view column has one count of buffers each": "too many counts change nothing: all buffers must be used",
	"keys of a map are sorted, and differ":        "entries are returned as they are",
	"decimals have at most their precision":       "values are compared as numbers",
	"times lie within a day, date64 on days":      "as above",
	"custom metadata has known keys":              "the format lets programs add theirs; those of ARROW:experimental_ are refused",
}

// ruled is a change of a valid input, and the error that it causes.
type ruled struct {
	rule  string
	in    []byte
	want  string
	kind  error // nil: fault.ErrCorrupt
	check bool  // it is found by Check alone
}

// at returns the number in a slot of a message's table: of the message itself, or of
// its header.
func (m *framed) at(header bool, slot int) []byte {
	table := rootOf(m.meta)
	if header {
		at := slotOf(m.meta, table, messageHeader)
		table = at + int(binary.LittleEndian.Uint32(m.meta[at:]))
	}
	return m.meta[slotOf(m.meta, table, slot):]
}

// TestRules reads an input for each rule of the format that a reader can check,
// which breaks this rule alone. TestBadArrays, TestBadHeaders, TestDictionaries and
// TestCompressedClaims have those of arrays, headers, dictionaries and compression;
// notChecked has the others.
func TestRules(t *testing.T) {
	for _, c := range append(append(streamRules(t), fileRules(t)...), checkRules()...) {
		t.Run(c.rule, func(t *testing.T) {
			stream := !bytes.HasPrefix(c.in, []byte(magic[:3]))
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			for _, check := range []bool{false, true} {
				err := checked(c.in, stream, check, mem)
				switch {
				case c.check && !check:
					if err != nil {
						t.Error(err)
					}
				case c.want == "":
					if err != nil {
						t.Errorf("check=%v: %v", check, err)
					}
				case err == nil || !strings.Contains(err.Error(), c.want):
					t.Errorf("check=%v: got %v, want %q", check, err, c.want)
				case c.kind == nil:
					wantCorrupt(t, err)
				case !errors.Is(err, c.kind):
					t.Error(err)
				}
			}
		})
	}
	for rule, why := range notChecked {
		if why == "" {
			t.Errorf("%s: no reason", rule)
		}
	}
}

// checked reads all records, with Check or without.
func checked(b []byte, stream, check bool, mem memory.Allocator) error {
	tab, err := openBytes(b, stream, mem)
	if err != nil {
		return err
	}
	defer tab.Close()
	if check {
		if err := tab.Check(); err != nil {
			return err
		}
	}
	for g := range tab.NumGroups() {
		for _, err := range tab.Read(context.Background(), g, nil) {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// streamRules returns streams that break a rule of messages or of their headers.
func streamRules(t *testing.T) (out []ruled) {
	unsupported := fault.ErrUnsupported
	s := schemaMessage(i32)
	batch := rawBatch{}
	batch.add(raw{dt: i32, n: 3, nulls: 1, bufs: []*memory.Buffer{bits(0b101), le32(1, 2, 3)}}.data())
	whole := stream(s, batch.message(3, -1, false))
	changed := func(rule, want string, kind error, change func(schema, batch *framed)) {
		a := takeApart(whole, true)
		change(&a.messages[0], &a.messages[1])
		out = append(out, ruled{rule: rule, in: a.bytes(), want: want, kind: kind})
	}
	changed("nothing is changed", "", nil, func(_, _ *framed) {})
	changed("a flatbuffer lies within its bytes", "with a table of 4 bytes", nil, func(_, b *framed) { binary.LittleEndian.PutUint32(b.meta, 1<<20) })
	changed("the version is known", "metadata version 9", nil, func(_, b *framed) { b.at(false, messageVersion)[0] = 9 })
	for old := range byte(3) {
		changed("the layout of V"+string('1'+rune(old)), "Arrow metadata version V"+string('1'+rune(old))+", older than V4", unsupported, func(s, _ *framed) { s.at(false, messageVersion)[0] = old })
	}
	changed("the kind is known", "message of kind 9", nil, func(_, b *framed) { b.at(false, messageType)[0] = 9 })
	for kind, name := range map[byte]string{4: "tensor", 5: "sparse tensor"} {
		changed("a "+name, "tensor message", unsupported, func(_, b *framed) { b.at(false, messageType)[0] = kind })
	}
	changed("a body has a length", "body length -1", nil, func(_, b *framed) { binary.LittleEndian.PutUint64(b.at(false, messageBody), 1<<64-1) })
	changed("a body is whole", "the input ends inside", nil, func(_, b *framed) { binary.LittleEndian.PutUint64(b.at(false, messageBody), 1<<20) })
	changed("rows are counted", "batch of -1 rows", nil, func(_, b *framed) { binary.LittleEndian.PutUint64(b.at(true, batchLength), 1<<64-1) })
	changed("columns have the batch's rows", "3 values in a batch of 2 rows", nil, func(_, b *framed) { binary.LittleEndian.PutUint64(b.at(true, batchLength), 2) })

	header := func(rule, want string, change func(b *rawBatch)) {
		b := rawBatch{nodes: [][2]int64{{3, 1}}, bufs: [][2]int64{{0, 1}, {8, 12}}, body: bytes.Clone(batch.body)}
		change(&b)
		out = append(out, ruled{rule: rule, in: stream(s, b.message(3, -1, false)), want: want})
	}
	header("nodes of the schema", "the batch has 2 nodes and 2 buffers, its schema 1 and 2", func(b *rawBatch) { b.nodes = append(b.nodes, b.nodes[0]) })
	header("buffers of the schema", "the batch has 1 nodes and 3 buffers, its schema 1 and 2", func(b *rawBatch) { b.bufs = append(b.bufs, [2]int64{24, 0}) })
	header("NULLs are values", "4 NULLs among 3 values", func(b *rawBatch) { b.nodes[0][1] = 4 })
	header("NULLs are those of the bitmap", "1 NULLs in the bitmap, 2 in the batch's header", func(b *rawBatch) { b.nodes[0][1] = 2 })
	header("a buffer lies in its body", "buffer 1 lies outside its body of 24 bytes", func(b *rawBatch) { b.bufs[1][0] = 16 })
	header("a buffer is aligned", "where buffer 1 begins in its body: want a multiple of 8, got 9", func(b *rawBatch) { b.bufs[1][0] = 9 })
	header("a bitmap is aligned", "where buffer 0 begins in its body: want a multiple of 8, got 1", func(b *rawBatch) { b.bufs[0][0] = 1 })
	header("buffers do not overlap", "buffer 1 begins at 0, before the end of another at 1", func(b *rawBatch) { b.bufs[1][0] = 0 })
	header("buffers have the order of the schema", "buffer 1 begins at 0, before the end of another at 17", func(b *rawBatch) { b.bufs = [][2]int64{{16, 1}, {0, 12}} })
	header("values fit their buffer", "a buffer of 8 bytes where 3 values need 12", func(b *rawBatch) { b.bufs[1][1] = 8 })

	views := rawBatch{nodes: [][2]int64{{1, 0}}, bufs: [][2]int64{{0, 0}, {0, 16}}, body: make([]byte, 16)}
	for codec, want := range map[string]string{"SNAPPY": `compression codec "SNAPPY"`, "": `compression codec ""`} {
		b := rawBatch{keys: []string{"k", "v", "ARROW:experimental_compression", codec}}
		b.add(ints(1))
		out = append(out, ruled{rule: "V4's codec " + codec, in: stream(s, b.message(1, -1, false)), want: want, kind: unsupported})
	}
	other := rawBatch{keys: []string{"ARROW:experimental_order", "1"}}
	other.add(ints(1))
	codec, method := rawBatch{zstd: true, odd: [2]int8{6, 0}}, rawBatch{zstd: true, odd: [2]int8{0, 1}}
	codec.add(ints(1))
	method.add(ints(1))
	return append(out,
		ruled{rule: "another key of V4", in: stream(s, other.message(1, -1, false)), want: `a message with "ARROW:experimental_order"`, kind: unsupported},
		ruled{rule: "the codec is known", in: stream(s, codec.message(1, -1, false)), want: "compression codec 7", kind: unsupported},
		ruled{rule: "the method is known", in: stream(s, method.message(1, -1, false)), want: "compression method 1", kind: unsupported},
		ruled{rule: "a column of views has its count", in: stream(schemaMessage(arrow.BinaryTypes.StringView), views.message(1, -1, false)), want: "too few counts of view buffers"},
		ruled{rule: "known features", in: stream(featuredSchema(0, 0, 1, 2), batch.message(3, -1, false))},
		ruled{rule: "a schema has no body", in: stream(featuredSchema(8), make([]byte, 8)), want: "not a schema"},
		ruled{rule: "features are known", in: stream(featuredSchema(0, 1, 3)), want: "feature 3 of the Arrow format", kind: unsupported},
		ruled{rule: "the first message is a schema", in: stream(batch.message(3, -1, false)), want: "not a schema"},
		ruled{rule: "there is one schema", in: stream(s, s), want: "a second schema"},
		ruled{rule: "a stream has an end", in: whole[:len(whole)-8], want: "without its end marker"},
		ruled{rule: "a stream ends at its end", in: append(bytes.Clone(whole), s...), want: "bytes after the end"},
		ruled{rule: "a message is whole", in: whole[:len(s)+20], want: "the input ends inside a message"},
	)
}

// fileRules returns files that break a rule of the footer.
func fileRules(t *testing.T) (out []ruled) {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	b.AppendValues([]int64{1, 2, 3}, nil)
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{field1("k", arrow.PrimitiveTypes.Int64)}, nil), []arrow.Array{b.NewArray()}, 3)
	whole := encode(t, false, WriterOptions{}, rec, rec)
	end := len(whole) - fileTail
	footer := whole[end-int(binary.LittleEndian.Uint32(whole[end:])):]
	blocks := len(whole) - len(footer) + slotOf(footer, rootOf(footer), footerBatches)
	blocks += int(binary.LittleEndian.Uint32(whole[blocks:])) + 4
	change := func(rule, want string, fn func(b []byte) []byte) {
		out = append(out, ruled{rule: rule, in: fn(bytes.Clone(whole)), want: want})
	}
	add := func(at int, n int64) func([]byte) []byte {
		return func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[blocks+at:], binary.LittleEndian.Uint64(b[blocks+at:])+uint64(n))
			return b
		}
	}
	change("a file, unchanged", "", bytes.Clone)
	change("a file begins with its magic", "not an Arrow IPC file", func(b []byte) []byte { b[4] = 'x'; return b })
	change("a file ends with its magic", "cut off, or not finished", func(b []byte) []byte { return b[:len(b)-1] })
	change("a footer has a length", "the footer's length", func(b []byte) []byte { binary.LittleEndian.PutUint32(b[end:], uint32(end)); return b })
	change("a block lies in the file", "message 0 lies outside the file", add(0, 1<<20))
	change("a block is aligned", "message 0 is not aligned", add(0, 4))
	change("blocks do not overlap", "overlap", add(16, 8))
	change("a block is a message", "a block of", func(b []byte) []byte { return add(16, -8)(add(0, 8)(b)) })
	change("a block's metadata ends where its message does", "metadata of", func(b []byte) []byte { return add(16, -8)(add(8, 8)(b)) })
	change("a block's metadata has its message", "metadata of", add(8, -8))
	change("a block's body is the message's", "the footer and the message disagree", add(16, -8))
	schema := int64(fileHead) - int64(binary.LittleEndian.Uint64(whole[blocks:]))
	change("a block has the message's kind", "in a block of", func(b []byte) []byte { return add(8, -schema)(add(0, schema)(b)) })
	name := bytes.Index(whole, []byte("\x01\x00\x00\x00k\x00")) + 4
	change("both schemas are the same", "the schemas of the footer and of the first message differ", func(b []byte) []byte { b[name] = 'l'; return b })
	out[len(out)-1].check = true
	count := blocks - 4
	drop := func(n byte, move bool) func(b []byte) []byte {
		return func(b []byte) []byte {
			if b[count] != 2 {
				t.Fatal("no two blocks")
			}
			if b[count] = n; move {
				copy(b[blocks:], b[blocks+24:blocks+48])
			}
			return b
		}
	}
	change("the last batch is in the footer", "belong to no message of the footer", drop(1, false))
	out[len(out)-1].check = true
	change("all batches are in the footer", "belong to no message of the footer", drop(0, false))
	out[len(out)-1].check = true
	change("the first batch is in the footer", "belong to no message of the footer", drop(1, true))
	out[len(out)-1].check = true
	change("a first message without a length, by Polars", "", func(b []byte) []byte { b[name] = 'l'; clear(b[fileHead : fileHead+4]); return b })
	change("no first message with a schema, by JavaScript", "", func(b []byte) []byte {
		b = add(24, schema)(add(0, schema)(b))
		return slices.Delete(b, fileHead, fileHead-int(schema))
	})
	return out
}

// checkRules returns inputs that Check alone refuses.
func checkRules() (out []ruled) {
	for _, c := range []struct {
		rule string
		raw  raw
		want string
	}{
		{"no NULLs, and none in the bitmap", raw{dt: i32, n: 3, bufs: []*memory.Buffer{bits(0b111), le32(1, 2, 3)}}, ""},
		{"no NULLs, and one in the bitmap", raw{dt: i32, n: 3, bufs: []*memory.Buffer{bits(0b101), le32(1, 2, 3)}}, "1 NULLs in the bitmap, 0 in the batch's header"},
		{"no NULLs, and a short bitmap", raw{dt: i32, n: 9, bufs: []*memory.Buffer{bits(0xFF), le32(1, 2, 3, 4, 5, 6, 7, 8, 9)}}, "a buffer of 1 bytes"},
		{"text is UTF-8", raw{dt: arrow.BinaryTypes.String, n: 2, bufs: []*memory.Buffer{nil, le32(0, 1, 3), bits('a', 'b', 0xC3)}}, "value 1 is not UTF-8"},
		{"text at NULL", raw{dt: arrow.BinaryTypes.String, n: 2, nulls: 1, bufs: []*memory.Buffer{bits(1), le32(0, 1, 3), bits('a', 'b', 0xC3)}}, ""},
		{"a character is in one value", raw{dt: arrow.BinaryTypes.String, n: 2, bufs: []*memory.Buffer{nil, le32(0, 1, 2), bits(0xC3, 0xBC)}}, "value 0 is not UTF-8"},
		{"binary is not text", raw{dt: arrow.BinaryTypes.Binary, n: 1, bufs: []*memory.Buffer{nil, le32(0, 1), bits(0xFF)}}, ""},
		{"views are UTF-8", raw{dt: arrow.BinaryTypes.StringView, n: 1, bufs: []*memory.Buffer{nil, bits(append([]byte{1, 0, 0, 0, 0xFF}, make([]byte, 11)...)...)}}, "value 0 is not UTF-8"},
		{"values of a dictionary are UTF-8", raw{dt: wordDict, n: 1, bufs: []*memory.Buffer{nil, le32(0)}, dict: words("\xFF")}, "value 0 is not UTF-8"},
	} {
		for name, zstd := range map[string]bool{"": false, ", compressed": true} {
			out = append(out, ruled{rule: c.rule + name, in: stream(schemaMessage(c.raw.dt), batchMessages(c.raw, zstd)), want: c.want, check: c.want != ""})
		}
	}
	return out
}
