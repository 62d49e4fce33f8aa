package enc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
)

// Each function is compared with the simple way: decode everything, then pick.

// selections returns positions below n: none, all, the ends, runs, and scattered
// ones of several densities.
func selections(rng *rand.Rand, n int) [][]uint32 {
	all := make([]uint32, n)
	for i := range all {
		all[i] = uint32(i)
	}
	out := [][]uint32{nil, all}
	if n > 0 {
		from := rng.IntN(n)
		out = append(out, all[from:], all[:from], all[from:from+1], []uint32{uint32(n - 1)})
	}
	for _, one := range []int{2, 10, 100} {
		out = append(out, pick(rng, n, one, 1), pick(rng, n, 2*one, 20))
	}
	return out
}

// pick returns runs of up to longest positions, separated by random gaps of about
// the given size.
func pick(rng *rand.Rand, n, gap, longest int) (sel []uint32) {
	for i := rng.IntN(gap + 1); i < n; i += 1 + rng.IntN(gap) {
		for range 1 + rng.IntN(longest) {
			if i < n {
				sel = append(sel, uint32(i))
				i++
			}
		}
	}
	return sel
}

// prefix is in dst before a call and must be kept.
var prefix = []byte("kept")

func appended(t *testing.T, got, want []byte) {
	t.Helper()
	if !bytes.HasPrefix(got, prefix) || !bytes.Equal(got[len(prefix):], want) {
		t.Fatalf("got %d bytes, want %d: %x, not %x", len(got)-len(prefix), len(want), got, want)
	}
}

func checkGatherFixed(t *testing.T, src []byte, width int, sel []uint32) {
	t.Helper()
	var want []byte
	for _, i := range sel {
		want = append(want, src[int(i)*width:][:width]...)
	}
	appended(t, GatherFixed(bytes.Clone(prefix), src, width, sel), want)
}

func TestGatherFixed(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 1))
	for _, width := range []int{1, 2, 3, 4, 5, 8, 12, 16, 17, 33} {
		for _, n := range []int{0, 1, 7, 8, 9, 300} {
			src := randomString(rng, n*width)
			for _, sel := range selections(rng, n) {
				checkGatherFixed(t, src, width, sel)
			}
		}
	}
}

func randomString(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func checkGatherBools(t *testing.T, src []byte, sel []uint32) {
	t.Helper()
	want := make([]byte, (len(sel)+7)/8)
	for k, i := range sel {
		if src[i/8]>>(i%8)&1 == 1 {
			want[k/8] |= 1 << (k % 8)
		}
	}
	dirty := append(bytes.Clone(prefix), bytes.Repeat([]byte{0xff}, len(want))...)
	appended(t, GatherBools(dirty[:len(prefix)], src, sel), want)
}

func TestGatherBools(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 2))
	for _, n := range []int{0, 1, 7, 8, 9, 63, 64, 65, 1000} {
		src := randomString(rng, (n+7)/8)
		for _, sel := range selections(rng, n) {
			checkGatherBools(t, src, sel)
		}
	}
}

// checkGatherByteArrays compares with CheckPlain, which may refuse src.
func checkGatherByteArrays(t *testing.T, src []byte, n int, sel []uint32) {
	t.Helper()
	got, err := exactly(GatherByteArrays(bytes.Clone(prefix), src, n, sel))
	if _, wrong := exactly(CheckPlain(format.ByteArray, 0, src, n)); !errors.Is(err, wrong) || (err == nil) != (wrong == nil) {
		t.Fatalf("%d of %d values: %v, want %v", len(sel), n, err, wrong)
	}
	if err != nil {
		return
	}
	var want []byte
	next := 0
	for i := range uint32(n) {
		size := 4 + int(binary.LittleEndian.Uint32(src))
		if next < len(sel) && sel[next] == i {
			want = append(want, src[:size]...)
			next++
		}
		src = src[size:]
	}
	appended(t, got, want)
}

func TestGatherByteArrays(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 3))
	for _, n := range []int{0, 1, 2, 7, 20, 500} {
		for _, spread := range []int{1, 2, 40} { // equal lengths, and different ones
			var src []byte
			for range n {
				size := 36
				if rng.IntN(spread) > 0 {
					size = rng.IntN(spread)
				}
				src = binary.LittleEndian.AppendUint32(src, uint32(size))
				src = append(src, randomString(rng, size)...)
			}
			for _, sel := range selections(rng, n) {
				checkGatherByteArrays(t, src, n, sel)
				checkGatherByteArrays(t, append(bytes.Clone(src), 0), n, sel)
				checkGatherByteArrays(t, src, n+1, sel)
				if n > 0 {
					checkGatherByteArrays(t, src[:len(src)-1], n, sel)
					cut := src[:rng.IntN(len(src))]
					checkGatherByteArrays(t, cut, n, sel)
					wild := bytes.Clone(src)
					wild[rng.IntN(len(wild))] ^= 1 << rng.IntN(8)
					checkGatherByteArrays(t, wild, n, sel)
				}
			}
		}
	}
}

// checkGatherHybrid compares with DecodeHybrid.
func checkGatherHybrid(t *testing.T, src []byte, n int, width uint, limit uint32, sel []uint32) {
	t.Helper()
	all := make([]uint32, n)
	wrong := DecodeHybrid(all, src, width, 1<<32-1)
	var want []uint32
	for _, i := range sel {
		if wrong == nil && all[i] > limit {
			wrong = ErrBound
		}
		want = append(want, all[i])
	}
	got, err := GatherHybrid([]uint32{7}, src, n, width, limit, sel)
	if (err == nil) != (wrong == nil) {
		t.Fatalf("width %d, %d of %d values up to %d: %v, want %v", width, len(sel), n, limit, err, wrong)
	}
	if err == nil && (got[0] != 7 || !slices.Equal(got[1:], want)) {
		t.Fatalf("width %d, %d of %d values: got %v, want %v", width, len(sel), n, got[1:], want)
	}
}

func TestGatherHybrid(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 4))
	for width := uint(1); width <= 32; width++ {
		for _, n := range []int{0, 1, 7, 8, 9, 400} {
			src := hybridSource(t, rng, n, width)
			for _, sel := range selections(rng, n) {
				checkGatherHybrid(t, src, n, width, 1<<32-1, sel)
				checkGatherHybrid(t, src, n, width, 1<<(width-1), sel)
				checkGatherHybrid(t, src, n+8, width, 1<<32-1, sel)
				checkGatherHybrid(t, src[:len(src)/2], n, width, 1<<32-1, sel)
			}
		}
	}
	if got, err := GatherHybrid(nil, nil, 10, 0, 0, []uint32{2, 9}); err != nil || !slices.Equal(got, []uint32{0, 0}) {
		t.Errorf("width 0: %v, %v", got, err)
	}
}

// hybridSource is n values with repeats, encoded by parquet-go.
func hybridSource(t testing.TB, rng *rand.Rand, n int, width uint) []byte {
	v := make([]int32, n)
	for i := range v {
		if i > 0 && rng.IntN(30) > 0 && (i/50)%2 == 0 {
			v[i] = v[i-1]
		} else {
			v[i] = int32(rng.Uint64() & (1<<width - 1))
		}
	}
	src, err := (&rle.Encoding{BitWidth: int(width)}).EncodeInt32(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestSelectLevels(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 5))
	for _, n := range []int{0, 1, 7, 8, 9, 500} {
		for _, top := range []uint8{1, 2, 7, 255} {
			levels := make([]uint8, n)
			for i := range levels {
				levels[i] = uint8(rng.IntN(int(top) + 1))
			}
			for level := range top {
				want := 0
				for _, l := range levels {
					if l == level+1 {
						want++
					}
				}
				if got := CountLevels(levels, level+1); got != want {
					t.Fatalf("%d of %d levels are %d, not %d", want, n, level+1, got)
				}
			}
			for _, sel := range selections(rng, n) {
				var picked []uint8
				var values []uint32
				for _, i := range sel {
					picked = append(picked, levels[i])
					if levels[i] == top {
						values = append(values, uint32(bytes.Count(levels[:i], []byte{top})))
					}
				}
				if got := SelectLevels(nil, levels, sel); !bytes.Equal(got, picked) {
					t.Fatalf("levels %v, not %v", got, picked)
				}
				if got := SelectValues(nil, levels, top, sel); !slices.Equal(got, values) {
					t.Fatalf("values %v, not %v", got, values)
				}
			}
		}
	}
}
