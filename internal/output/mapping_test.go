//go:build unix

package output

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// If a log is truncated or overwritten during a scan, the error says that another
// attempt may succeed, whatever the bytes look like by then, and there is no output.
func TestFileChangesMeanwhile(t *testing.T) {
	rows := roomtest.Clicks(rand.New(rand.NewPCG(5, 5)), 20_000, 0)
	for name, change := range map[string]func(path string) error{
		"cut short": func(path string) error { return os.Truncate(path, 5000) },
		"written over": func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			clear(b[len(b)/2 : len(b)*3/4])
			return errors.Join(os.WriteFile(path, b, 0o666), os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)))
		},
		"touched": func(path string) error { return os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)) },
	} {
		for _, compression := range []pq.WriterOption{pq.Compression(&pq.Snappy), pq.Compression(&pq.Uncompressed)} {
			dir := t.TempDir()
			in := roomtest.WriteClicks(t, filepath.Join(dir, "log.parquet"), rows, roomtest.Layout{Group: 400, Page: 2000, Version: 1, Codec: compression})
			var once sync.Once
			opts := keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", ids(1000, 2)...))}}, Threads: 2}}
			opts.Progress = func(int64) {
				once.Do(func() {
					if err := change(in); err != nil {
						t.Error(err)
					}
				})
			}
			_, err := copyTo(t.Context(), t, opts, Destination{Output: Output{Name: filepath.Join(dir, "out.parquet")}}, in)
			if !errors.Is(err, syscall.ESTALE) {
				t.Errorf("%s: %v, want an error that wraps ESTALE", name, err)
			}
			sourcetest.Equal(t, "files left behind", sourcetest.Tree(t, dir), []string{"log.parquet"})
		}
	}
}
