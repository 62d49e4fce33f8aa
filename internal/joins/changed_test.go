package joins_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

// restless is a store in which one file changes just before one of its reads.
type restless struct {
	storage.Storage // local
	name            string
	at              int64 // before which read, from 1; 0: none
	reads           atomic.Int64
	change          func()
}

func (s *restless) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	src, err := s.Storage.Open(ctx, o)
	if err != nil || o.Name != s.name {
		return src, err
	}
	return &restlessFile{src, s}, nil
}

// restlessFile cannot be mapped, so every read goes through ReadAt.
type restlessFile struct {
	storage.Reader
	of *restless
}

func (f *restlessFile) ReadAt(p []byte, off int64) (int, error) {
	if f.of.reads.Add(1) == f.of.at {
		f.of.change()
	}
	return f.Reader.ReadAt(p, off)
}

func (f *restlessFile) Changed() error { return objects.Changed(f.Reader) }

// TestChangedWhileRead: all strategies but one read a side several times. If it changes
// between or during these reads, the join fails and publishes nothing.
func TestChangedWhileRead(t *testing.T) {
	const rows = 600
	columns := func(shift int) (*column, *column) {
		k, n := numbers("k", arrow.PrimitiveTypes.Int64, shift, shift+rows), numbers("n", arrow.PrimitiveTypes.Int64, 0, rows)
		return &k, &n
	}
	store := func(dir, name string, shift, groups int) string {
		k, n := columns(shift)
		n.name = name
		name = filepath.Join(dir, name+".parquet")
		writeFile(t, name, table(t, *k, *n), groups, "")
		return name
	}
	dir, other := t.TempDir(), t.TempDir()
	ids, logs := store(dir, "ids", 300, 100), store(dir, "log", 0, 150)
	long := time.Now().Add(-time.Hour)
	for _, side := range []string{ids, logs} {
		was, err := os.ReadFile(side)
		if err != nil {
			t.Fatal(err)
		}
		is, err := os.ReadFile(store(other, filepath.Base(side[:len(side)-len(".parquet")]), 450, 100))
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range []join.Type{join.Semi, join.Anti, join.Inner, join.Full} {
			for _, strategy := range strategies(typ) {
				try := func(at int64) (reads int64, out string, err error) {
					if err := errors.Join(os.WriteFile(side, was, 0o600), os.Chtimes(side, long, long)); err != nil {
						t.Fatal(err)
					}
					s := &restless{Storage: storage.Local(), name: side, change: func() {
						if err := os.WriteFile(side, is, 0o600); err != nil {
							t.Error(err)
						}
					}}
					j, err := join.New(open(t, partition.OpenOptions{Store: s}, ids), open(t, partition.OpenOptions{Store: s}, logs),
						join.Options{On: "k", Type: typ, Strategy: strategy, Threads: 2, TempDir: t.TempDir()})
					if err != nil {
						t.Fatal(err)
					}
					s.reads.Store(0)
					s.at = at
					out = filepath.Join(t.TempDir(), "out.parquet")
					_, err = j.Write(t.Context(), partition.Output{Name: out})
					return s.reads.Load(), out, err
				}
				reads, _, err := try(0)
				if err != nil || reads == 0 {
					t.Fatalf("%s join by %s: %d reads, %v", typ, strategy, reads, err)
				}
				for at := int64(1); at <= reads; at += max(reads/int64(cases.Count(2, 6, 12)), 1) {
					what := fmt.Sprintf("%s join by %s, %s changes at read %d of %d", typ, strategy, filepath.Base(side), at, reads)
					_, out, err := try(at)
					if err == nil {
						t.Errorf("%s: no error", what)
					}
					if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("%s: an answer is published", what)
					}
				}
			}
		}
	}
}
