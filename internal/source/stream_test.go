package source

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// A stream announces little before it is read, and nothing is dropped before it was
// read.
func TestStreamAhead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	want := bytes.Repeat([]byte("0123456789abcdef"), 50<<20/16)
	if err := os.WriteFile(name, want, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1000, 64 << 10, 1 << 20, 20 << 20} {
		remote := &teststore.Remote{T: t, Storage: storage.Local()}
		src, err := remote.Open(t.Context(), storage.Object{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		s := &stream{SectionReader: io.NewSectionReader(src, 0, int64(len(want))), src: src}
		var sum teststore.RemoteCounts
		for buf := make([]byte, size); ; {
			n, err := s.Read(buf)
			c := remote.Counts()
			sum.Announced, sum.Unannounced, sum.Read = sum.Announced+c.Announced, sum.Unannounced+c.Unannounced, sum.Read+c.Read
			if ahead := sum.Announced - sum.Read; ahead > max(LeastAhead, min(sum.Read, maxAhead)) {
				t.Fatalf("reads of %d bytes: %d bytes were announced after %d", size, ahead, sum.Read)
			}
			if err == io.EOF {
				break
			}
			if err != nil || !bytes.Equal(buf[:n], want[sum.Read-int64(n):sum.Read]) {
				t.Fatalf("reads of %d bytes: %v", size, err)
			}
		}
		if sum.Unannounced > 0 {
			t.Errorf("reads of %d bytes: %d bytes were read without an announcement", size, sum.Unannounced)
		}
		if err := s.Close(); err != nil || remote.Counts().Kept != 0 || sum.Read != int64(len(want)) {
			t.Errorf("reads of %d bytes: %d read, %v", size, sum.Read, err)
		}
	}
}
