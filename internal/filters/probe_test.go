package filters

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// asked returns a filter of keys of the given classes with a rule, large enough to
// have no false positives in the tests.
func asked(t testing.TB, classes []keys.Class, rule keys.Rule, kind Kind, v keys.Values) *Filter {
	t.Helper()
	f := &Filter{facts: Facts{NormalForm: keys.NormalForm, Rule: rule.String()}}
	for _, c := range classes {
		f.facts.Key = append(f.facts.Key, KeyColumn{Class: string(c)})
	}
	bits, set := bloomOf(t, bloom.Split512, 1<<12, nil), exact.New()
	options, err := f.KeyOptions()
	if err != nil {
		t.Fatal(err)
	}
	err = keys.NewValueEncoder(options).Encode(v, func(_ int, b *keys.Batch) error {
		bits.Add(b.Hash(xxh3Hash, nil))
		if kind == KindExact {
			return b.BySign(func(values []uint64, signed bool, _ []uint32) error { set.Add(values, signed); return nil })
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if kind == KindExact {
		f.SetExact(set)
	} else {
		f.SetBloom(bits)
	}
	return f
}

func rowsIn(t testing.TB, f *Filter, v keys.Values) string {
	t.Helper()
	sel, err := f.Probe(v, []uint32{7})
	if err != nil {
		t.Fatal(err)
	}
	mask, err := f.Contains(v, make([]bool, 0, 3))
	if err != nil || len(mask) != v.Len() {
		t.Fatalf("%d answers for %d rows, error %v", len(mask), v.Len(), err)
	}
	rows := []uint32{7}
	for i, in := range mask {
		if in {
			rows = append(rows, uint32(i))
		}
	}
	if !slices.Equal(rows, sel) {
		t.Errorf("Probe %v, Contains %v", sel, rows)
	}
	return fmt.Sprint(sel[1:])
}

// A filter of any kind can be probed with Go values and Arrow arrays. Numbers
// compare by value, strings by the filter's rule, and a NULL is not a member.
func TestProbeValues(t *testing.T) {
	integer, text := []keys.Class{keys.Integer}, []keys.Class{keys.Bytes}
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	b.AppendNull()
	b.AppendValues([]float64{-5, 5, 5.5, math.Copysign(0, -1), math.NaN(), 1 << 63}, nil)
	floats := b.NewArray()
	defer floats.Release()
	u := [16]byte{0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0}
	const uText = "123e4567-e89b-12d3-a456-426614174000"
	for _, kind := range []Kind{KindBloom, KindExact} {
		f := asked(t, integer, 0, kind, keys.Columns(keys.Int64s([]int64{5, 0, -5})))
		for _, c := range []struct {
			v    keys.Values
			want string
		}{
			{keys.Int64s([]int64{1, 5, -5, 0, 2}), "[1 2 3]"},
			{keys.Uint64s([]uint64{5, math.MaxUint64 - 5, 0}), "[0 2]"},
			{keys.Array(floats), "[1 2 4]"},
			{keys.Int64s(nil), "[]"},
		} {
			if got := rowsIn(t, f, c.v); got != c.want {
				t.Errorf("%s: %s, want %s", kind, got, c.want)
			}
		}
		// More than one batch, with values above the range of int64.
		large := asked(t, integer, 0, kind, keys.Uint64s([]uint64{math.MaxUint64, 3}))
		many := make([]uint64, 50_000)
		many[0], many[49_999], many[20_000] = 3, math.MaxUint64, math.MaxUint64
		if got := rowsIn(t, large, keys.Uint64s(many)); got != "[0 20000 49999]" {
			t.Errorf("%s: %s", kind, got)
		}
	}
	for what, c := range map[string]struct {
		f    *Filter
		v    keys.Values
		want string
	}{
		"decimals":      {asked(t, []keys.Class{keys.Decimal}, 0, KindBloom, keys.Int64s([]int64{5, 100})), keys.Uint64s([]uint64{100, 10, 5}), "[0 2]"},
		"rule":          {asked(t, text, keys.Trim|keys.Lower, KindBloom, keys.Strings([]string{"ann", " BOB "})), keys.Strings([]string{"Ann", "bob", "b ob"}), "[0 1]"},
		"no rule":       {asked(t, text, 0, KindBloom, keys.ByteSlices([][]byte{[]byte("ann"), nil})), keys.Strings([]string{"Ann", "ann", ""}), "[1 2]"},
		"text to UUIDs": {asked(t, []keys.Class{keys.Fixed(16)}, keys.UUID, KindBloom, keys.UUIDs([][16]byte{u})), keys.Strings([]string{"x", uText, "{" + strings.ToUpper(uText) + "}"}), "[1 2]"},
		"UUIDs":         {asked(t, []keys.Class{keys.Fixed(16)}, keys.UUID, KindBloom, keys.Strings([]string{uText})), keys.UUIDs([][16]byte{{}, u}), "[1]"},
		"composite": {asked(t, []keys.Class{keys.Integer, keys.Bytes}, 0, KindBloom, keys.Columns(keys.Int64s([]int64{1, 2}), keys.Strings([]string{"a", "b"}))),
			keys.Columns(keys.Uint64s([]uint64{1, 1, 2}), keys.Strings([]string{"b", "a", "b"})), "[1 2]"},
	} {
		if got := rowsIn(t, c.f, c.v); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
}

// Rows of a batch with negative integers and some of 2^63 or more are found in their
// order, although each sign is looked up by itself.
func TestProbeMixedSigns(t *testing.T) {
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	b.AppendValues([]float64{1 << 63, -5, 7, 1.5 * (1 << 63), 5, -(1 << 63)}, nil)
	floats := b.NewArray()
	defer floats.Release()
	for _, kind := range []Kind{KindBloom, KindExact} {
		f := asked(t, []keys.Class{keys.Integer}, 0, kind, keys.Array(floats))
		if got := rowsIn(t, f, keys.Array(floats)); got != "[0 1 2 3 4 5]" {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

func TestProbeRefused(t *testing.T) {
	ints := keys.Int64s([]int64{1})
	integer := asked(t, []keys.Class{keys.Integer}, 0, KindExact, ints)
	open := asked(t, []keys.Class{keys.Integer}, 0, KindBloom, ints)
	open.facts.Keys, open.facts.Partial = 1, &Partial{Of: 2, Held: []uint32{0}}
	newer := asked(t, []keys.Class{keys.Integer}, 0, KindBloom, ints)
	newer.facts.NormalForm = "9"
	list := array.NewListBuilder(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64).NewListArray()
	defer list.Release()
	var words, numbers keys.Batch
	words.SetBytes([]byte{1, 0, 0, 0, 'x'}, 1, 0)
	numbers.SetInts(make([]byte, 8), 1, 8, true)
	for what, c := range map[string]struct {
		f    *Filter
		v    keys.Values
		kind error
		text string
	}{
		"text against integers": {integer, keys.Strings([]string{"1"}), fault.ErrMismatch, "want integer, got text or binary"},
		"two columns":           {integer, keys.Columns(ints, ints), fault.ErrMismatch, "want 1, got 2"},
		"no column":             {integer, keys.Values{}, fault.ErrMismatch, "want 1, got 0"},
		"a list":                {integer, keys.Array(list), fault.ErrUnsupported, "unsupported"},
		"a partial filter":      {open, ints, fault.ErrMismatch, "a partial one"},
		"other normal form":     {newer, ints, fault.ErrMismatch, "want 1, got 9"},
		"no payload":            {&Filter{facts: Facts{Key: integer.facts.Key, NormalForm: keys.NormalForm}}, ints, ErrInvalid, "payload"},
		"nothing":               {new(Filter), ints, ErrInvalid, "payload"},
	} {
		for range 2 {
			sel, err := c.f.Probe(c.v, nil)
			mask, err2 := c.f.Contains(c.v, nil)
			if len(sel)+len(mask) > 0 || !errors.Is(err, c.kind) || !errors.Is(err2, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v; %v, want %q", what, err, err2, c.text)
			}
		}
	}
	for _, f := range []*Filter{integer, asked(t, []keys.Class{keys.Integer}, 0, KindBloom, ints)} {
		if sel, err := f.ProbeBatch(&words, nil); !errors.Is(err, fault.ErrMismatch) || len(sel) > 0 {
			t.Errorf("a batch of strings against integers: %v, error %v", sel, err)
		}
	}
	text := asked(t, []keys.Class{keys.Bytes}, 0, KindBloom, keys.Strings(nil))
	if sel, err := text.ProbeBatch(&numbers, nil); !errors.Is(err, fault.ErrMismatch) || len(sel) > 0 {
		t.Errorf("a batch of integers against strings: %v, error %v", sel, err)
	}
	// A batch of keys made with another rule.
	err := keys.NewValueEncoder(keys.Options{Classes: []keys.Class{keys.Bytes}, Rule: keys.Lower}).Encode(keys.Strings([]string{"x"}), func(_ int, b *keys.Batch) error {
		_, err := text.ProbeBatch(b, nil)
		return err
	})
	if !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), "want none, got lower") {
		t.Errorf("a batch under another rule: %v", err)
	}
}

// Several goroutines probe one filter.
func TestProbeAtOnce(t *testing.T) {
	members := make([]string, 5000)
	for i := range members {
		members[i] = fmt.Sprint("user ", i)
	}
	f := asked(t, []keys.Class{keys.Bytes}, 0, KindBloom, keys.Strings(members))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 50 {
				if sel, err := f.Probe(keys.Strings(members[n:]), nil); err != nil || len(sel) != len(members)-n {
					t.Errorf("%d of %d, error %v", len(sel), len(members)-n, err)
				}
			}
		})
	}
	wg.Wait()
}

// The payload is read once for a digest, and not at all if it was loaded or written
// before.
func TestStampedOnce(t *testing.T) {
	for what, f := range map[string]*Filter{"bloom": bloomFilter(t, 40_000, keysFrom(1, 50)), "exact": exactFilter(dense(3, 9000), false)} {
		want, err := f.Digest()
		if err != nil {
			t.Fatal(err)
		}
		first := f.held.stamp
		if _, err := f.Digest(); err != nil || f.held.stamp != first {
			t.Errorf("%s: the payload is read for every digest, error %v", what, err)
		}
		for _, raw := range []bool{false, true} {
			b := encode(t, f, Options{Uncompressed: raw})
			loaded := decode(t, b)
			if loaded.held.stamp == nil {
				t.Errorf("%s: a loaded payload is read for a digest", what)
			}
			if d, err := loaded.Digest(); err != nil || d != want || d != header(t, b, "f").Digest() {
				t.Errorf("%s: other digest after loading, error %v", what, err)
			}
		}
		fresh := *f
		fresh.held = &payload{bits: f.Bloom(), set: f.Exact()}
		encode(t, &fresh, Options{})
		if fresh.held.stamp == nil {
			t.Errorf("%s: a payload that was written is read for a digest", what)
		}
		if d, err := fresh.Digest(); err != nil || d != want {
			t.Errorf("%s: other digest after writing, error %v", what, err)
		}
		// The header may still change, and the digest changes with it.
		fresh.facts.Keys++
		if d, err := fresh.Digest(); err != nil || d == want {
			t.Errorf("%s: the digest is that of another header, error %v", what, err)
		}
	}
}

// What pruning needs: bounds, whether any integer in a range may be a member, and
// which members a range has.
func TestMembers(t *testing.T) {
	ints := keys.Int64s([]int64{-7, 5, 900})
	set := asked(t, []keys.Class{keys.Integer}, 0, KindExact, ints)
	bits := asked(t, []keys.Class{keys.Integer}, 0, KindBloom, ints)
	none := asked(t, []keys.Class{keys.Integer}, 0, KindExact, keys.Int64s(nil))
	lo, hi, ok := set.KeyRange(0)
	if !ok || string(lo) != string(intBound(-7)) || string(hi) != string(intBound(900)) {
		t.Errorf("range %x to %x, %t", lo, hi, ok)
	}
	for _, f := range []*Filter{bits, none} {
		if _, _, ok := f.KeyRange(0); ok {
			t.Error("a range of which nothing is known")
		}
	}
	if _, _, ok := set.KeyRange(1); ok {
		t.Error("a range of a column that is not there")
	}
	if set.Empty() || bits.Empty() || !none.Empty() {
		t.Error("Empty")
	}
	if set.Any(6, 899, true) || !set.Any(6, 900, true) || !bits.Any(6, 899, true) || none.Any(0, math.MaxUint64, false) {
		t.Error("Any")
	}
	if got, ok := set.Within(0, 1000, true, 2); !ok || !slices.Equal(got, []uint64{5, 900}) {
		t.Errorf("within: %v, %t", got, ok)
	}
	if got, ok := set.Within(0, 1000, true, 1); ok || got != nil {
		t.Errorf("more than are wanted: %v", got)
	}
	if _, ok := bits.Within(0, 1000, true, 2); ok {
		t.Error("bits list their members")
	}
	if set.FPR() != 0 || set.Count().Keys != 3 || math.Abs(bits.Count().Keys-3) > 0.1 || !math.IsNaN(new(Filter).Count().Keys) || set.Bytes() == 0 || bits.Bytes() != bits.facts.Params.Bytes() {
		t.Error("FPR, Count or Bytes")
	}
}

// Asking about a batch allocates nothing, if there is room for the answer.
func TestProbeBatchAllocates(t *testing.T) {
	var ints, words keys.Batch
	ints.SetInts(make([]byte, 8<<10), 1<<10, 8, true)
	words.SetBytes(make([]byte, 4<<10), 1<<10, 0)
	sel := make([]uint32, 0, 1<<11)
	for what, c := range map[string]struct {
		f *Filter
		b *keys.Batch
	}{
		"bits of integers": {asked(t, []keys.Class{keys.Integer}, 0, KindBloom, keys.Int64s([]int64{1})), &ints},
		"bits of strings":  {asked(t, []keys.Class{keys.Bytes}, 0, KindBloom, keys.Strings([]string{"a"})), &words},
		"members":          {asked(t, []keys.Class{keys.Integer}, 0, KindExact, keys.Int64s([]int64{1})), &ints},
	} {
		n := testing.AllocsPerRun(200, func() {
			if _, err := c.f.ProbeBatch(c.b, sel); err != nil {
				t.Fatal(err)
			}
		})
		if n >= 1 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}
