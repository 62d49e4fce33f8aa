package filters

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"
	"unsafe"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

func noUnmap() error { return nil }

// decodeBoth decodes b and, if possible, also loads it in place. It expects the
// same filter or the same error from both.
func decodeBoth(t testing.TB, b []byte, lim Limits) (*Filter, error) {
	t.Helper()
	const name = "test.bjf"
	f, err := Decode(bytes.NewReader(b), int64(len(b)), name, lim)
	unpanicked(t, err)
	h, headErr := DecodeHeader(bytes.NewReader(b), int64(len(b)), name)
	if headErr != nil || !h.mappable() || errors.Is(err, ErrLimit) { // which a map does not have
		return f, err
	}
	if uintptr(unsafe.Pointer(&b[0]))%8 != 0 {
		b = bytes.Clone(b)
	}
	g, mapErr := h.LoadMapped(b, noUnmap)
	if (err == nil) != (mapErr == nil) || err != nil && err.Error() != mapErr.Error() {
		t.Errorf("read: %v; in place: %v", err, mapErr)
	}
	if err == nil && mapErr == nil && describe(t, f) != describe(t, g) {
		t.Errorf("read:\n%s\nin place:\n%s", describe(t, f), describe(t, g))
	}
	return f, err
}

// unpanicked expects that err, if any, comes from a check and not from a recovered
// panic.
func unpanicked(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, panics.ErrRecovered) {
		t.Errorf("a recovered panic: %v", err)
	}
}

func TestLoadMapped(t *testing.T) {
	for _, g := range bloom.Geometries() {
		f := splitFilter(t, g, 40_001, keysFrom(1, 9000)) // several chunks, the last one short
		file := encode(t, f, Options{Uncompressed: true})
		if _, err := decodeBoth(t, file, Limits{}); err != nil {
			t.Fatal(err)
		}
		h := header(t, file, "f")
		closed := 0
		m, err := h.LoadMapped(file, func() error { closed++; return errDisk })
		if err != nil || !m.Mapped() {
			t.Fatalf("mapped %t, error %v", m.Mapped(), err)
		}
		// The bits are those of the file; changes go to a copy.
		probe := keysFrom(77, 1)
		before := m.Bloom().Contains(probe[0])
		m.Bloom().Add(probe)
		if before || !m.Bloom().Contains(probe[0]) || describe(t, decode(t, file)) != describe(t, f) {
			t.Error("a change went into the file")
		}
		if err := m.Close(); !errors.Is(err, errDisk) || closed != 1 || m.Bloom() != nil || m.Mapped() {
			t.Errorf("close: %v, %d times", err, closed)
		}
		if err := m.Close(); err != nil || closed != 1 {
			t.Errorf("closed again: %v, %d times", err, closed)
		}
		if _, err := m.Digest(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("digest of a closed filter: %v", err)
		}
	}
	f := bloomFilter(t, 10, nil)
	if err := f.Close(); err != nil || f.Bloom() == nil {
		t.Errorf("closing what is not mapped: %v, payload %v", err, f.Bloom())
	}
}

func TestLoadMappedRefuses(t *testing.T) {
	unmapped := func() error { t.Error("unmapped what is the caller's"); return nil }
	flat := encode(t, bloomFilter(t, 300, keysFrom(1, 20)), Options{Uncompressed: true})
	h := header(t, flat, "flat.bjf")
	for name, c := range map[string]struct {
		h    *Header
		file []byte
		want error
	}{
		"compressed": {header(t, encode(t, bloomFilter(t, 300, keysFrom(1, 20)), Options{}), "x"), flat, fault.ErrUnsupported},
		"exact":      {header(t, encode(t, exactFilter(dense(1, 20), false), Options{Uncompressed: true}), "x"), flat, fault.ErrUnsupported},
		"short":      {h, flat[:len(flat)-1], fault.ErrCorrupt},
		"long":       {h, append(bytes.Clone(flat), 0), fault.ErrCorrupt},
		"odd":        {h, append(make([]byte, 1, len(flat)+8), flat...)[1:], fault.ErrUnsupported},
	} {
		f, err := c.h.LoadMapped(c.file, unmapped)
		if f != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
