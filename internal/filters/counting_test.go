package filters

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/counting"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// A counting filter that is loaded without its counters answers like a Bloom filter of the
// same keys, takes a quarter of the memory, has the identity of its file and cannot be written.
func TestLoadWithoutCounters(t *testing.T) {
	const blocks = 20_000 // several chunks
	values := keysFrom(4, 300_000)
	plain := bloomFilter(t, blocks, values)
	for _, opts := range []Options{{}, {Uncompressed: true}} {
		whole := countingFilter(t, blocks, false, values)
		file := encode(t, whole, opts)
		h := header(t, file, "test.bjf")
		if h.mappable() {
			t.Fatal("counters are not bits")
		}
		f, err := h.Load(Limits{MaxBytes: plain.Bytes()})
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind() != KindCounting || f.Counters() != nil || f.Bytes() != plain.Bytes() || whole.Bytes() != 5*plain.Bytes() {
			t.Fatalf("%s, %d bytes, with counters %d", f.Kind(), f.Bytes(), whole.Bytes())
		}
		for _, g := range []*Filter{f, whole, decode(t, file)} {
			if !bytes.Equal(g.Bloom().AppendBlocks(nil, 0, blocks), plain.Bloom().AppendBlocks(nil, 0, blocks)) {
				t.Error("the bits are not those of the keys")
			}
			if rows, err := g.Probe(keys.Uint64s(values), nil); err != nil || len(rows) != len(values) {
				t.Errorf("%d of %d keys found, %v", len(rows), len(values), err)
			}
		}
		a, err := f.Digest()
		if b, other := whole.Digest(); err != nil || other != nil || a != b || a != h.Digest() {
			t.Errorf("digests %x, %x, %x; %v", a, b, h.Digest(), err)
		}
		if _, err := Encode(new(bytes.Buffer), f, Options{}); !errors.Is(err, ErrInvalid) {
			t.Errorf("written without counters: %v", err)
		}
		for _, lim := range []Limits{{MaxBytes: plain.Bytes() - 1}, {MaxBytes: whole.Bytes() - 1, Counters: true}, {MaxBytes: 1 << 40, MaxBits: whole.Bytes() - 1, Counters: true}} {
			if _, err := h.Load(lim); !errors.Is(err, ErrLimit) {
				t.Errorf("%+v: %v", lim, err)
			}
		}
	}
}

func TestCountInto(t *testing.T) {
	const blocks = 9_000 // two chunks
	values := keysFrom(5, 50_000)
	file := func(values []uint64) *Header {
		return header(t, encode(t, countingFilter(t, blocks, true, values), Options{}), "test.bjf")
	}
	c := countingFilter(t, blocks, true, values[:20_000]).Counters()
	ctx := context.Background()
	if err := errors.Join(CountInto(ctx, c, file(values[20_000:]), false), CountInto(ctx, c, file(values[:30_000]), true)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(c.Counters(), countingFilter(t, blocks, true, values[30_000:]).Counters().Counters()) {
		t.Error("the counters are not those of the remaining keys")
	}
	if err := CountInto(ctx, c, file(values[:10]), true); !errors.Is(err, counting.ErrShort) {
		t.Errorf("subtracting keys that are not in: %v", err)
	}
	other, err := counting.New(bloom.Params{Geometry: bloom.Split256, Hash: xxh3Hash, Blocks: 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := CountInto(ctx, other, file(nil), false); err == nil {
		t.Error("counters of another size were added")
	}
}

// Every flipped bit, every cut and every byte at the end is noticed.
func TestDamageCounting(t *testing.T) {
	file := encode(t, countingFilter(t, 3, false, keysFrom(1, 20)), Options{})
	damage(t, file)
}
