package filters

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// unreadOf returns the file of a filter of three chunks, over integers.
func unreadOf(t testing.TB) []byte {
	f := splitFilter(t, bloom.Split512, 3*chunkBytes/64, keysFrom(1, 1000))
	return encode(t, f, Options{Uncompressed: true})
}

// inChunk returns a value that is looked up in a chunk.
func inChunk(f *Filter, chunk uint64) uint64 {
	for v := uint64(0); ; v++ {
		var h [1]uint64
		f.facts.Params.Hash.Sum64(h[:], []uint64{v})
		if f.facts.Params.Block(h[0])*64/chunkBytes == chunk {
			return v
		}
	}
}

// A filter that was not read gives the answers of one that was, to goroutines at once.
func TestUnread(t *testing.T) {
	file := unreadOf(t)
	whole := decode(t, file)
	var values []uint64
	for v := range uint64(20_000) {
		values = append(values, v*v)
	}
	want, err := whole.Probe(keys.Uint64s(values), nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := header(t, file, "f").LoadUnread(bytes.Clone(file), noUnmap)
	if err != nil {
		t.Fatal(err)
	}
	if f.held.unread.left.Load() != 3 || f.Bytes() != whole.Bytes() {
		t.Fatalf("%d chunks were not read, %d bytes", f.held.unread.left.Load(), f.Bytes())
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got, err := f.Probe(keys.Uint64s(values), nil); err != nil || !slices.Equal(got, want) {
				t.Errorf("%d rows, want %d, error %v", len(got), len(want), err)
			}
		})
	}
	wg.Wait()
	if !f.held.unread.complete() {
		t.Error("not all was verified")
	}
	if f.FPR() != whole.FPR() || f.Count() != whole.Count() {
		t.Error("other figures")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Probe(keys.Uint64s(values), nil); err == nil || !math.IsNaN(f.FPR()) || f.Bloom() != nil {
		t.Error("a closed filter answers")
	}
}

// Each changed bit is found when it matters: in what is read at once, in the chunk that is
// asked, and before any use of all bits.
func TestUnreadDamaged(t *testing.T) {
	file := unreadOf(t)
	h := header(t, file, "f")
	sound, err := h.LoadUnread(bytes.Clone(file), noUnmap)
	if err != nil {
		t.Fatal(err)
	}
	probe := func(f *Filter, chunk uint64) error {
		_, err := f.Probe(keys.Uint64s([]uint64{inChunk(sound, chunk)}), nil)
		return err
	}
	payload, end := int(h.PayloadOffset), int(h.PayloadOffset)+3*chunkBytes
	for at := 0; at < len(file); at++ {
		if at > payload && at < end-1 && at%(chunkBytes/3) != 0 {
			continue
		}
		b := bytes.Clone(file)
		b[at] ^= 1 << (at % 8)
		g, err := DecodeHeader(bytes.NewReader(b), int64(len(b)), "f")
		var f *Filter
		if err == nil {
			f, err = g.LoadUnread(b, noUnmap)
		}
		switch {
		case at < payload || at >= end && at < len(file)-8:
			if err == nil {
				t.Fatalf("byte %d: not refused", at)
			}
			continue
		case err != nil:
			t.Fatalf("byte %d: %v", at, err)
		}
		for chunk := range uint64(3) {
			want := at < end && uint64(at-payload)/chunkBytes == chunk
			if err := probe(f, chunk); errors.Is(err, fault.ErrCorrupt) != want || err != nil && !want {
				t.Errorf("byte %d, chunk %d: %v", at, chunk, err)
			}
		}
		f, _ = g.LoadUnread(b, noUnmap)
		if _, err := f.KeepOpen(); !errors.Is(err, fault.ErrCorrupt) || f.Bloom() != nil || !math.IsNaN(f.FPR()) {
			t.Errorf("byte %d: all bits can be used: %v", at, err)
		}
	}
	for n := range 64 {
		if f, err := h.LoadUnread(file[:len(file)-1-n], noUnmap); f != nil || err == nil {
			t.Errorf("%d bytes less: no error", n+1)
		}
	}
}

// Exceptions do not pass, nothing else changes.
func TestExceptions(t *testing.T) {
	values := keysFrom(1, 1000)
	f := splitFilter(t, bloom.Split512, 32, nil)
	f.facts.Key, f.facts.NormalForm = []KeyColumn{{Class: "integer"}}, keys.NormalForm
	hashes := make([]uint64, len(values))
	xxh3Hash.Sum64(hashes, values)
	f.Bloom().Add(hashes)
	f.facts.Exceptions = &Exceptions{Hashes: hashSet(hashes[3], hashes[999], 12345)}
	got, err := f.Probe(keys.Uint64s(values), nil)
	if err != nil || len(got) != 998 || slices.Contains(got, 3) || slices.Contains(got, 999) {
		t.Errorf("%d rows, error %v", len(got), err)
	}
	texts := []string{"a", "b", "c", "b"}
	f = asked(t, []keys.Class{keys.Bytes}, 0, KindBloom, keys.Strings(texts))
	f.facts.Exceptions = &Exceptions{Hashes: hashSet(xxh3Hash.Sum([]byte("b")))}
	if got := rowsIn(t, f, keys.Strings(texts)); got != "[0 2]" {
		t.Errorf("rows %s", got)
	}
}

// Under url-host a host passes by itself or a parent domain, once.
func TestURLHost(t *testing.T) {
	f := asked(t, []keys.Class{keys.Bytes}, keys.URLHost, KindBloom, keys.Strings([]string{"http://Evil.com/x", "b.evil.com", "1.2.3.4", "uk"}))
	rows := rowsIn(t, f, keys.Strings([]string{
		"evil.com", "https://a.b.EVIL.com:1/", "notevil.com", "com", "1.2.3.4", "0.1.2.3.4", "x.co.uk.", "none here", "", "b.evil.com",
	}))
	if rows != "[0 1 4 6 9]" {
		t.Errorf("rows %s", rows)
	}
	f.facts.Exceptions = &Exceptions{Hashes: hashSet(xxh3Hash.Sum([]byte("evil.com")))}
	if rows := rowsIn(t, f, keys.Strings([]string{"evil.com", "a.evil.com", "a.b.evil.com"})); rows != "[2]" {
		t.Errorf("rows %s", rows)
	}
}
