package joins_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"go.uber.org/goleak"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/door"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

// unmapped is a program's own storage: its readers cannot map files.
type unmapped struct{ storage.Storage }

func (u unmapped) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	r, err := u.Storage.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return struct{ storage.Reader }{r}, nil
}

// sharedInputs writes a log and IDs that are alike in layout, so that bytes of the wrong
// file are valid pages of the right one. Files without compression are read in place.
func sharedInputs(t testing.TB, codec string) (ids, logs string) {
	t.Helper()
	dir := t.TempDir()
	col := func(name string, dt arrow.DataType, values []string) column {
		return column{name: name, dt: dt, values: values}
	}
	write := func(name string, from, rows, step int64, column string) {
		keys, text := make([]string, rows), make([]string, rows)
		for i := range keys {
			keys[i] = fmt.Sprint((from + int64(i)*step) % 30_000)
			text[i] = fmt.Sprintf("%s-%07d", filepath.Base(name), i)
		}
		rec := table(t, col(column, arrow.PrimitiveTypes.Int64, keys), col("text_of_"+column, arrow.BinaryTypes.String, text))
		var b bytes.Buffer
		w, err := arrowparquet.NewParquetWriter(&b, rec.Schema(), arrowparquet.WriterOptions{Codec: codec, RowGroupRows: 2_000})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"ids", "logs"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ids, logs = filepath.Join(dir, "ids"), filepath.Join(dir, "logs")
	write(filepath.Join(ids, "0.parquet"), 0, 3_000, 11, "id")
	write(filepath.Join(ids, "1.parquet"), 5, 3_000, 17, "id")
	for i := range int64(3) {
		write(filepath.Join(logs, fmt.Sprintf("%d.parquet", i)), i*7, 8_000, 13, "user")
	}
	return ids, logs
}

// shared are opened files that several uses have at the same time.
type shared struct {
	ids, logs []*partition.File
	filter    *filters.Filter
	dir       string
}

// use is one use of shared files. It returns a digest of its result.
type use struct {
	name string
	run  func(ctx context.Context, s *shared, number int) (string, error)
}

// uses returns everything that can be done with opened files.
func uses() []use {
	all := []use{
		{"scan", func(ctx context.Context, s *shared, _ int) (string, error) {
			sc, err := s.scanner()
			if err != nil {
				return "", err
			}
			return digestOf(sc.Scan(ctx, partition.Split(s.logs, dataset.Shard{})))
		}},
		{"write a scan", func(ctx context.Context, s *shared, n int) (string, error) {
			sc, err := s.scanner()
			if err != nil {
				return "", err
			}
			return s.written(n, func(out partition.Output) error {
				_, err := out.WriteScan(ctx, sc, partition.Split(s.logs, dataset.Shard{}), s.logs)
				return err
			})
		}},
		{"count a scan", func(ctx context.Context, s *shared, _ int) (string, error) {
			sc, err := s.scanner()
			if err != nil {
				return "", err
			}
			err = sc.Count(ctx, partition.Split(s.logs, dataset.Shard{}))
			return fmt.Sprint(sc.Stats().RowsIn, sc.Stats().RowsOut), err
		}},
		{"build", func(ctx context.Context, s *shared, _ int) (string, error) {
			p, err := builds.NewPlan(door.In(s.ids), builds.Options{Key: "id", Kind: codec.KindBloom})
			if err != nil {
				return "", err
			}
			f, _, err := p.Build(ctx)
			if err != nil {
				return "", err
			}
			d, err := f.Digest()
			return fmt.Sprintf("%x", d), err
		}},
		{"plan", func(ctx context.Context, s *shared, _ int) (string, error) {
			j, err := join.New(s.ids, s.logs, join.Options{On: "user=id"})
			if err != nil {
				return "", err
			}
			p, err := j.Plan(ctx, join.PlanOptions{})
			if err != nil {
				return "", err
			}
			return fmt.Sprint(p.Strategy, p.Selectivity), nil
		}},
		{"check", func(ctx context.Context, s *shared, _ int) (string, error) {
			for _, f := range s.logs {
				for g := range f.NumGroups() {
					if err := (*source.File)(f).Check(ctx, g); err != nil {
						return "", err
					}
				}
			}
			return "whole", nil
		}},
		{"read", func(ctx context.Context, s *shared, _ int) (string, error) {
			h := sha256.New()
			for _, f := range s.logs {
				for g := range f.NumGroups() {
					for rec, err := range f.Read(ctx, g, []int{1, 0}) {
						if err != nil {
							return "", err
						}
						for _, c := range rec.Columns() {
							fmt.Fprintln(h, c)
						}
					}
				}
			}
			return fmt.Sprintf("%x", h.Sum(nil)), nil
		}},
		{"fingerprint", func(_ context.Context, s *shared, _ int) (string, error) {
			h := sha256.New()
			for _, f := range s.logs {
				b, err := (*source.File)(f).Fingerprint()
				if err != nil {
					return "", err
				}
				h.Write(b)
			}
			return fmt.Sprintf("%x", h.Sum(nil)), nil
		}},
	}
	strategies := []join.Strategy{join.Auto, join.Lookup, join.Broadcast, join.Reverse, join.Shuffle}
	for i, typ := range []join.Type{join.Semi, join.Anti, join.Inner, join.Left, join.Right, join.Full} {
		o := join.Options{On: "user=id", Type: typ, Strategy: strategies[i%len(strategies)], Threads: 2}
		all = append(all,
			use{fmt.Sprint("join ", typ), func(ctx context.Context, s *shared, _ int) (string, error) {
				j, err := s.join(o)
				if err != nil {
					return "", err
				}
				return digestOf(j.Run(ctx))
			}},
			use{fmt.Sprint("write a join ", typ), func(ctx context.Context, s *shared, n int) (string, error) {
				j, err := s.join(o)
				if err != nil {
					return "", err
				}
				return s.written(n, func(out partition.Output) error {
					_, err := j.Write(ctx, out)
					return err
				})
			}},
			use{fmt.Sprint("count a join ", typ), func(ctx context.Context, s *shared, _ int) (string, error) {
				j, err := s.join(o)
				if err != nil {
					return "", err
				}
				n, err := j.Count(ctx)
				return fmt.Sprint(n), err
			}})
	}
	return all
}

func (s *shared) scanner() (*partition.Scanner, error) {
	return partition.NewScanner(partition.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(s.filter), Key: "user"}}, Threads: 2}, s.logs...)
}

func (s *shared) join(o join.Options) (*join.Join, error) {
	o.TempDir = s.dir
	return join.New(s.ids, s.logs, o)
}

// written returns a digest of what write has written.
func (s *shared) written(number int, write func(partition.Output) error) (string, error) {
	name := filepath.Join(s.dir, fmt.Sprintf("out-%d.parquet", number))
	defer os.Remove(name)
	if err := write(partition.Output{Name: name}); err != nil {
		if _, statErr := os.Stat(name); statErr == nil {
			return "", fmt.Errorf("an output is there in spite of %w", err)
		}
		return "", err
	}
	b, err := os.ReadFile(name)
	return fmt.Sprintf("%x", sha256.Sum256(b)), err
}

// digestOf returns a digest of the values of records.
func digestOf(rows func(func(partition.Rows, error) bool)) (string, error) {
	h := sha256.New()
	for r, err := range rows {
		if err != nil {
			return "", err
		}
		for i := range int(r.Record.NumRows()) {
			for _, c := range r.Record.Columns() {
				fmt.Fprintf(h, "%s\x00", c.ValueStr(i))
			}
		}
		r.Record.Release()
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// TestSharedFiles runs random pairs of uses at once over the same opened files, some of
// which are closed, or whose context ends, at a random moment. Each must have the result
// that it has alone, or say why not; nothing stays open or mapped.
func TestSharedFiles(t *testing.T) {
	pairs := cases.Count(48, 100, 200)
	all, dir := uses(), t.TempDir()
	for _, compression := range []string{"snappy", "none"} {
		idDir, logDir := sharedInputs(t, compression)
		var filter *filters.Filter
		var want []string // of each use alone, of local files
		for _, store := range []storage.Source{storage.Local(), unmapped{storage.Local()}} {
			opened := func() *shared {
				s := &shared{dir: dir}
				var err error
				if s.ids, err = partition.Open(t.Context(), []string{idDir}, partition.OpenOptions{Store: store}); err != nil {
					t.Fatal(err)
				}
				if s.logs, err = partition.Open(t.Context(), []string{logDir}, partition.OpenOptions{Store: store}); err != nil {
					t.Fatal(err)
				}
				return s
			}
			if want == nil {
				alone := opened()
				plan, err := builds.NewPlan(door.In(alone.ids), builds.Options{Key: "id"})
				if err != nil {
					t.Fatal(err)
				}
				if filter, _, err = plan.Build(t.Context()); err != nil {
					t.Fatal(err)
				}
				alone.filter = filter
				for _, u := range all {
					digest, err := u.run(t.Context(), alone, 0)
					if err != nil {
						t.Fatalf("%s alone: %v", u.name, err)
					}
					want = append(want, digest)
				}
				if err := errors.Join(partition.Close(alone.ids), partition.Close(alone.logs)); err != nil {
					t.Fatal(err)
				}
			}
			before := teststore.Descriptors(t)
			var closed, whole atomic.Int64
			for n := range pairs / 4 {
				r := rand.New(rand.NewPCG(uint64(n), 14))
				s := opened()
				s.filter = filter
				ctx, cancel := context.WithCancel(t.Context())
				if r.IntN(4) == 0 {
					time.AfterFunc(time.Duration(r.IntN(20))*time.Millisecond, cancel)
				}
				var work sync.WaitGroup
				for k := range 2 {
					i := r.IntN(len(all))
					work.Go(func() {
						got, err := all[i].run(ctx, s, 2*n+k)
						switch {
						case errors.Is(err, fs.ErrClosed):
							closed.Add(1)
						case ctx.Err() != nil && errors.Is(err, context.Canceled):
						case err != nil || got != want[i]:
							t.Errorf("%s, %T, pair %d: %s: %v, the same as alone: %t", compression, store, n, all[i].name, err, got == want[i])
						default:
							whole.Add(1)
						}
					})
				}
				if r.IntN(2) == 0 {
					time.Sleep(time.Duration(max(r.IntN(4000)-2000, 0)) * time.Microsecond) // half of them before the uses begin
					for _, f := range append(s.logs[:1:1], s.ids[0]) {
						if err := f.Close(); err != nil && !strings.Contains(err.Error(), "readers at work") {
							t.Error(err)
						}
					}
				}
				work.Wait()
				cancel()
				if err := errors.Join(partition.Close(s.ids), partition.Close(s.logs)); err != nil {
					t.Errorf("pair %d: nobody reads any more: %v", n, err)
				}
			}
			if closed.Load() == 0 || whole.Load() < closed.Load() {
				t.Errorf("%s, %T: %d uses met a closed file, %d did not: want some of both", compression, store, closed.Load(), whole.Load())
			}
			if after := teststore.Descriptors(t); after > before {
				t.Errorf("%s, %T: %d descriptors, %d before", compression, store, after, before)
			}
			for _, d := range []string{idDir, logDir} {
				if teststore.Mapped(t, d) {
					t.Errorf("%s, %T: a file of %s is still mapped", compression, store, d)
				}
			}
		}
	}
	if err := goleak.Find(); err != nil {
		t.Error(err)
	}
}
