package filterbuild_test

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/key"
)

// built returns the digest of a filter to which add has added keys.
func built(t *testing.T, columns string, add func(b *filterbuild.Builder) error) [32]byte {
	t.Helper()
	b, err := filterbuild.NewBuilder(filterbuild.Options{Key: columns, Identity: []byte("one")})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := add(b); err != nil {
		t.Fatal(err)
	}
	f, _, err := b.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d, err := f.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// worker adds values in one call.
func worker(v key.Values) func(b *filterbuild.Builder) error {
	return func(b *filterbuild.Builder) error {
		w, err := b.Worker()
		if err != nil {
			return err
		}
		return w.Add(v)
	}
}

// Sequences of any length, several at once, make the filter that one call makes, also if
// the sequence uses its bytes again.
func TestAddSeq(t *testing.T) {
	for _, n := range []int{0, 1, 1<<13 - 1, 1 << 13, 3<<13 + 5} {
		ints, texts := make([]int64, n), make([][]byte, n)
		for i := range n {
			ints[i] = int64(i) * 7919
			texts[i] = binary.AppendUvarint(nil, uint64(i)*7919)
		}
		if built(t, "k::int64", worker(key.Int64s(ints))) != built(t, "k::int64", func(b *filterbuild.Builder) error {
			var g errgroup.Group
			for _, half := range [][]int64{ints[:n/3], ints[n/3:]} {
				g.Go(func() error { return filterbuild.AddSeq(t.Context(), b, slices.Values(half)) })
			}
			return g.Wait()
		}) {
			t.Errorf("%d integers: another filter", n)
		}
		var reused []byte
		again := iter.Seq[[]byte](func(yield func([]byte) bool) {
			for _, v := range texts {
				if reused = append(reused[:0], v...); !yield(reused) {
					return
				}
			}
		})
		if built(t, "k::binary", worker(key.ByteSlices(texts))) != built(t, "k::binary", func(b *filterbuild.Builder) error {
			return filterbuild.AddSeq(t.Context(), b, again)
		}) {
			t.Errorf("%d byte slices: another filter", n)
		}
	}
}

// An ended context, and a sequence of another class, are errors, and the sequence ends.
func TestAddSeqStops(t *testing.T) {
	b, err := filterbuild.NewBuilder(filterbuild.Options{Key: "k::int64"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	endless := iter.Seq[int64](func(yield func(int64) bool) {
		for ; yield(int64(n)); n++ {
			if n == 100 {
				cancel()
			}
		}
	})
	if err := filterbuild.AddSeq(ctx, b, endless); !errors.Is(err, context.Canceled) || n > 1<<14 {
		t.Errorf("%v after %d keys, want that the context has ended", err, n)
	}
	if err := filterbuild.AddSeq(t.Context(), b, slices.Values([]string{"7"})); err == nil {
		t.Error("texts were added to a filter of integers")
	}
	if _, _, err := b.Finish(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("a filter without all keys: %v", err)
	}
}

// After a sequence has panicked, there is no filter without its keys, and an error names the
// row of the sequence.
func TestAddSeqFails(t *testing.T) {
	b, err := filterbuild.NewBuilder(filterbuild.Options{Key: "k", Classes: []string{"float"}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	values := make([]int64, 20_000)
	values[15_000] = 1<<60 + 1
	if err := filterbuild.AddSeq(t.Context(), b, slices.Values(values)); err == nil || !strings.Contains(err.Error(), "row 15000") {
		t.Errorf("%v, want row 15000", err)
	}
	if b, err = filterbuild.NewBuilder(filterbuild.Options{Key: "k::int64"}); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	func() {
		defer func() {
			if recover() != "no more" {
				t.Error("the panic was lost")
			}
		}()
		_ = filterbuild.AddSeq(t.Context(), b, func(yield func(int64) bool) {
			yield(1)
			panic("no more")
		})
	}()
	if _, _, err := b.Finish(t.Context()); err == nil || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("a filter of a sequence that panicked: %v", err)
	}
	if err := filterbuild.AddSeq[int64](t.Context(), b, nil); err == nil {
		t.Error("a nil sequence")
	}
}

// Many sequences take no more memory than the workers that the budget allows, and keys may be
// of declared types.
func TestAddSeqOften(t *testing.T) {
	type user int64
	b, err := filterbuild.NewBuilder(filterbuild.Options{Key: "k::int64", Memory: 20 << 20, Threads: 2, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var g errgroup.Group
	for i := range 200 {
		g.Go(func() error { return filterbuild.AddSeq(t.Context(), b, slices.Values([]user{user(i), -user(i)})) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.GC()
	if runtime.ReadMemStats(&m); m.HeapAlloc > 64<<20 {
		t.Errorf("%d MiB in use", m.HeapAlloc>>20)
	}
	f, report, err := b.Finish(t.Context())
	if err != nil || report.Keys != 400 || report.Distinct != 399 {
		t.Fatalf("%v, %v", report, err)
	}
	if found, err := f.ContainsInt64(-199); !found || err != nil {
		t.Error(found, err)
	}
}

func BenchmarkAddSeq(b *testing.B) {
	ints := make([]int64, 1<<20)
	for i := range ints {
		ints[i] = int64(i) * 7919
	}
	for name, add := range map[string]func(f *filterbuild.Builder) error{
		"worker":   worker(key.Int64s(ints)),
		"sequence": func(f *filterbuild.Builder) error { return filterbuild.AddSeq(b.Context(), f, slices.Values(ints)) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f, err := filterbuild.NewBuilder(filterbuild.Options{Key: "k::int64", Expect: uint64(len(ints)), FPR: 0.01})
				if err != nil {
					b.Fatal(err)
				}
				if err := add(f); err != nil {
					b.Fatal(err)
				}
				f.Close()
			}
		})
	}
}
