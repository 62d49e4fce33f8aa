package builds

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// textIDs are rows of IDs as text in several formats, in files of several ranges.
func textIDs(n int) (ids []uint64, files map[string]string) {
	r := rand.New(rand.NewPCG(1, 2))
	var lines, csv bytes.Buffer
	csv.WriteString("note,id\n")
	for i := range n {
		id := r.Uint64N(1 << 48)
		ids = append(ids, id)
		fmt.Fprintf(&lines, "%d%s", id, []string{"\n", "\r\n", "\n\n"}[i%3])
		fmt.Fprintf(&csv, []string{"\"a\n%[1]d\n\"\"\n\",%[2]d\n", "plain,\"%[2]d\"\n", "\"\n\n\",%[2]d\r\n", ",%[2]d\n"}[i%4], i, id)
	}
	packed := func(text []byte) string {
		var b bytes.Buffer
		w, _ := zstd.NewWriter(nil, zstd.WithZeroFrames(true))
		for i := 0; len(text) > 0; i++ {
			if i%5 == 0 { // frames without text
				b.Write(w.EncodeAll(nil, nil))
				b.Write(append(binary.LittleEndian.AppendUint32(nil, 0x184D2A50), 3, 0, 0, 0, 1, 2, 3))
			}
			size := min(1+r.IntN(200_000), len(text)) // wherever it ends
			b.Write(w.EncodeAll(text[:size], nil))
			text = text[size:]
		}
		return b.String()
	}
	var gz bytes.Buffer
	z := gzip.NewWriter(&gz)
	_, _ = z.Write(lines.Bytes())
	_ = z.Close()
	return ids, map[string]string{"a.csv": csv.String(), "b.ids.zst": packed(lines.Bytes()), "c.ids.gz": gz.String()}
}

func marshalled(s *exact.Set) []byte {
	negative, natural := s.Marshal()
	return slices.Concat(negative, natural)
}

// Shards of a text file hold each of its rows once, and together make the filter of one
// process.
func TestTextInShards(t *testing.T) {
	ids, files := textIDs(300_000)
	want := exact.New()
	want.Add(ids, true)
	for _, name := range []string{"a.csv", "b.ids.zst", "c.ids.gz"}[:cases.Count(1, 3, 3)] {
		content := files[name]
		t.Run(name, func(t *testing.T) {
			s := newStore()
			s.put(name, []byte(content))
			key := "id::int64"
			opts := Options{Key: key, Kind: codec.KindExact, Expect: uint64(len(ids)), Threads: 1}
			whole, rep := build(t, s, []string{name}, opts)
			if rep.Rows != int64(len(ids)) || !bytes.Equal(marshalled(whole.Exact()), marshalled(want)) {
				t.Fatalf("%d rows, %d distinct; want %d, %d", rep.Rows, rep.Distinct, len(ids), want.Len())
			}
			for _, n := range []uint32{2, 5}[:cases.Count(1, 2, 2)] {
				opts.Threads = 1 + int(n)%4
				var names []string
				held := map[bool]int{}
				for i := range n {
					opts.Shard = dataset.Shard{Index: i, Of: n}
					f, rep := build(t, s, []string{name}, opts)
					held[rep.Rows > 0]++
					part := fmt.Sprintf("part-%d-%d", n, i)
					s.put(part, encoded(t, f))
					names = append(names, part)
				}
				opts.Shard = dataset.Shard{}
				divided := !strings.HasPrefix(name, "c.")
				if divided && held[true] < 2 || !divided && held[true] != 1 {
					t.Errorf("%d of %d shards hold rows", held[true], n)
				}
				merged, err := MergeFiles(t.Context(), s, names, false, filters.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(encoded(t, merged), encoded(t, whole)) {
					t.Errorf("%d shards: another filter than that of one process", n)
				}
			}
		})
	}
}

// Partial filters of text that was divided in another way, such as by whole files, do
// not merge: rows might be missing.
func TestTextDivisionsDoNotMix(t *testing.T) {
	_, files := textIDs(300_000)
	s := newStore()
	s.put("a.csv", []byte(files["a.csv"]))
	opts := Options{Key: "id::int64", Expect: 1_000_000}
	var parts []*filters.Filter
	for i := range uint32(2) {
		opts.Shard = dataset.Shard{Index: i, Of: 2}
		f, _ := build(t, s, []string{"a.csv"}, opts)
		parts = append(parts, f)
	}
	if _, err := Merge(t.Context(), parts, false); err != nil {
		t.Fatal(err)
	}
	parts[1].Facts().Partial.Division = [32]byte{}
	_, err := Merge(t.Context(), parts, false)
	if !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), "division of the text into shards") {
		t.Error(err)
	}
}
