package arrowipc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// feather017 is a file that Arrow 0.17.0 compressed: a column a of 0 to 4.
const feather017 = "testdata/arrow0.17-lz4.feather"

// Arrow 0.17 named the codec in the metadata of messages, which mean nothing in
// later versions.
func TestExperimentalCompression(t *testing.T) {
	b, err := os.ReadFile(feather017)
	if err != nil {
		t.Fatal(err)
	}
	same := func(what string, b []byte, stream bool, want string) {
		t.Helper()
		tab, err := openBytes(b, stream, nil)
		if err != nil {
			t.Fatal(what, err)
		}
		defer tab.Close()
		if err := tab.Check(); err != nil {
			t.Error(what, err)
		}
		if got, err := read(tab); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v, %v, want %s", what, got, err, want)
		}
	}
	same("a file of 0.17", b, false, "[0 1 2 3 4]")
	same("as a stream", bytes.Clone(b[fileHead:len(b)-int(b[len(b)-fileTail])-fileTail]), true, "[0 1 2 3 4]")

	const key = "ARROW:experimental_compression"
	for codec, zstd := range map[string]bool{"ZSTD": true, "zstd": true, "UNCOMPRESSED": false} {
		for _, dt := range []arrow.DataType{i32, wordDict} {
			out := [][]byte{schemaMessage(dt)}
			if dt == arrow.DataType(wordDict) {
				d := rawBatch{zstd: zstd, keys: []string{key, codec}}
				d.add(words("0", "17"))
				out = append(out, d.message(2, 0, false))
			}
			b := rawBatch{zstd: zstd, keys: []string{"k", "v", key, codec}}
			b.add(raw{dt: dt, n: 2, bufs: []*memory.Buffer{nil, le32(1, 0)}}.data())
			want := "[1 0]"
			if len(out) == 2 {
				want = "[17 0]"
			}
			same(codec, stream(append(out, b.message(2, -1, false))...), true, want)
		}
	}
	plain := rawBatch{keys: []string{key, "ZSTD", "ARROW:experimental_order", "x"}}
	plain.add(ints(7))
	a := takeApart(stream(schemaMessage(i32), plain.message(1, -1, false)), true)
	a.messages[1].at(false, messageVersion)[0] = metadataV5
	same("the key in V5", a.bytes(), true, "[7]")
}

// oldSeeds returns inputs as older versions wrote them.
func oldSeeds(t testing.TB, stream bool) (out [][]byte) {
	if !stream {
		b, err := os.ReadFile(feather017)
		if err != nil {
			t.Fatal(err)
		}
		return [][]byte{b}
	}
	rec := sample(rand.New(rand.NewPCG(15, 16)), memory.DefaultAllocator, arrow.NewSchema(oddFields(), nil), 9)
	whole := encode(t, true, WriterOptions{}, rec)
	out = append(out, bytes.ReplaceAll(whole, []byte{0xFF, 0xFF, 0xFF, 0xFF}, nil))
	for _, codec := range []string{"ZSTD", "LZ4"} {
		b := rawBatch{zstd: true, keys: []string{"ARROW:experimental_compression", codec}}
		b.add(ints(1, 2, 3))
		out = append(out, bytes.Join([][]byte{schemaMessage(i32), b.message(3, -1, false), bytes.Repeat([]byte{0}, 4)}, nil))
	}
	return out
}
