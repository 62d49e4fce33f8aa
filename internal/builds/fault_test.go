package builds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// faultyStore fails in the call at which calls reaches 0.
type faultyStore struct {
	*memStore
	calls   atomic.Int64
	fail    error
	short   bool         // a write writes half of its bytes first
	aborted atomic.Int64 // sinks
	created atomic.Int64
	what    string // the call that failed
}

func (s *faultyStore) call(what string) error {
	if s.calls.Add(-1) == 0 {
		s.what = what
		return &fs.PathError{Op: what, Path: "x", Err: s.fail}
	}
	return nil
}

func (s *faultyStore) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	if err := s.call("open"); err != nil {
		return nil, err
	}
	src, err := s.memStore.Open(ctx, o)
	return faultySource{src, s}, err
}

type faultySource struct {
	storage.Reader
	s *faultyStore
}

func (f faultySource) ReadAt(p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := f.s.call("read"); err != nil {
		if !f.s.short {
			return 0, err
		}
		n, _ := f.Reader.ReadAt(p[:len(p)/2], off)
		return n, err
	}
	return f.Reader.ReadAt(p, off)
}

func (f faultySource) Close() error {
	return errors.Join(f.s.call("close"), f.Reader.Close())
}

func (s *faultyStore) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	if err := s.call("create"); err != nil {
		return nil, err
	}
	s.created.Add(1)
	sink, err := s.memStore.Create(ctx, name, o)
	return &faultySink{sink, s, false}, err
}

type faultySink struct {
	storage.Writer
	s    *faultyStore
	done bool
}

func (f *faultySink) Write(p []byte) (int, error) {
	if err := f.s.call("write"); err != nil {
		if !f.s.short {
			return 0, err
		}
		n, _ := f.Writer.Write(p[:len(p)/2])
		return n, err
	}
	return f.Writer.Write(p)
}

func (f *faultySink) Commit(replace bool) error {
	if err := f.s.call("fsync"); err != nil {
		return err
	}
	if err := f.s.call("rename"); err != nil {
		return err
	}
	err := f.Writer.Commit(replace)
	f.done = err == nil
	return err
}

func (f *faultySink) Abort() error {
	if !f.done {
		f.s.aborted.Add(1)
	}
	return f.Writer.Abort()
}

// everyCall runs work with a store that fails at the first call, then at the
// second, and so on, until no call fails. It returns the number of failures.
func everyCall(t *testing.T, s *memStore, fail error, work func(s *faultyStore) error) int {
	t.Helper()
	for n := 1; ; n++ {
		for _, short := range []bool{false, true} {
			f := &faultyStore{memStore: s, fail: fail, short: short}
			f.calls.Store(int64(n))
			err := work(f)
			if f.calls.Load() > 0 {
				if err != nil {
					t.Fatalf("without a fault: %v", err)
				}
				return n - 1
			}
			if err == nil && strings.HasPrefix(f.what, "read") {
				continue // it was read ahead, and is read again
			}
			if !errors.Is(err, fail) {
				t.Fatalf("call %d, %s, fails (short: %v): %v, want %v", n, f.what, short, err, fail)
			}
			if f.created.Load() != f.aborted.Load() {
				t.Errorf("call %d fails: %d files were begun, %d dropped", n, f.created.Load(), f.aborted.Load())
			}
		}
	}
}

// If the disk is full at any time, the error says so, there is no file with the
// name, and the attempt is removed.
func TestFullDisk(t *testing.T) {
	s := newStore()
	putParquet(t, s, "ids.parquet", 1000, record(t, column{"k", numbers(30_000, func(i int) int64 { return int64(i) * 1_000_003 })}))
	for _, opts := range []Options{
		{Key: "k", Shard: dataset.Shard{Index: 0, Of: 2}}, {Key: "k", Kind: codec.KindExact}, {Key: "k", FPR: 1e-6},
	} {
		f, _ := build(t, s, []string{"ids.parquet"}, opts)
		for _, raw := range []bool{false, true} {
			for _, replace := range []bool{false, true} {
				s.put("old", []byte("an older file"))
				n := everyCall(t, s, syscall.ENOSPC, func(s *faultyStore) error {
					name := "out"
					if replace {
						name = "old"
					}
					_, err := filters.Save(t.Context(), s, name, f, filters.Options{Uncompressed: raw, Replace: replace})
					if _, there := s.get("out"); err != nil && there {
						t.Error("there is an output")
					}
					if b, _ := s.get("old"); err != nil && string(b) != "an older file" {
						t.Error("the older file is gone")
					}
					return err
				})
				if n < 6 {
					t.Errorf("only %d calls", n)
				}
				if err := s.Delete(t.Context(), storage.Object{Name: "out"}); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
			}
		}
	}
}

// A file that cannot be read for now is never reported as damaged, as missing or as
// the file of another run, each of which has another exit code.
func TestFailingReads(t *testing.T) {
	s := newStore()
	putParquet(t, s, "ids.parquet", 5000, record(t, column{"k", numbers(20_000, func(i int) int64 { return int64(i) * 1_000_003 })}))
	var lines strings.Builder
	for i := range 20_000 {
		fmt.Fprintln(&lines, i)
	}
	s.put("ids.csv", []byte("k\n"+lines.String()))
	putArrow(t, s, "ids.arrow", 5000, record(t, column{"k", numbers(20_000, func(i int) int64 { return int64(i) * 1_000_003 })}))
	opts := Options{Key: "k", Kind: codec.KindBloom, Threads: 1}
	parts := buildShards(t, s, "part", []string{"ids.parquet"}, opts, 3)
	whole, _ := build(t, s, []string{"ids.parquet"}, opts)
	if _, err := filters.Save(t.Context(), s, "whole", whole, filters.Options{}); err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{}
	for _, name := range []string{"ids.parquet", "ids.csv", "ids.arrow"} {
		f, _ := build(t, s, []string{name}, opts)
		want[name] = encoded(t, f)
	}
	buildOf := func(name string) func(s *faultyStore) error {
		return func(s *faultyStore) (err error) {
			files, err := openFiles(t, []string{name}, source.OpenOptions{Store: s, Text: true, Column: "k"})
			if err != nil {
				return err
			}
			defer func() {
				if e := source.Close(files); err == nil {
					err = e
				}
			}()
			p, err := NewPlan(files, opts)
			if err != nil {
				return err
			}
			got, _, err := p.Build(t.Context())
			if err == nil && !bytes.Equal(encoded(t, got), want[name]) {
				t.Error("another filter, and no error")
			}
			return err
		}
	}
	for name, work := range map[string]func(s *faultyStore) error{
		"build from Parquet": buildOf("ids.parquet"),
		"build from text":    buildOf("ids.csv"),
		"build from Arrow":   buildOf("ids.arrow"),
		"merge": func(s *faultyStore) error {
			_, err := MergeFiles(t.Context(), s, parts, false, filters.Limits{})
			return err
		},
		"read": func(s *faultyStore) error {
			f, err := filters.Load(t.Context(), s, "whole", filters.Limits{})
			if err != nil {
				return err
			}
			return f.Close()
		},
		"holds": func(s *faultyStore) error {
			_, err := (*filters.Other)(nil).Holds(t.Context(), s, "whole", func(*filters.Header) bool { return true })
			return err
		},
		"write beside the same": func(s *faultyStore) error {
			_, err := filters.Save(t.Context(), s, "whole", whole, filters.Options{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if n := everyCall(t, s, syscall.EIO, work); n < 3 {
				t.Errorf("only %d calls", n)
			}
		})
	}
}
