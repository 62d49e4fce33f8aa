package exact

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// formSets returns sets in both forms, small enough for tests, and their forms.
func formSets() (sets map[string]*Set, forms map[string]Form) {
	r := rand.New(rand.NewPCG(51, 52))
	sets, forms = map[string]*Set{}, map[string]Form{}
	put := func(name string, form Form, parts ...[]uint64) {
		s := New()
		for i, values := range parts {
			s.Add(values, i == 1)
		}
		sets[name], forms[name] = s, form
	}
	negated := func(values []uint64) []uint64 {
		minus := make([]uint64, len(values))
		for i, v := range values {
			minus[i] = -v - 1
		}
		return minus
	}
	wide := make([]uint64, 300)
	for i := range wide {
		wide[i] = r.Uint64()
	}
	run := make([]uint64, 1<<17)
	for i := range run {
		run[i] = uint64(i)
	}
	put("empty", Roaring)
	put("one", Roaring, []uint64{5})
	put("few", Roaring, wide[:100])
	put("anywhere", Gaps, wide)
	put("anywhere, signed", Gaps, nil, wide)
	put("run", Roaring, run)
	put("runs of both signs", Roaring, run, negated(run))
	put("one in 2", Roaring, subset(r, 100_000, 2))
	put("one in 4", Gaps, subset(r, 100_000, 4))
	put("one in 16", Gaps, subset(r, 100_000, 16))
	put("one in 16 below zero", Gaps, nil, negated(subset(r, 100_000, 16)))
	put("one in 16 of both signs", Gaps, subset(r, 70_000, 16), negated(subset(r, 10_000, 16)))
	put("one in 300", Gaps, subset(r, 10_000, 300))
	put("one in 16 and a few below zero", Gaps, subset(r, 100_000, 16), []uint64{1<<64 - 1, 1 << 63})
	put("runs, and a few elsewhere", Roaring, append(slices.Clone(run), wide[:100]...))
	return sets, forms
}

// TestForm: the form is the expected one, and the output can be read, passes Check,
// and has the predicted size.
func TestForm(t *testing.T) {
	sets, forms := formSets()
	r := rand.New(rand.NewPCG(53, 54))
	for name, s := range sets {
		form, negative, natural := encode(t, s)
		if form != forms[name] {
			t.Errorf("%s: %v, want %v", name, form, forms[name])
		}
		if n := s.WireBytes(); n != uint64(len(negative)+len(natural)) {
			t.Errorf("%s: %d bytes, said to be %d", name, len(negative)+len(natural), n)
		}
		memory, err := Check(form, negative, natural)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want := checkedMemory(t, s); memory != want {
			t.Errorf("%s: %d bytes in memory, in Roaring %d", name, memory, want)
		}
		again, err := Unmarshal(form, negative, natural)
		if err != nil || !again.negative.Equals(&s.negative) || !again.natural.Equals(&s.natural) {
			t.Fatalf("%s: read, it is another set: %v", name, err)
		}
		if !bytes.Equal(marshal2(t, again), marshal2(t, s)) {
			t.Errorf("%s: read, it has other bytes in Roaring", name)
		}
		if !bytes.Equal(encode2(t, shuffled(r, s)), encode2(t, s)) {
			t.Errorf("%s: another order, other bytes", name)
		}
	}
}

func encode(t testing.TB, s *Set) (Form, []byte, []byte) {
	t.Helper()
	form, negative, natural, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return form, negative, natural
}

func encode2(t testing.TB, s *Set) []byte {
	t.Helper()
	form, negative, natural := encode(t, s)
	return append(append(append(negative, 0xaa), natural...), byte(form))
}

func checkedMemory(t *testing.T, s *Set) uint64 {
	negative, natural, err := s.marshalRoaring()
	if err != nil {
		t.Fatal(err)
	}
	memory, err := Check(Roaring, negative, natural)
	if err != nil {
		t.Fatal(err)
	}
	return memory
}

// shuffled returns the same set, built in parts and in another order.
func shuffled(r *rand.Rand, s *Set) *Set {
	c := New()
	for values, signed := range s.Values {
		values = slices.Clone(values)
		r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		part := New()
		part.Add(values[len(values)/2:], signed)
		c.Add(values[:len(values)/2], signed)
		c.Union(part)
	}
	return c
}

// TestFormOfRandomSets: the sizes that determine the form are those of the bytes,
// and the bound that avoids computing them gives the same form.
func TestFormOfRandomSets(t *testing.T) {
	r := rand.New(rand.NewPCG(55, 56))
	for range cases.Count(30, 75, 150) {
		s := New()
		for range 1 + r.IntN(8) {
			values, signed := random(r)
			s.Add(values, signed)
		}
		negative, natural, err := s.marshalRoaring()
		if err != nil {
			t.Fatal(err)
		}
		a, b := newGapsWriter(&s.negative, true), newGapsWriter(&s.natural, true)
		roaring, gaps := uint64(len(negative)+len(natural)), uint64(len(a.out)+len(b.out))
		if s.maxRoaring() < roaring {
			t.Fatalf("%d bytes, at most %d", roaring, s.maxRoaring())
		}
		if x, y := s.sizes(); x != roaring || y != gaps {
			t.Fatalf("%d and %d bytes, want %d and %d", x, y, roaring, gaps)
		}
		want := Roaring
		if gaps+4096 < roaring && 16*gaps < 15*roaring {
			want = Gaps
		}
		if form, x, y := encode(t, s); form != want || s.WireBytes() != uint64(len(x)+len(y)) {
			t.Fatalf("%v, want %v; %d bytes, said to be %d", form, want, len(x)+len(y), s.WireBytes())
		}
	}
}

// TestFormBorders: a saving of exactly 1/16, or of exactly 4096 bytes, is not
// enough.
func TestFormBorders(t *testing.T) {
	for _, c := range []struct {
		roaring, gaps uint64
		want          Form
	}{
		{16, 16, Roaring},
		{16, 17, Roaring},
		{4096, 0, Roaring},
		{4097, 0, Gaps},
		{60000, 55904, Roaring},
		{60000, 55903, Gaps},
		{1600000, 1500000, Roaring},
		{1600000, 1499999, Gaps},
		{1 << 60, 1 << 62, Roaring},
	} {
		if got := formOf(c.roaring, c.gaps); got != c.want {
			t.Errorf("%d bytes in Roaring, %d in gaps: %v, want %v", c.roaring, c.gaps, got, c.want)
		}
	}
}

// TestMostRoaring: the bound holds if the containers' smallest form makes the
// header longer.
func TestMostRoaring(t *testing.T) {
	s := New()
	s.Add([]uint64{1, 2, 3, 4}, false) // 6 bytes as a run, 8 as an array
	for i := range uint64(400) {
		s.Add([]uint64{i << 16}, false)
	}
	before := s.natural.GetSerializedSizeInBytes()
	if n := roaringBytes(&s.natural); n <= before || n+8 > s.maxRoaring() {
		t.Errorf("%d bytes of %d before, and a bound of %d", n, before, s.maxRoaring())
	}
}

// TestLongRuns: 2^34 members in a few MiB are not visited one by one.
func TestLongRuns(t *testing.T) {
	s := New()
	s.natural.AddRange(1<<40, 1<<40+1<<34)
	form, negative, natural := encode(t, s)
	if form != Roaring || s.WireBytes() != uint64(len(negative)+len(natural)) {
		t.Fatalf("%v, %d bytes, said to be %d", form, len(negative)+len(natural), s.WireBytes())
	}
	if again, err := Unmarshal(form, negative, natural); err != nil || again.Len() != 1<<34 {
		t.Fatal(err)
	}
}

func TestFormsRefused(t *testing.T) {
	sets, _ := formSets()
	both := sets["one in 16 of both signs"]
	minus, plus := part(both.negative.ToArray()), part(both.natural.ToArray())
	none := make([]byte, 8)
	few := part([]uint64{1, 5, 9})
	half := part(sets["one in 2"].natural.ToArray())
	negative, natural, err := both.marshalRoaring()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		form              Form
		negative, natural []byte
		says              string
	}{
		"form 0":                 {0, minus, plus, "form: want 1 or 2, got 0"},
		"form 3":                 {3, minus, plus, "form: want 1 or 2, got 3"},
		"gaps as Roaring":        {Roaring, minus, plus, ""},
		"Roaring as gaps":        {Gaps, negative, natural, ""},
		"should be gaps":         {Roaring, negative, natural, "form of the set: want gaps, got roaring"},
		"should be Roaring":      {Gaps, none, few, "form of a set of 42 bytes in Roaring and 26 in gaps: want roaring, got gaps"},
		"none, should be":        {Gaps, none, none, "want roaring, got gaps"},
		"one in 2 in gaps":       {Gaps, none, half, "want roaring, got gaps"},
		"naturals in both parts": {Gaps, plus, plus, "corrupt: negative members: exact set: first member of a block: want 9223372036854775808 or above"},
		"natural is cut":         {Gaps, minus, plus[:len(plus)-1], "corrupt: natural members: exact set is too short"},
		"negative has more":      {Gaps, append(bytes.Clone(minus), 0), plus, "corrupt: negative members: exact set: bytes behind it"},
	} {
		s, err := Unmarshal(c.form, c.negative, c.natural)
		if !errors.Is(err, fault.ErrCorrupt) || s != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if c.form == Roaring {
			continue
		}
		if _, checked := Check(c.form, c.negative, c.natural); checked == nil || checked.Error() != err.Error() {
			t.Errorf("%s: the check says %v", name, checked)
		}
	}
}

// TestFormsDamaged: bit flips in and truncations of a whole set are refused or give
// another set whose bytes are exactly these.
func TestFormsDamaged(t *testing.T) {
	sets, _ := formSets()
	form, negative, natural := encode(t, sets["anywhere"])
	if form != Gaps {
		t.Fatal(form)
	}
	for i := 0; i < 8*len(natural); i += 29 {
		c := bytes.Clone(natural)
		c[i/8] ^= 1 << (i % 8)
		checkSet(t, form, negative, c)
	}
	for n := 0; n < len(natural); n += 31 {
		if s, err := Unmarshal(form, negative, natural[:n]); !errors.Is(err, fault.ErrCorrupt) || s != nil {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
}

// checkSet checks that accepted bytes are what Marshal gives, and that Check
// agrees.
func checkSet(t *testing.T, form Form, negative, natural []byte) {
	t.Helper()
	_, checked := Check(form, negative, natural)
	s, err := Unmarshal(form, negative, natural)
	if form != Roaring && (checked == nil) != (err == nil) || checked != nil && err == nil {
		t.Fatalf("the check says %v, the decoder %v", checked, err)
	}
	if err != nil {
		if !errors.Is(err, fault.ErrCorrupt) || s != nil {
			t.Fatal(err)
		}
		return
	}
	f, a, b := encode(t, s)
	if f != form || !bytes.Equal(a, negative) || !bytes.Equal(b, natural) {
		t.Fatal("accepted, though Encode does not give it")
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	sets, _ := formSets()
	for name, s := range sets {
		form, negative, natural := encode(t, s)
		if n := testing.AllocsPerRun(3, func() { _, _ = Check(form, negative, natural) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// FuzzForms: no input causes a panic or excessive memory, and every accepted input
// is what Marshal gives.
func FuzzForms(f *testing.F) {
	sets, _ := formSets()
	for _, s := range sets {
		if form, negative, natural := encode(f, s); len(negative)+len(natural) < 4000 {
			f.Add(uint8(form), negative, natural)
		}
	}
	f.Fuzz(func(t *testing.T, form uint8, negative, natural []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Unmarshal(Form(form), negative, natural)
		runtime.ReadMemStats(&after)
		if errors.Is(err, panics.ErrRecovered) {
			t.Fatalf("a recovered panic: %v", err)
		}
		size := uint64(len(negative) + len(natural))
		if n := after.TotalAlloc - before.TotalAlloc; n > 200*size+4<<20 {
			t.Fatalf("%d bytes allocated for %d", n, size)
		}
		checkSet(t, Form(form), negative, natural)
	})
}
