package builds

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/storage"
)

// randomFilter returns a filter of random keys.
func randomFilter(t testing.TB, g bloom.Geometry, blocks uint64, keys int, part *filters.Partial) *filters.Filter {
	t.Helper()
	b, err := bloom.New(bloom.Params{Geometry: g, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: blocks})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, uint64(keys)))
	if part != nil {
		r = rand.New(rand.NewPCG(2, uint64(part.Held[0])))
	}
	hashes := make([]uint64, keys)
	for i := range hashes {
		hashes[i] = r.Uint64()
	}
	b.Add(hashes)
	f := filters.New(filters.Facts{
		Key: []filters.KeyColumn{{Name: "id", Class: "integer"}}, NormalForm: "1",
		Keys: uint64(keys), FPRAsked: 0.01, BuildID: [32]byte{1}, Partial: part,
	})
	f.SetBloom(b)
	return f
}

func sameBits(a, b *bloom.Filter) bool {
	return a.Params() == b.Params() &&
		bytes.Equal(a.AppendBlocks(nil, 0, a.Params().Blocks), b.AppendBlocks(nil, 0, b.Params().Blocks))
}

// A file is mapped if possible, and read otherwise, with the same result.
func TestReadMapsWhatItCan(t *testing.T) {
	local := storage.Local()
	mem := newStore()
	for _, g := range bloom.Geometries() {
		f := randomFilter(t, g, 50_000, 40_000, nil)
		want, err := f.Digest()
		if err != nil {
			t.Fatal(err)
		}
		for _, opts := range []filters.Options{{}, {Uncompressed: true}} {
			for _, store := range []storage.Storage{local, mem} {
				name := filepath.Join(t.TempDir(), "f")
				if _, err := filters.Save(t.Context(), store, name, f, opts); err != nil {
					t.Fatal(err)
				}
				mapped := store == local && opts.Uncompressed && unix()
				for _, lim := range []filters.Limits{{MaxBytes: 1000}, {MaxBytes: 1 << 30, MaxBits: 1000}} {
					f, err := filters.Load(t.Context(), store, name, lim)
					if mapped && err == nil {
						err = f.Close() // a map counts as the system's cache
					} else if errors.Is(err, filters.ErrLimit) {
						err = nil
					}
					if err != nil {
						t.Errorf("%+v: %v", lim, err)
					}
				}
				got, err := filters.Load(t.Context(), store, name, filters.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if d, err := got.Digest(); err != nil || d != want || !sameBits(got.Bloom(), f.Bloom()) {
					t.Errorf("%v: another filter, error %v", opts, err)
				}
				if got.Mapped() != mapped {
					t.Errorf("%v, %T: mapped %t", opts, store, got.Mapped())
				}
				if err := got.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// unix reports whether Local maps files and filters may be mapped.
func unix() bool {
	_, err := bloom.View(bloom.Params{Geometry: bloom.Split512, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: 1}, make([]byte, 64))
	return runtime.GOOS != "windows" && runtime.GOOS != "plan9" && err == nil
}

// Damage to a mapped file is found as in any other, and a change during use is
// reported by Close.
func TestReadMappedDamage(t *testing.T) {
	f := randomFilter(t, bloom.Split512, 50_000, 40_000, nil)
	name := filepath.Join(t.TempDir(), "f.bjf")
	if _, err := filters.Save(t.Context(), storage.Local(), name, f, filters.Options{Uncompressed: true}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 1
	if err := os.WriteFile(name, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := filters.Load(t.Context(), storage.Local(), name, filters.Limits{}); !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), "f.bjf: corrupt: chunk 1: checksum: want ") {
		t.Errorf("damaged: %v", err)
	}
	if err := os.WriteFile(name, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := filters.Load(t.Context(), storage.Local(), name, filters.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Mapped() {
		t.Skip("files are not mapped here")
	}
	if err := os.Truncate(name, int64(len(whole))-1); err != nil {
		t.Fatal(err)
	}
	if err := got.Close(); err == nil || !strings.Contains(err.Error(), "changed while") {
		t.Errorf("closing a filter whose file changed: %v", err)
	}
}

// stubborn is a source that claims to be mappable but fails to map.
type stubborn struct{ storage.Reader }

func (stubborn) Map() ([]byte, func() error, error) { return nil, nil, errors.New("no map today") }

type stubbornStore struct{ *memStore }

func (s stubbornStore) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	src, err := s.memStore.Open(ctx, o)
	return stubborn{src}, err
}

func TestReadFallsBack(t *testing.T) {
	s := newStore()
	f := randomFilter(t, bloom.Split512, 500, 400, nil)
	if _, err := filters.Save(t.Context(), s, "f", f, filters.Options{Uncompressed: true}); err != nil {
		t.Fatal(err)
	}
	got, err := filters.Load(t.Context(), stubbornStore{s}, "f", filters.Limits{})
	if err != nil || got.Mapped() || !sameBits(got.Bloom(), f.Bloom()) {
		t.Errorf("error %v", err)
	}
}

// Partial Bloom filters of several chunks, merged in any order and stored in any
// way, equal the filter of all keys.
func TestMergeOfManyChunks(t *testing.T) {
	const of = 9
	for _, g := range bloom.Geometries() {
		s := newStore()
		var names []string
		all := randomFilter(t, g, 72_000, 0, nil)
		r := rand.New(rand.NewPCG(9, 9))
		for i := range uint32(of) {
			p := randomFilter(t, g, 72_000, 3000+r.IntN(90_000), &filters.Partial{Of: of, Held: []uint32{i}})
			if err := all.Bloom().Union(p.Bloom()); err != nil {
				t.Fatal(err)
			}
			all.Facts().Keys += p.Facts().Keys
			names = append(names, string('a'+rune(i)))
			if _, err := filters.Save(t.Context(), s, names[i], p, filters.Options{Uncompressed: i%3 == 0}); err != nil {
				t.Fatal(err)
			}
		}
		r.Shuffle(of, func(i, j int) { names[i], names[j] = names[j], names[i] })
		got, err := MergeFiles(t.Context(), s, names, true, filters.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Facts().Keys != all.Facts().Keys || !sameBits(got.Bloom(), all.Bloom()) {
			t.Errorf("%s: %d keys, want %d; or other bits", g, got.Facts().Keys, all.Facts().Keys)
		}
	}
}
