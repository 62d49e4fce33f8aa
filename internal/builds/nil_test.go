package builds

import (
	"errors"
	"io/fs"
	"math"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Filters that cannot be asked cannot be combined, counted or checked either.
func TestNoFilters(t *testing.T) {
	good := built(t, codec.KindBloom)
	closed := mapped(t, good)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		f    *filters.Filter
		want error
	}{"nil": {nil, filters.ErrInvalid}, "zero": {new(filters.Filter), filters.ErrInvalid}, "closed": {closed, fs.ErrClosed}} {
		for call, do := range map[string]func() error{
			"Combine":         func() error { _, err := Combine(t.Context(), Union, c.f, good); return err },
			"Combine, second": func() error { _, err := Combine(t.Context(), Intersect, good, c.f); return err },
			"Combine, alone":  func() error { _, err := Combine(t.Context(), Union, c.f); return err },
			"Merge":           func() error { _, err := Merge(t.Context(), []*filters.Filter{c.f}, false); return err },
			"Merge, open":     func() error { _, err := Merge(t.Context(), []*filters.Filter{c.f, good}, true); return err },
			"Check":           func() error { return Check(c.f, Report{}) },
		} {
			if err := do(); !errors.Is(err, c.want) {
				t.Errorf("%s of a %s filter: %v", call, name, err)
			}
		}
		if rep := Count(c.f); rep != (Report{}) {
			t.Errorf("Count of a %s filter: %+v", name, rep)
		}
	}
	for call, do := range map[string]func() error{
		"MergeFiles": func() error {
			_, err := MergeFiles(t.Context(), nil, []string{"a"}, false, filters.Limits{})
			return err
		},
		"CombineFiles": func() error {
			_, err := CombineFiles(t.Context(), nil, Union, []string{"a"}, filters.Limits{})
			return err
		},
		"Compare":      func() error { _, _, err := Compare(t.Context(), nil, "a", "b", filters.Limits{}); return err },
		"no names":     func() error { _, err := MergeFiles(t.Context(), nil, nil, false, filters.Limits{}); return err },
		"no filters":   func() error { _, err := Merge(t.Context(), nil, false); return err },
		"an operation": func() error { _, err := Combine(t.Context(), "", good); return err },
		"Plain, nil":   func() error { _, err := Plain(nil); return err },
		"Plain, zero":  func() error { _, err := Plain(new(filters.Filter)); return err },
		"Plain, bits":  func() error { _, err := Plain(good); return err },
		"Update, nil":  func() error { _, err := UpdateValues(t.Context(), nil, keys.Values{}, keys.Values{}); return err },
		"Update, bits": func() error { _, err := UpdateValues(t.Context(), good, keys.Values{}, keys.Values{}); return err },
	} {
		if err := do(); err == nil {
			t.Errorf("%s: no error", call)
		}
	}
}

// A filter that is closed while it is combined, counted or checked stays readable
// until that is done.
func TestCombineWhileClosed(t *testing.T) {
	good := built(t, codec.KindBloom)
	want, err := good.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		f := mapped(t, good)
		ended := make(chan error)
		for _, call := range []func() error{
			func() error {
				u, err := Combine(t.Context(), Union, f, f)
				if err == nil {
					var d [32]byte
					if d, err = u.Digest(); err == nil && d != want {
						err = errors.New("another digest")
					}
				}
				return err
			},
			func() error {
				other := built(t, codec.KindExact)
				u, err := Combine(t.Context(), Union, f, other)
				if err == nil && math.Abs(u.Count().Keys-1000) > 100 {
					err = errors.New("another count")
				}
				return err
			},
			func() error { return Check(f, Report{Figures: Figures{Keys: 1000, Distinct: 1000}}) },
			func() error {
				if r := Count(f); r.Keys != 1000 && r != (Report{}) {
					return errors.New("another count")
				}
				return nil
			},
		} {
			go func() {
				for {
					if err := call(); err != nil || f.Bloom() == nil {
						ended <- err
						return
					}
				}
			}()
		}
		if err := f.Close(); err != nil && !errors.Is(err, storage.ErrAgain) {
			t.Error(err)
		}
		for range 4 {
			if err := <-ended; err != nil && !errors.Is(err, fs.ErrClosed) {
				t.Error(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// built returns a filter of 1000 integers.
func built(t testing.TB, kind codec.Kind) *filters.Filter {
	t.Helper()
	b, err := NewBuilder(Options{Key: "k::int64", Kind: kind, Expect: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	w, err := b.Worker()
	if err != nil {
		t.Fatal(err)
	}
	added := make([]int64, 1000)
	for i := range added {
		added[i] = int64(i)
	}
	if err := w.Add(keys.Int64s(added)); err != nil {
		t.Fatal(err)
	}
	f, _, err := b.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// mapped returns a filter over the file of f, where files can be mapped.
func mapped(t testing.TB, f *filters.Filter) *filters.Filter {
	t.Helper()
	name := t.TempDir() + "/f"
	if _, err := filters.Save(t.Context(), storage.Local(), name, f, filters.Options{Uncompressed: true}); err != nil {
		t.Fatal(err)
	}
	m, err := filters.Load(t.Context(), storage.Local(), name, filters.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !m.Mapped() {
		t.Skip("files cannot be mapped here")
	}
	return m
}
