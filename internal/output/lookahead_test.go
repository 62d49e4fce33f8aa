package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/storagetest"
	"github.com/bloomjoin/bloomjoin/storage"
)

// More text files than tasks may be ahead do not keep a Parquet file after them from
// being read.
func TestReadKeysOfManyTextsAhead(t *testing.T) {
	dir := t.TempDir()
	const texts = jobsAhead + scouts + 1
	for i := range texts {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.csv", i)), []byte("id,name\n1,a\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	sourcetest.Write(t, filepath.Join(dir, "z.parquet"), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: sourcetest.Numbers(20, func(i int) int64 { return int64(i) })}))
	remote := &storagetest.Remote{T: t, Storage: storage.Local{}, At: 4}
	for _, key := range []string{"id", "id::string"} {
		pieces := Split(open(t, Opening{OpenOptions: OpenOptions{Store: remote, Text: true}}, dir), dataset.Shard{})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("it hangs"))
		defer cancel()
		rows, _, err := ReadKeys(ctx, pieces, KeyOptions{Key: key, Threads: 2}, func() (func(*Keys) error, error) {
			return func(*Keys) error { return nil }, nil
		})
		if err != nil || rows != texts+20 {
			t.Errorf("%s: %d rows, %v", key, rows, err)
		}
	}
	if n := remote.Counts().Kept; n != 0 {
		t.Errorf("%d announcements were not released", n)
	}
}

// A stream announces little before it is read, and nothing is dropped before it was
// read.
func TestStreamAhead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	want := bytes.Repeat([]byte("0123456789abcdef"), 50<<20/16)
	if err := os.WriteFile(name, want, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1000, 64 << 10, 1 << 20, 20 << 20} {
		remote := &storagetest.Remote{T: t, Storage: storage.Local{}}
		src, err := remote.Open(t.Context(), storage.Object{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		s := &stream{SectionReader: io.NewSectionReader(src, 0, int64(len(want))), src: src}
		var sum storagetest.RemoteCounts
		for buf := make([]byte, size); ; {
			n, err := s.Read(buf)
			c := remote.Counts()
			sum.Announced, sum.Unannounced, sum.Read = sum.Announced+c.Announced, sum.Unannounced+c.Unannounced, sum.Read+c.Read
			if ahead := sum.Announced - sum.Read; ahead > max(leastAhead, min(sum.Read, mostAhead)) {
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

// A panic while something is announced is an error of the file, as it is while something
// is read.
func TestAnnouncePanics(t *testing.T) {
	name := sourcetest.Write(t, filepath.Join(t.TempDir(), "log.parquet"), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: sourcetest.Numbers(200, func(i int) int64 { return int64(i) })}))
	files := open(t, Opening{OpenOptions: OpenOptions{Store: panicking{storage.Local{}}}}, name)
	_, _, err := ReadKeys(t.Context(), Split(files, dataset.Shard{}), KeyOptions{Key: "id"}, func() (func(*Keys) error, error) {
		return func(*Keys) error { return nil }, nil
	})
	sourcetest.Says(t, "keys", err, nil, "log.parquet", "no room")
	scanner, err := NewScanner(ScanOptions{Match: []dataset.Match{{Filter: exactOf("id", 3)}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, err = range ScanRecords(t.Context(), scanner, Split(files, dataset.Shard{})) {
		if err != nil {
			break
		}
	}
	sourcetest.Says(t, "scan", err, nil, "log.parquet", "no room")
}

// panicking is a storage whose readers panic when something is announced.
type panicking struct{ storage.Storage }

func (p panicking) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	r, err := p.Storage.Open(ctx, o)
	return panickingReader{r}, err
}

type panickingReader struct{ storage.Reader }

func (panickingReader) Gap() int64                      { return 0 }
func (panickingReader) Prefetch([]storage.Range) func() { panic("no room") }
