package parquet_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// small returns the files of testdata by name.
func small(t testing.TB) map[string][]byte {
	paths, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d files in testdata, %v", len(paths), err)
	}
	files := map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(p)] = b
	}
	return files
}

func open(b []byte, name string) (*parquet.File, error) {
	return parquet.Open(nil, strings.NewReader(string(b)), int64(len(b)), name)
}

// measured reports the first error in a column chunk, which it reads in batches.
func measured(ctx context.Context, f *parquet.File, group, leaf int) error {
	r := f.NewRowReader(ctx, group, []int{leaf}, nil)
	defer r.Close()
	r.Rows, r.Bytes, r.Again, r.Keep = 1000, 1<<20, 1<<20, 1<<30
	for r.Left() > 0 {
		if _, err := r.Next(func(n int) error {
			rows := 0
			err := r.Pages(ctx, func(_ int, p *parquet.Page, dict *parquet.Dictionary) error {
				rows += p.Rows
				return r.Charge(&f.Leaves[leaf], p, dict)
			})
			if err == nil && rows != n {
				err = fmt.Errorf("%d rows in a batch of %d", rows, n)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// check validates all of a file.
func check(b []byte, name string) error {
	f, err := open(b, name)
	if err != nil {
		return err
	}
	for g := range f.RowGroups {
		for l := range f.Leaves {
			if err := measured(context.Background(), f, g, l); err != nil {
				return err
			}
			if _, _, err := f.BloomFilter(g, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// typed reports whether err is of a known kind and not a recovered panic.
func typed(err error) bool {
	return !errors.Is(err, panics.ErrRecovered) && (errors.Is(err, fault.ErrCorrupt) || errors.Is(err, fault.ErrUnsupported))
}

func TestSmallFilesAreValid(t *testing.T) {
	for name, b := range small(t) {
		if err := check(b, name); err != nil {
			t.Error(err)
		}
	}
}

// Flipped bits and truncations give typed errors or none, and no panic.
func TestMutations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, whole := range small(t) {
		footer := len(whole) - 8 - int(binary.LittleEndian.Uint32(whole[len(whole)-8:]))
		for i := range 900 {
			b := append([]byte(nil), whole...)
			part := b[:footer]
			if i%3 == 0 {
				part = b
			}
			for range 1 + rng.IntN(3) {
				part[rng.IntN(len(part))] ^= 1 << rng.IntN(8)
			}
			if err := check(b, name); err != nil && !typed(err) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for n := 0; n < len(whole); n += 1 + len(whole)/100 {
			if err := check(whole[:n], name); !typed(err) {
				t.Fatalf("%s cut to %d bytes: %v", name, n, err)
			}
		}
	}
}

func TestChecksumNamesThePlace(t *testing.T) {
	places := map[string]bool{}
	for _, name := range []string{"rle-dict-snappy-checksum.parquet", "datapage_v1-snappy-compressed-checksum.parquet"} {
		b := small(t)[name]
		for i := 4; i < len(b)-12; i++ {
			m := append([]byte(nil), b...)
			m[i] ^= 4
			err := check(m, name)
			if err == nil {
				continue // not covered by a checksum
			}
			if place, _, ok := strings.Cut(err.Error(), ": corrupt: the page's checksum: want "); ok {
				places[place] = true
			}
		}
	}
	for _, want := range []string{
		"rle-dict-snappy-checksum.parquet: row group 1: column long_field", // in its dictionary
		"datapage_v1-snappy-compressed-checksum.parquet: row group 1: column a: page 1",
		"datapage_v1-snappy-compressed-checksum.parquet: row group 1: column b: page 2",
	} {
		if !places[want] {
			t.Errorf("no checksum error at %q, only at %v", want, places)
		}
	}
}

func footerFile(footer string) []byte {
	b := append([]byte("PAR1"), footer...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(footer)))
	return append(b, "PAR1"...)
}

func TestBadFooters(t *testing.T) {
	for name, c := range map[string]struct {
		b    []byte
		kind error
	}{
		"empty":           {nil, fault.ErrCorrupt},
		"not Parquet":     {[]byte("user_id\n1\n2\n3\n"), fault.ErrCorrupt},
		"encrypted":       {[]byte("PARE\x01\x00\x00\x00\x01\x00\x00\x00PARE"), fault.ErrUnsupported},
		"length beyond":   {[]byte("PAR1\x00\xff\xff\xff\x00PAR1"), fault.ErrCorrupt},
		"length 0":        {footerFile(""), fault.ErrCorrupt},
		"empty structure": {footerFile("\x00"), fault.ErrCorrupt},
		// version 1, then a schema list of 2^31-1 structures
		"huge list": {footerFile("\x15\x02\x19\xfc\xff\xff\xff\xff\x07" + strings.Repeat("\x00", 80)), fault.ErrCorrupt},
		// endlessly nested lists
		"deep":     {footerFile("\x19" + strings.Repeat("\x19", 4000)), fault.ErrCorrupt},
		"trailing": {footerFile("\x15\x02\x19\x1c\x48\x06schema\x15\x00\x00\x16\x00\x19\x0c\x00\x00\x00"), fault.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(c.b, "x")
			if !errors.Is(err, c.kind) {
				t.Errorf("want %v, got %v", c.kind, err)
			}
		})
	}
}

func TestFile(t *testing.T) {
	files := small(t)
	f, err := open(files["alltypes_plain.snappy.parquet"], "a")
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Leaves) != 11 || len(f.RowGroups) != 1 || f.RowGroups[0].Rows != 2 {
		t.Errorf("%d leaves, row groups %v", len(f.Leaves), f.RowGroups)
	}
	if l := f.Leaves[10]; l.Dotted != "timestamp_col" || l.MaxDef != 1 || l.MaxRep != 0 || l.Index != 10 {
		t.Errorf("leaf 10 is %+v", l)
	}
	n, err := open(files["nested_lists.snappy.parquet"], "n")
	if err != nil {
		t.Fatal(err)
	}
	if l := n.Leaves[0]; l.MaxRep != 3 || l.MaxDef != 7 {
		t.Errorf("nested leaf is %+v", l)
	}
	again, _ := open(files["alltypes_plain.snappy.parquet"], "b")
	if string(f.Fingerprint()) != string(again.Fingerprint()) || string(f.Fingerprint()) == string(n.Fingerprint()) {
		t.Error("the fingerprint does not identify the file")
	}
}

// The Bloom filters of the test files contain the words that they were built from.
func TestBloomFilter(t *testing.T) {
	salts := [8]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}
	for _, name := range []string{"data_index_bloom_encoding_stats.parquet", "data_index_bloom_encoding_with_length.parquet"} {
		f, err := open(small(t)[name], name)
		if err != nil {
			t.Fatal(err)
		}
		bits, ok, err := f.BloomFilter(0, 0)
		if err != nil || !ok || len(bits)%32 != 0 || len(bits) == 0 {
			t.Fatalf("%s: %d bytes, %v, %v", name, len(bits), ok, err)
		}
		has := func(s string) bool {
			h := xxhash.Sum64String(s)
			block := (h >> 32) * uint64(len(bits)/32) >> 32
			for i, salt := range salts {
				lane := binary.LittleEndian.Uint32(bits[32*block+4*uint64(i):])
				if lane>>(uint32(h)*salt>>27)&1 == 0 {
					return false
				}
			}
			return true
		}
		for _, w := range []string{"Hello", "This is", "a", "test", "are you", "the lazy"} {
			if !has(w) {
				t.Errorf("%s lacks %q", name, w)
			}
		}
		if has("certainly not") || has("of course not") {
			t.Errorf("%s has what it should not", name)
		}
	}
}

func TestCancelled(t *testing.T) {
	f, err := open(small(t)["alltypes_plain.snappy.parquet"], "x")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := measured(ctx, f, 0, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func FuzzFooter(f *testing.F) {
	for _, b := range small(f) {
		n := int(binary.LittleEndian.Uint32(b[len(b)-8:]))
		f.Add(b[len(b)-8-n : len(b)-8])
	}
	f.Fuzz(func(t *testing.T, footer []byte) {
		if _, err := open(footerFile(string(footer)), "x"); err != nil && !typed(err) {
			t.Fatal(err)
		}
	})
}

// FuzzPages replaces the pages before a valid footer.
func FuzzPages(f *testing.F) {
	names := []string{"alltypes_plain.snappy.parquet", "nested_lists.snappy.parquet", "datapage_v2.snappy.parquet",
		"rle_boolean_encoding.parquet", "lz4_raw_compressed.parquet", "nested_maps.snappy.parquet"}
	files := small(f)
	footerAt := func(b []byte) int { return len(b) - 8 - int(binary.LittleEndian.Uint32(b[len(b)-8:])) }
	for i, name := range names {
		b := files[name]
		f.Add(uint8(i), b[4:footerAt(b)])
	}
	f.Fuzz(func(t *testing.T, which uint8, pages []byte) {
		name := names[int(which)%len(names)]
		b := append([]byte(nil), files[name]...)
		copy(b[4:footerAt(b)], pages)
		if err := check(b, name); err != nil && !typed(err) {
			t.Fatal(err)
		}
	})
}
