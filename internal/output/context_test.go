package output

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// However a context ends, and whatever its cause, the error wraps the context's error.
func TestEndOfContext(t *testing.T) {
	dir := t.TempDir()
	rec := func() arrow.Record {
		return sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: sourcetest.Numbers(5000, func(i int) int64 { return int64(i) })})
	}
	inputs := map[string]string{
		"parquet": sourcetest.Write(t, filepath.Join(dir, "log.parquet"), 100, rec()),
		"arrow":   sourcetest.Write(t, filepath.Join(dir, "log.arrow"), 100, rec()),
		"text":    sourcetest.Put(t, filepath.Join(dir, "ids.txt"), "1\n2\n3\n"),
	}
	why := errors.New("enough")
	for _, c := range []struct {
		is  error
		ctx func(context.Context) (context.Context, context.CancelFunc)
	}{
		{context.Canceled, func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(why)
			return ctx, func() {}
		}},
		{context.DeadlineExceeded, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, -1, why)
		}},
	} {
		for format, name := range inputs {
			files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Text: true}}, name)
			pieces := source.Split(files, dataset.Shard{})
			ctx, cancel := c.ctx(t.Context())
			defer cancel()
			check := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, c.is) {
					t.Errorf("%s of %s: %v; want %v", what, format, err, c.is)
				}
			}
			_, _, err := keyscan.Read(ctx, pieces, keyscan.ReadOptions{Key: "id"}, func() (func(*keyscan.Keys) error, error) {
				return func(*keyscan.Keys) error { return nil }, nil
			})
			check("ReadKeys", err)
			for _, err := range roomtest.Map(ctx, pieces, 0, nil, roomtest.Pass) {
				check("Map", err)
				break
			}
			if format == "text" {
				continue
			}
			scanner := func() *keyscan.Scanner {
				s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", ids(5000, 3)...))}}}})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			check("Count", Count(ctx, scanner(), pieces))
			for _, err := range arraycopy.Scan(ctx, scanner(), pieces) {
				check("Scan", err)
				break
			}
			_, err = Destination{Output: Output{Name: filepath.Join(dir, "out.parquet")}, Result: source.ResultExact}.WriteScan(ctx, scanner(), pieces, files, nil)
			check("WriteScan", err)
		}
	}
}
