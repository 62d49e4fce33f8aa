package dedup

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/key"
)

// A ring that is saved and loaded between batches answers like a map, for several kinds of keys.
func TestLikeMap(t *testing.T) {
	const slots = 6
	random := rand.New(rand.NewPCG(5, 6))
	for name, values := range map[string]func([]int64) key.Values{
		"integers": key.Int64s,
		"strings": func(v []int64) key.Values {
			s := make([]string, len(v))
			for i, n := range v {
				s[i] = string(rune('a' + n))
			}
			return key.Strings(s)
		},
		"pairs": func(v []int64) key.Values { return key.Columns(key.Int64s(v), key.Int64s(v)) },
	} {
		r, err := New(Options{Expect: 5000, FPR: 1e-9, Window: slots * time.Second, Slots: slots})
		if err != nil {
			t.Fatal(err)
		}
		last, newest, late := map[int64]int64{}, int64(-1<<40), uint64(0)
		for batch := range 30 {
			ids, times, valid := make([]int64, 50), make([]int64, 50), make([]bool, 50)
			var want []bool
			for i := range ids {
				ids[i], valid[i] = random.Int64N(60), random.IntN(9) > 0
				slot := int64(batch) - random.Int64N(slots+2)/(1+random.Int64N(3))
				times[i] = slot*1e9 + random.Int64N(1e9)
				seen := false
				if valid[i] {
					newest = max(newest, slot)
					at, ok := last[ids[i]]
					switch {
					case slot <= newest-slots:
						late++
					case ok && at > newest-slots:
						seen = true
					default:
						last[ids[i]] = slot
					}
				}
				want = append(want, seen)
			}
			got, err := r.Seen([]bool{true}, values(ids).Valid(valid), times)
			if err != nil || !slices.Equal(got[1:], want) {
				t.Fatalf("%s: batch %d: %v, want %v; %v", name, batch, got[1:], want, err)
			}
			if r.Late() != late {
				t.Fatalf("%s: %d late, want %d", name, r.Late(), late)
			}
			var b bytes.Buffer
			if err := r.Save(&b); err != nil {
				t.Fatal(err)
			}
			if r, err = Load(&b, r.Bytes()); err != nil {
				t.Fatal(err)
			}
			late = 0
		}
	}
}

// What a ring cannot be asked is an error that says what is wanted.
func TestRefused(t *testing.T) {
	for _, o := range []Options{{Expect: 1, Slots: 2}, {Expect: 1, FPR: 2}, {Expect: 1, Window: time.Hour, Slots: 65}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v", o)
		}
	}
	if _, err := New(Options{Expect: 1e6, Memory: 1000}); !errors.Is(err, fault.ErrMemory) {
		t.Error(err)
	}
	r, err := New(Options{Expect: 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Seen(nil, key.Int64s([]int64{1}), nil); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.Save(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Load(bytes.NewReader(b.Bytes()), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, ask := range []func() ([]bool, error){
		func() ([]bool, error) { return r.Seen(nil, key.Strings([]string{"1"}), nil) },
		func() ([]bool, error) { return again.Seen(nil, key.Strings([]string{"1"}), nil) },
		func() ([]bool, error) { return r.Seen(nil, key.Int64s([]int64{1}), []int64{1}) },
	} {
		if _, err := ask(); !errors.Is(err, fault.ErrMismatch) {
			t.Error(err)
		}
	}
	if _, err := r.Seen(nil, key.Values{}, nil); err == nil {
		t.Error("no column")
	}
	if _, err := Load(bytes.NewReader(b.Bytes()[:b.Len()-1]), 0); !errors.Is(err, fault.ErrCorrupt) {
		t.Error(err)
	}
	if _, err := Load(bytes.NewReader(bytes.Repeat([]byte("x"), 100)), 0); !errors.Is(err, fault.ErrMismatch) {
		t.Error(err)
	}
}

// The zero Options make a ring. One with more keys than it has room for says so, with the answer.
func TestOverfull(t *testing.T) {
	if r, err := New(Options{}); err != nil || r.Bytes() < 1e6 {
		t.Fatal(err)
	}
	r, err := New(Options{Expect: 1000})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int64, 4000)
	for i := range ids {
		ids[i] = int64(i)
	}
	if _, err := r.Seen(nil, key.Int64s(ids[:1000]), nil); err != nil {
		t.Error(err)
	}
	drop, err := r.Seen(nil, key.Int64s(ids), nil)
	if fault.Code(err) != "E606" || !strings.Contains(err.Error(), "want at most 0.0015, got 0.") {
		t.Error(err)
	}
	if len(drop) != len(ids) || slices.Contains(drop[:1000], false) {
		t.Error("another answer")
	}
}
