package spill

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// TestBytes: what was written is read back anywhere, from memory and from a file; memory
// needs no directory.
func TestBytes(t *testing.T) {
	for _, size := range []int{0, 1000, heldBytes, heldBytes + 1, 3*heldBytes + 5} {
		b := NewBytes("a test")
		var want []byte
		for i := 0; len(want) < size; i++ {
			part := bytes.Repeat([]byte{byte(i)}, min(7000+i, size-len(want)))
			want = append(want, part...)
			if _, err := b.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Flush(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
		if err != nil || !bytes.Equal(got, want) || (b.file != nil) != (size > heldBytes) {
			t.Errorf("%d bytes: %d read, in a file: %t, %v", size, len(got), b.file != nil, err)
		}
		if n, err := b.ReadAt(make([]byte, 2), max(int64(size)-1, 0)); n != min(size, 1) || err != io.EOF {
			t.Errorf("at the end of %d: %d, %v", size, n, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Setenv("TMPDIR", t.TempDir()+"/nowhere")
	b := NewBytes("a test")
	if _, err := b.Write(make([]byte, heldBytes)); err != nil {
		t.Error(err)
	}
	if _, err := b.Write([]byte{1}); err == nil || !strings.HasPrefix(err.Error(), "a test: ") {
		t.Error(err)
	}
}
