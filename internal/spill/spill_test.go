package spill

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
)

// chunks returns chunks of many sizes, some of them compressible.
func chunks(rng *rand.Rand, n int) [][]byte {
	var all [][]byte
	for i := range n {
		size := rng.IntN(100)
		switch i % 7 {
		case 3:
			size = rng.IntN(3 * Window)
		case 5:
			size = rng.IntN(3 * extentBytes)
		}
		b := make([]byte, size)
		for j := range b {
			if b[j] = byte(i); i%2 == 0 {
				b[j] = byte(rng.Uint32())
			}
		}
		all = append(all, b)
	}
	return all
}

func readAll(s *Stream) ([][]byte, error) {
	var all [][]byte
	for r := s.Reader(); ; {
		b, err := r.Next(nil)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, b)
	}
}

func TestStreams(t *testing.T) {
	dir := t.TempDir()
	f := New(dir, "what waits")
	rng := rand.New(rand.NewPCG(1, 2))
	streams := f.Streams(5)
	want := make([][][]byte, 5)
	for round := range 3 {
		for i, c := range chunks(rng, 60) {
			s := rng.IntN(len(streams))
			if err := streams[s].Write(c, i%3 == 0); err != nil {
				t.Fatal(err)
			}
			want[s] = append(want[s], c)
		}
		for i, s := range streams {
			got, err := readAll(s)
			if err != nil || !slices.EqualFunc(got, want[i], bytes.Equal) {
				t.Fatalf("round %d, stream %d: %d chunks, want %d: %v", round, i, len(got), len(want[i]), err)
			}
		}
		streams[round].Free() // the others are unaffected
		want[round] = nil
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the file has a name: %v %v", left, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := streams[0].Write([]byte{1}, false); !errors.Is(err, os.ErrClosed) {
		t.Errorf("written after Close: %v", err)
	}
}

// Freed space is reused: the disk usage is the peak, not the sum.
func TestRoomIsUsedAgain(t *testing.T) {
	f := New(t.TempDir(), "")
	defer f.Close()
	const round = 4 * extentBytes
	for range 20 {
		s := f.Stream()
		for range 16 {
			if err := s.Write(make([]byte, round/16-headerBytes), false); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := readAll(s); err != nil {
			t.Fatal(err)
		}
		s.Free()
	}
	if f.Written() != 20*round || f.Disk() != round {
		t.Errorf("%d bytes were written, %d on disk; want %d and %d", f.Written(), f.Disk(), 20*round, round)
	}
}

func TestManyWriters(t *testing.T) {
	f := New(t.TempDir(), "")
	defer f.Close()
	streams := f.Streams(3)
	const writers, each = 8, 300
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(9, uint64(w)))
			for i := range each {
				c := append(fmt.Appendf(nil, "%d %d ", w, i), make([]byte, rng.IntN(5000))...)
				if err := streams[i%3].Write(c, i%2 == 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	seen := 0
	for _, s := range streams {
		last := make([]int, writers)
		got, err := readAll(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range got {
			var w, i int
			if _, err := fmt.Sscan(string(bytes.TrimRight(c, "\x00")), &w, &i); err != nil {
				t.Fatal(err)
			}
			if i < last[w] {
				t.Fatalf("chunk %d of writer %d after %d", i, w, last[w])
			}
			last[w] = i
			seen++
		}
	}
	if seen != writers*each {
		t.Errorf("%d chunks, want %d", seen, writers*each)
	}
}

// Every changed bit is detected, and no chunk is mistaken for another.
func TestChangedBytes(t *testing.T) {
	f := New(t.TempDir(), "keys that wait")
	defer f.Close()
	s := f.Stream()
	for _, c := range []string{"one", strings.Repeat("two", 30), "three"} {
		if err := s.Write([]byte(c), true); err != nil {
			t.Fatal(err)
		}
	}
	was := make([]byte, s.size)
	if _, err := f.file.ReadAt(was, 0); err != nil {
		t.Fatal(err)
	}
	try := func(what string, b []byte) {
		if _, err := f.file.WriteAt(b, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(s); !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), "keys that wait") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for bit := range 8 * len(was) {
		b := slices.Clone(was)
		b[bit/8] ^= 1 << (bit % 8)
		try(fmt.Sprint("bit ", bit), b)
	}
	first, last := was[:headerBytes+3], was[len(was)-headerBytes-5:]
	try("other order", slices.Concat(last, was[len(first):len(was)-len(last)], first))
	if _, err := f.file.WriteAt(was, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(s); err != nil {
		t.Errorf("as it was: %v", err)
	}
	if err := f.file.Truncate(s.size - 1); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(s); !errors.Is(err, fault.ErrCorrupt) {
		t.Errorf("cut short: %v", err)
	}
}

// Errors of the disk are passed on.
func TestFailingDisk(t *testing.T) {
	f := New(t.TempDir()+"/none", "keys that wait (say TempDir)")
	if err := f.Stream().Write([]byte("x"), false); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "TempDir") {
		t.Errorf("no directory: %v", err)
	}
	f = New(t.TempDir(), "keys that wait")
	s := f.Stream()
	if err := s.Write([]byte("x"), false); err != nil {
		t.Fatal(err)
	}
	f.file.Close()
	if err := s.Write([]byte("y"), false); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a write that fails: %v", err)
	}
	if _, err := readAll(s); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a read that fails: %v", err)
	}
}

func FuzzPairs(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint8(3), uint8(60))
	f.Add(bytes.Repeat([]byte{255, 0, 7, 9, 1}, 30), uint8(0), uint8(64))
	f.Add(AppendPairs(nil, []Pair{{1, 2}, {^uint64(0), 5}}), uint8(64), uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, bitsA, bitsB uint8) {
		if got, err := Pairs(nil, b); err == nil && len(got) > len(b) && len(b) != pairsHead {
			t.Fatalf("%d pairs in %d bytes", len(got), len(b))
		}
		var in []Pair
		for ; len(b) >= 16; b = b[16:] {
			v, _ := Ints(nil, b[:16])
			in = append(in, Pair{v[0] >> (64 - min(bitsA, 64)), v[1] >> (64 - min(bitsB, 64))})
		}
		if len(in) == 0 {
			return
		}
		in[0].A = -in[0].A
		out := AppendPairs([]byte("before"), in)
		got, err := Pairs(make([]Pair, 3), out[6:])
		if err != nil || !slices.Equal(got, in) {
			t.Fatalf("%v, want %v: %v", got, in, err)
		}
	})
}

func BenchmarkPairs(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	in := make([]Pair, 4096)
	for i := range in {
		in[i] = Pair{rng.Uint64N(200e6), uint64(i / 500)}
	}
	var buf []byte
	var out []Pair
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			buf = AppendPairs(buf[:0], in)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(in)), "ns/pair")
		b.ReportMetric(float64(len(buf))/float64(len(in)), "bytes/pair")
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			out, _ = Pairs(out, buf)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(in)), "ns/pair")
	})
}
