package filters

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/storage"
)

// mappedFilter returns a filter of the integers below n over a copy of its file.
// Releasing it overwrites the copy, so that a call at work afterwards answers wrong,
// and counts in released.
func mappedFilter(t testing.TB, n int, released *atomic.Int32, unmapErr error) *Filter {
	t.Helper()
	f := asked(t, []keys.Class{keys.Integer}, 0, KindBloom, keys.Uint64s(upTo(n)))
	f.facts.FPRAsked = 0.01
	file := encode(t, f, Options{Uncompressed: true})
	m, err := header(t, file, "f").LoadMapped(file, func() error {
		clear(file)
		released.Add(1)
		return unmapErr
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func upTo(n int) []uint64 {
	v := make([]uint64, n)
	for i := range v {
		v[i] = uint64(i)
	}
	return v
}

// Whatever calls are at work when a mapped filter is closed, they are right or say
// that it is closed, and the file is released once.
func TestCloseWhileAsked(t *testing.T) {
	calls := map[string]func(f *Filter) error{
		"Contains": func(f *Filter) error {
			in, err := f.Contains(keys.Uint64s(upTo(20_000)), nil) // several batches
			for i, ok := range in {
				if !ok {
					return fmt.Errorf("%d is missing", i)
				}
			}
			return err
		},
		"ProbeBatch": func(f *Filter) error {
			var b keys.Batch
			b.SetInts(make([]byte, 8<<10), 1<<10, 8, true)
			hits, err := f.ProbeBatch(&b, nil)
			if err == nil && len(hits) != 1<<10 {
				return fmt.Errorf("%d hits", len(hits))
			}
			return err
		},
		"Encode": func(f *Filter) error {
			var w bytes.Buffer
			n, err := Encode(&w, f, Options{})
			if err == nil {
				_, err = Decode(bytes.NewReader(w.Bytes()), n, "copy", Limits{})
			}
			return err
		},
		"Digest": func(f *Filter) error { _, err := f.Digest(); return err },
		"Count": func(f *Filter) error {
			if n := f.Count().Keys; math.Abs(n-20_000) > 1000 && !math.IsNaN(n) {
				return fmt.Errorf("%v keys", n)
			}
			return nil
		},
		"FPR": func(f *Filter) error {
			if p := f.FPR(); p > 0.1 { // not NaN
				return fmt.Errorf("rate %v", p)
			}
			return nil
		},
		"KeepOpen": func(f *Filter) error {
			release, err := f.KeepOpen()
			if err != nil {
				return err
			}
			defer release()
			if b := f.Bloom(); b == nil || len(b.Clone().ProbeInts(upTo(20_000), nil)) != 20_000 {
				return errors.New("no bits")
			}
			return nil
		},
	}
	for range 5 {
		var released atomic.Int32
		f := mappedFilter(t, 20_000, &released, nil)
		var started, done sync.WaitGroup
		for name, call := range calls {
			started.Add(1)
			done.Go(func() {
				started.Done()
				for begun := time.Now(); time.Since(begun) < 20*time.Second; {
					err := call(f)
					if errors.Is(err, fs.ErrClosed) {
						return
					}
					if err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					if (name == "Count" || name == "FPR") && f.Bloom() == nil {
						return
					}
				}
				t.Errorf("%s never heard of Close", name)
			})
		}
		started.Wait()
		time.Sleep(time.Millisecond)
		if err := f.Close(); err != nil && !errors.Is(err, storage.ErrAgain) {
			t.Error(err)
		}
		done.Wait()
		if err := f.Close(); err != nil || released.Load() != 1 {
			t.Errorf("released %d times, error %v", released.Load(), err)
		}
	}
}

// Close does not wait for a call at work; the last one releases the file, and a
// later Close has the error, once.
func TestCloseReportsLater(t *testing.T) {
	var released atomic.Int32
	f := mappedFilter(t, 100, &released, errDisk)
	first, err := f.KeepOpen()
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.KeepOpen()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Close(); !errors.Is(err, storage.ErrAgain) || errors.Is(err, errDisk) || released.Load() != 0 {
			t.Errorf("two at work: %v, released %d times", err, released.Load())
		}
	}
	if _, err := f.KeepOpen(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("held after Close: %v", err)
	}
	if _, err := f.Contains(keys.Int64s([]int64{1}), nil); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("asked after Close: %v", err)
	}
	if b := f.Bloom(); b == nil || !f.Mapped() || f.FPR() > 0.1 || math.IsNaN(f.FPR()) || math.IsNaN(f.Count().Keys) {
		t.Errorf("what is held is gone: %v", b)
	}
	first()
	if released.Load() != 0 {
		t.Error("released although a call is at work")
	}
	second()
	if released.Load() != 1 || f.Bloom() != nil || f.Mapped() || !math.IsNaN(f.FPR()) || !math.IsNaN(f.Count().Keys) {
		t.Errorf("released %d times, mapped %t", released.Load(), f.Mapped())
	}
	if err := f.Close(); !errors.Is(err, errDisk) {
		t.Errorf("the error of the release: %v", err)
	}
	if err := f.Close(); err != nil || released.Load() != 1 {
		t.Errorf("closed again: %v, released %d times", err, released.Load())
	}
}

// Filters that are not mapped answer after Close as before, also at the same time.
func TestCloseUnmapped(t *testing.T) {
	for _, kind := range []Kind{KindBloom, KindExact} {
		v := keys.Uint64s(upTo(1000))
		f := asked(t, []keys.Class{keys.Integer}, 0, kind, v)
		var done sync.WaitGroup
		for range 4 {
			done.Go(func() {
				for range 20 {
					if rows, err := f.Probe(v, nil); err != nil || len(rows) != 1000 {
						t.Errorf("%s: %d rows, error %v", kind, len(rows), err)
					}
					if err := f.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done.Wait()
	}
}

// noFilters are those that no call can do anything with.
func noFilters() map[string]*Filter {
	without := func(set func(f *Filter)) *Filter {
		f := exactFilter([]uint64{1}, false)
		set(f)
		return f
	}
	return map[string]*Filter{
		"nil": nil, "zero": {},
		"SetBloom(nil)":  without(func(f *Filter) { f.SetBloom(nil) }),
		"SetBloom(zero)": without(func(f *Filter) { f.SetBloom(new(bloom.Filter)) }),
		"SetExact(nil)":  without(func(f *Filter) { f.SetExact(nil) }),
	}
}

func TestNoFilter(t *testing.T) {
	one := keys.Int64s([]int64{1})
	for name, f := range noFilters() {
		for call, do := range map[string]func() error{
			"Contains":        func() error { _, err := f.Contains(one, nil); return err },
			"Probe":           func() error { _, err := f.Probe(one, nil); return err },
			"ProbeBatch":      func() error { _, err := f.ProbeBatch(&keys.Batch{}, nil); return err },
			"ProbeBatch(nil)": func() error { _, err := f.ProbeBatch(nil, nil); return err },
			"Digest":          func() error { _, err := f.Digest(); return err },
			"Encode":          func() error { _, err := Encode(io.Discard, f, Options{}); return err },
			"Save":            func() error { _, err := Save(t.Context(), storage.Local(), t.TempDir()+"/f", f, Options{}); return err },
		} {
			if err := do(); !errors.Is(err, ErrInvalid) {
				t.Errorf("%s of %s filter: %v", call, name, err)
			}
		}
		if !math.IsNaN(f.FPR()) || !math.IsNaN(f.Count().Keys) || f.Bytes() != 0 || f.Empty() || !f.Any(1, 2, true) || f.Kind() != 0 || f.Mapped() || f.Bloom() != nil || f.Exact() != nil {
			t.Errorf("%s: rate %v, count %v, %d bytes, kind %v", name, f.FPR(), f.Count(), f.Bytes(), f.Kind())
		}
		if _, ok := f.Within(0, 9, true, 9); ok {
			t.Errorf("%s: lists members", name)
		}
		for _, column := range []int{-1, 0, 5} {
			if lo, _, ok := f.KeyRange(column); ok {
				t.Errorf("%s: key range from %x", name, lo)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	var none *Filter
	none.SetBloom(bloomOf(t, bloom.Split256, 10, nil))
	none.SetExact(nil)
	if _, err := none.KeyOptions(); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	if none.Header() != nil || none.Sealed() || none.KeyNames() != nil || none.KeyClasses() != nil || none.Normal() != "" {
		t.Error("a nil filter has a header")
	}
}

// Arguments without which nothing can be done are errors.
func TestNilArguments(t *testing.T) {
	f := exactFilter([]uint64{1}, false)
	bits := bloomOf(t, bloom.Split256, 10, nil)
	file := encode(t, f, Options{})
	name := t.TempDir() + "/f"
	for call, do := range map[string]func() error{
		"Load(nil store)":      func() error { _, err := Load(t.Context(), nil, name, Limits{}); return err },
		"Load without a name":  func() error { _, err := Load(t.Context(), storage.Local(), "", Limits{}); return err },
		"Save(nil store)":      func() error { _, err := Save(t.Context(), nil, name, f, Options{}); return err },
		"Save without a name":  func() error { _, err := Save(t.Context(), storage.Local(), "", f, Options{}); return err },
		"Holds(nil store)":     func() error { _, err := (*Other)(nil).Holds(t.Context(), nil, name, nil); return err },
		"Encode(nil)":          func() error { _, err := Encode(nil, f, Options{}); return err },
		"DecodeHeader(nil)":    func() error { _, err := DecodeHeader(nil, 10, "x"); return err },
		"Decode(nil)":          func() error { _, err := Decode(nil, 10, "x", Limits{}); return err },
		"nil Header.Load":      func() error { _, err := (*Header)(nil).Load(Limits{}); return err },
		"zero Header.Load":     func() error { _, err := new(Header).Load(Limits{}); return err },
		"zero Header.Verify":   func() error { return new(Header).Verify() },
		"zero LoadMapped":      func() error { _, err := new(Header).LoadMapped(file, nil); return err },
		"OrInto(bits, nil)":    func() error { return OrInto(t.Context(), bits, nil) },
		"OrInto(nil, header)":  func() error { return OrInto(t.Context(), nil, header(t, file, "f")) },
		"OrInto(zero, header)": func() error { return OrInto(t.Context(), new(bloom.Filter), header(t, file, "f")) },
	} {
		if err := do(); err == nil {
			t.Errorf("%s: no error", call)
		}
	}
	if (*Header)(nil).Digest() != [32]byte{} || new(Header).Digest() != [32]byte{} {
		t.Error("a header of nothing has a digest")
	}
	if err := OrInto(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if _, err := Save(t.Context(), storage.Local(), name, f, Options{}); err != nil {
		t.Fatal(err)
	}
	if ok, err := (*Other)(nil).Holds(t.Context(), storage.Local(), name, nil); err != nil || !ok {
		t.Errorf("any filter: %t, %v", ok, err)
	}
}

// A nil context panics at once, on the caller's goroutine, and says where.
func TestNilContext(t *testing.T) {
	for want, do := range map[string]func(){
		"codec.Load: nil context":     func() { _, _ = Load(nil, storage.Local(), "f", Limits{}) },               //nolint:staticcheck // the mistake
		"codec.Save: nil context":     func() { _, _ = Save(nil, storage.Local(), "f", new(Filter), Options{}) }, //nolint:staticcheck // the mistake
		"filters.Holds: nil context":  func() { _, _ = (*Other)(nil).Holds(nil, storage.Local(), "f", nil) },     //nolint:staticcheck // the mistake
		"filters.OrInto: nil context": func() { _ = OrInto(nil, nil) },                                           //nolint:staticcheck // the mistake
	} {
		func() {
			defer func() {
				if r := recover(); r != want {
					t.Errorf("%v, want %s", r, want)
				}
			}()
			do()
		}()
	}
}

// Calls that end and several Closes meet: the file is unmapped once, by one that is told
// the error.
func TestCloseAtOnce(t *testing.T) {
	failed := errors.New("failed")
	for range cases.Count(200, 200, 10_000) {
		unmapped, told := 0, atomic.Int32{}
		m := &mapping{unmap: func() error { unmapped++; return failed }}
		var wg sync.WaitGroup
		for range 4 {
			if err := m.enter(); err != nil {
				t.Fatal(err)
			}
		}
		for range 4 {
			wg.Go(m.leave)
			wg.Go(func() {
				for {
					err := m.close()
					if errors.Is(err, failed) {
						told.Add(1)
					}
					if !errors.Is(err, storage.ErrAgain) {
						return
					}
				}
			})
		}
		wg.Wait()
		if unmapped != 1 || told.Load() != 1 {
			t.Fatalf("unmapped %d times, the error told %d times: want 1 each", unmapped, told.Load())
		}
	}
}
