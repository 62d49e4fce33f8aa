package arraycopy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// More text files than tasks may be ahead do not keep a Parquet file after them from
// being read.
func TestReadKeysOfManyTextsAhead(t *testing.T) {
	dir := t.TempDir()
	const texts = keyscan.JobsAhead + keyscan.NumScouts + 1
	for i := range texts {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.csv", i)), []byte("id,name\n1,a\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	sourcetest.Write(t, filepath.Join(dir, "z.parquet"), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: sourcetest.Numbers(20, func(i int) int64 { return int64(i) })}))
	remote := &teststore.Remote{T: t, Storage: storage.Local(), At: 4}
	for _, key := range []string{"id", "id::string"} {
		pieces := source.Split(roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Store: remote, Text: true}}, dir), dataset.Shard{})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("it hangs"))
		defer cancel()
		rows, _, err := keyscan.Read(ctx, pieces, keyscan.ReadOptions{Key: key, Threads: 2}, func() (func(*keyscan.Keys) error, error) {
			return func(*keyscan.Keys) error { return nil }, nil
		})
		if err != nil || rows != texts+20 {
			t.Errorf("%s: %d rows, %v", key, rows, err)
		}
	}
	if n := remote.Counts().Kept; n != 0 {
		t.Errorf("%d announcements were not released", n)
	}
}

// A panic while something is announced is an error of the file, as it is while something
// is read.
func TestAnnouncePanics(t *testing.T) {
	name := sourcetest.Write(t, filepath.Join(t.TempDir(), "log.parquet"), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: sourcetest.Numbers(200, func(i int) int64 { return int64(i) })}))
	files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Store: panicking{storage.Local()}}}, name)
	_, _, err := keyscan.Read(t.Context(), source.Split(files, dataset.Shard{}), keyscan.ReadOptions{Key: "id"}, func() (func(*keyscan.Keys) error, error) {
		return func(*keyscan.Keys) error { return nil }, nil
	})
	sourcetest.Says(t, "keys", err, nil, "log.parquet", "no room")
	scanner, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", 3))}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, err = range arraycopy.Scan(t.Context(), scanner, source.Split(files, dataset.Shard{})) {
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
