package exact

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// FuzzRoaring: the check before the decoder accepts exactly what the encoder
// writes.
func FuzzRoaring(f *testing.F) {
	for _, b := range roaringSamples(f) {
		f.Add(b)
	}
	f.Fuzz(checkForm)
}

func checkForm(t *testing.T, b []byte) {
	if _, p := checkBitmaps(b); p != nil {
		return
	}
	set, err := unmarshalRoaring(make([]byte, 8), b)
	if err != nil {
		t.Fatalf("the check lets through what the decoder refuses: %v", err)
	}
	if _, again, err := set.marshalRoaring(); err != nil || !bytes.Equal(again, b) {
		t.Fatalf("the check lets through what the encoder does not write, %v", err)
	}
}

// roaringSamples returns sets of every form.
func roaringSamples(t testing.TB) [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	var samples [][]byte
	for i := range 60 {
		s := New()
		for range r.IntN(5) {
			base := r.Uint64() >> r.IntN(64)
			var values []uint64
			for j, n := uint64(0), r.Uint64N(9000); j < n; j++ {
				switch i % 4 {
				case 0:
					values = append(values, base+j)
				case 1:
					values = append(values, base+j*7)
				case 2:
					values = append(values, base+r.Uint64N(1<<17))
				case 3:
					values = append(values, base+j/5*9+j%5)
				}
			}
			s.Add(values, false)
		}
		_, b, err := s.marshalRoaring()
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, b)
	}
	return samples
}

func TestRoaringForm(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i, b := range roaringSamples(t) {
		if _, p := checkBitmaps(b); p != nil {
			t.Fatalf("sample %d: %v", i, p)
		}
		for range 100 {
			c := bytes.Clone(b)
			c[r.IntN(min(len(c), 1+r.IntN(len(c))))] ^= 1 << r.IntN(8)
			checkForm(t, c)
		}
		if _, p := checkBitmaps(b[:len(b)-1]); p == nil {
			t.Errorf("sample %d: cut short and accepted", i)
		}
	}
}

// Forms that other writers may choose are not canonical.
func TestRoaringOtherForms(t *testing.T) {
	m := roaring64.New()
	m.AddRange(0, 5000) // a bitmap, unless RunOptimize is called
	plain, err := m.ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	m.RunOptimize()
	runs, err := m.ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		b  []byte
		ok bool
	}{
		"empty":           {make([]byte, 8), true},
		"nothing":         {nil, false},
		"runs":            {runs, true},
		"twice":           {append(bytes.Clone(runs), runs...), false},
		"one of two":      {append(binary.LittleEndian.AppendUint64(nil, 2), runs[8:]...), false},
		"same high twice": {append(append(binary.LittleEndian.AppendUint64(nil, 2), runs[8:]...), runs[8:]...), false},
	} {
		if _, p := checkBitmaps(c.b); (p == nil) != c.ok {
			t.Errorf("%s: %v", name, p)
		}
	}
	if !bytes.Equal(plain, runs) {
		if _, p := checkBitmaps(plain); p == nil {
			t.Error("a bitmap of one run was accepted")
		}
	}
}
