package filters

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

// seedFiles adds the golden files, the vectors, and uncompressed files of both
// geometries, which can be used in place.
func seedFiles(f *testing.F) {
	goldens, _ := filepath.Glob(goldenDir + "/*.bjf")
	vectors, _ := filepath.Glob(vectorDir + "/*")
	if len(goldens) == 0 || len(vectors) == 0 {
		f.Fatal("no seeds")
	}
	for _, path := range append(goldens, vectors...) {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if _, file, ok := bytes.Cut(b, []byte("\n\n")); ok && bytes.HasPrefix(b, []byte("expect: ")) {
			b = file
		}
		f.Add(b)
	}
	for _, g := range bloom.Geometries() {
		f.Add(encode(f, splitFilter(f, g, 3, keysFrom(1, 9)), Options{Uncompressed: true}))
		f.Add(encode(f, splitFilter(f, g, 2*chunkBytes/g.BlockBytes()+1, keysFrom(1, 9)), Options{Uncompressed: true})[:5000])
	}
}

// FuzzDecode checks that no bytes make the decoder panic, and that every file it
// accepts is canonical: writing the filter again gives the same file, except for
// freedoms of zstd.
func FuzzDecode(f *testing.F) {
	seedFiles(f)
	f.Fuzz(func(t *testing.T, b []byte) { oneForm(t, b) })
}

// FuzzDecodeBehindChecksums is FuzzDecode for files with correct checksums, which a
// fuzzer does not find by itself.
func FuzzDecodeBehindChecksums(f *testing.F) {
	seedFiles(f)
	f.Fuzz(func(t *testing.T, b []byte) { oneForm(t, repair(b)) })
}

// FuzzLoadMapped checks that using a file in place gives the same filter, or the
// same error, as reading it.
func FuzzLoadMapped(f *testing.F) {
	seedFiles(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, file := range [][]byte{b, repair(b)} {
			if g, err := decodeBoth(t, file, Limits{MaxBytes: 1 << 22, Counters: true}); err == nil {
				if flat := encode(t, g, Options{Uncompressed: true}); g.Kind() == KindBloom {
					if h := header(t, flat, "flat"); !h.mappable() {
						t.Fatal("an uncompressed file cannot be used in place")
					}
					if _, err := decodeBoth(t, flat, Limits{}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	})
}

func oneForm(t *testing.T, b []byte) {
	h, err := DecodeHeader(bytes.NewReader(b), int64(len(b)), "fuzz")
	unpanicked(t, err)
	if err != nil {
		return
	}
	f, err := h.Load(Limits{MaxBytes: 1 << 22, Counters: true})
	unpanicked(t, err)
	if err != nil {
		return
	}
	d, err := f.Digest()
	if err != nil || d != h.Digest() {
		t.Fatalf("digest %x, header %x, error %v", d, h.Digest(), err)
	}
	if bits, err := h.Load(Limits{MaxBytes: 1 << 22}); err != nil || bits.FPR() != f.FPR() || bits.Bloom().Params() != f.Bloom().Params() {
		t.Fatalf("loaded without counters: %v", err)
	}
	again := encode(t, f, Options{Uncompressed: true})
	if h.Version != formatVersion || len(h.Skipped) > 0 {
		return // other bytes are not kept, by design
	}
	if h.Contiguous && !bytes.Equal(again, b) {
		t.Fatal("two files of one filter")
	}
	if !bytes.Equal(again[:len(h.head)], h.head) {
		t.Fatal("two headers of one filter")
	}
}
