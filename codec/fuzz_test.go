package codec

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// seedFiles adds the golden files and the vectors.
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
}

// FuzzDecode: no bytes make the decoder panic, and what it accepts has one
// form: written again it is the same file, but for what zstd is free to do.
func FuzzDecode(f *testing.F) {
	seedFiles(f)
	f.Fuzz(func(t *testing.T, b []byte) { oneForm(t, b) })
}

// FuzzDecodeBehindChecksums is FuzzDecode for files whose checksums are right,
// which no fuzzer guesses.
func FuzzDecodeBehindChecksums(f *testing.F) {
	seedFiles(f)
	f.Fuzz(func(t *testing.T, b []byte) { oneForm(t, repair(b)) })
}

func oneForm(t *testing.T, b []byte) {
	h, err := DecodeHeader(bytes.NewReader(b), int64(len(b)), "fuzz")
	if err != nil {
		return
	}
	f, err := h.Load(Limits{MaxBytes: 1 << 22})
	if err != nil {
		return
	}
	d, err := f.Digest()
	if err != nil || d != h.Digest() {
		t.Fatalf("digest %x, header %x, error %v", d, h.Digest(), err)
	}
	again := encode(t, f, Options{Uncompressed: true})
	if h.Version != formatVersion || len(h.Skipped) > 0 {
		return // other bytes are lost by design
	}
	if h.Contiguous && !bytes.Equal(again, b) {
		t.Fatal("two files of one filter")
	}
	if !bytes.Equal(again[:len(h.head)], h.head) {
		t.Fatal("two headers of one filter")
	}
}
