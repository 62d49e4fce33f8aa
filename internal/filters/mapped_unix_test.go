//go:build unix

package filters

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// mapFile maps a file until the end of the test.
func mapFile(tb testing.TB, file *os.File) []byte {
	tb.Helper()
	info, err := file.Stat()
	if err != nil {
		tb.Fatal(err)
	}
	b, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := syscall.Munmap(b); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// A mapped file that shrinks causes an error, not a crash.
func TestMappedFileShrinks(t *testing.T) {
	f := splitFilter(t, bloom.Split512, 3*chunkBytes/64, keysFrom(1, 1000))
	for _, keep := range []int64{0, 5000, chunkBytes + 100_000, 3 * chunkBytes} {
		file, err := os.Create(filepath.Join(t.TempDir(), "f"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := Encode(file, f, Options{Uncompressed: true}); err != nil {
			t.Fatal(err)
		}
		h := benchHeader(t, file)
		b := mapFile(t, file)
		if err := file.Truncate(keep); err != nil {
			t.Fatal(err)
		}
		g, err := h.LoadMapped(b, noUnmap)
		// In the last page that remains, the lost bytes read as zeros.
		if g != nil || !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), file.Name()) {
			t.Errorf("cut to %d bytes: %v", keep, err)
		}
		if keep != 3*chunkBytes && !strings.Contains(err.Error(), "fault at byte") && !strings.Contains(err.Error(), "checksum") {
			t.Errorf("cut to %d bytes: %v", keep, err)
		}
	}
}

// Values computed while the file was verified need no file afterwards.
func TestMappedFileGone(t *testing.T) {
	f := splitFilter(t, bloom.Split256, 1<<13, keysFrom(1, 1000))
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := Encode(file, f, Options{Uncompressed: true}); err != nil {
		t.Fatal(err)
	}
	want, err := f.Digest()
	if err != nil {
		t.Fatal(err)
	}
	g, err := benchHeader(t, file).LoadMapped(mapFile(t, file), noUnmap)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if d, err := g.Digest(); d != want || err != nil || g.FPR() != f.FPR() {
		t.Errorf("digest %x, error %v, rate %g; want %x and %g", d, err, g.FPR(), want, f.FPR())
	}
	g.facts.Keys++
	if d, err := g.Digest(); d == want || err != nil {
		t.Errorf("another number of keys: the same digest, error %v", err)
	}
}

// The digest and the rate of a mapped filter include keys that were added.
func TestMappedFilterChanged(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f := splitFilter(t, bloom.Split256, 1<<10, keysFrom(1, 1000))
	if _, err := Encode(file, f, Options{Uncompressed: true}); err != nil {
		t.Fatal(err)
	}
	g, err := benchHeader(t, file).LoadMapped(mapFile(t, file), noUnmap)
	if err != nil {
		t.Fatal(err)
	}
	more := []uint64{1 << 40, 2 << 50, 3 << 60}
	f.Bloom().Add(more)
	g.Bloom().Add(more)
	want, _ := f.Digest()
	if d, err := g.Digest(); d != want || err != nil || g.FPR() != f.FPR() {
		t.Errorf("digest %x, error %v, rate %g; want %x and %g", d, err, g.FPR(), want, f.FPR())
	}
}

func BenchmarkLoadMapped(b *testing.B) {
	file := benchFile(b, halfFull.filter(b, bloom.Split512), Options{Uncompressed: true})
	h := benchHeader(b, file)
	b.SetBytes(benchBytes)
	b.ReportAllocs()
	for b.Loop() {
		m, err := syscall.Mmap(int(file.Fd()), 0, int(h.FileBytes), syscall.PROT_READ, syscall.MAP_SHARED)
		if err != nil {
			b.Fatal(err)
		}
		f, err := h.LoadMapped(m, func() error { return syscall.Munmap(m) })
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// If the file is truncated while the filter is in use, probing integers or other
// keys returns an error and no hits, and the count is +Inf; the process does not
// crash.
func TestMappedFilterCutShort(t *testing.T) {
	for _, class := range []keys.Class{keys.Integer, keys.Bytes} {
		f := splitFilter(t, bloom.Split512, 1<<12, keysFrom(1, 1000))
		f.facts.Key = []KeyColumn{{Name: "k", Class: string(class)}}
		f.facts.NormalForm = keys.NormalForm
		file, err := os.Create(filepath.Join(t.TempDir(), "f"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := Encode(file, f, Options{Uncompressed: true}); err != nil {
			t.Fatal(err)
		}
		b := mapFile(t, file)
		m, err := header(t, b, "f").LoadMapped(b, noUnmap)
		if err != nil {
			t.Fatal(err)
		}
		var added keys.Batch
		if class == keys.Integer {
			added.SetInts(make([]byte, 8<<14), 1<<14, 8, true)
		} else {
			added.SetBytes(make([]byte, 4<<14), 1<<14, 0)
		}
		if _, err := m.ProbeBatch(&added, nil); err != nil {
			t.Fatal(err)
		}
		fpr := m.FPR()
		if err := os.Truncate(file.Name(), 0); err != nil {
			t.Fatal(err)
		}
		if hits, err := m.ProbeBatch(&added, nil); !errors.Is(err, errGone) {
			t.Errorf("%s: %d hits, error %v", class, len(hits), err)
		}
		if n := m.Count(); !math.IsInf(n.Keys, 1) || m.FPR() != fpr {
			t.Errorf("%s: %v keys, rate %v, before %v", class, n, m.FPR(), fpr)
		}
	}
}
