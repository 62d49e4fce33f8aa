package leaves_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

var errNoRoom = errors.New("no room")

// TestTake: memory is announced before it is allocated, and a store to which no rows
// could be appended keeps those that it has.
func TestTake(t *testing.T) {
	refused := 0
	for seed := range uint64(cases.Count(4, 8, 16)) {
		rng := rand.New(rand.NewPCG(seed, 11))
		w := newTable(t, rng, 1+rng.IntN(3), 700)
		refuse := []int{0, 2, 10}[rng.IntN(3)]
		var s *leaves.Store
		taken := int64(0)
		s = leaves.New(w.of, func(n int64) error {
			if n <= 0 {
				t.Fatalf("seed %d: %d bytes", seed, n)
			}
			if held := s.Held(); held > taken {
				t.Fatalf("seed %d: %d bytes are held, %d were announced", seed, held, taken)
			}
			if refuse > 0 && rng.IntN(refuse) == 0 {
				return errNoRoom
			}
			taken += n
			return nil
		})
		b := leaves.NewBuilder(w.of)
		var stored []int
		for s.Len() < 100_000 {
			from := rng.IntN(w.rows)
			to := from + 1 + rng.IntN(w.rows-from)
			block := w.block(t, rng, b, from, to)
			rows := make([]uint32, rng.IntN(10_000))
			var at []int
			for i := range rows {
				rows[i] = uint32(rng.IntN(block.Len()))
				at = append(at, from+int(rows[i]))
			}
			before := s.Len()
			err := s.Append(block, rows)
			switch {
			case err == nil:
				stored = append(stored, at...)
			case !errors.Is(err, errNoRoom):
				t.Fatal(err)
			case s.Len() != before:
				t.Fatalf("seed %d: %d rows after an error, want %d", seed, s.Len(), before)
			default:
				refused++
			}
			if s.Len() != len(stored) || s.Held() != taken || s.Bytes() != taken {
				t.Fatalf("seed %d: %d rows want %d, %d bytes held, %d reported, %d taken", seed, s.Len(), len(stored), s.Held(), s.Bytes(), taken)
			}
		}
		for range 2 {
			w.checkPages(t, rng, s, stored)
		}
	}
	if refused == 0 {
		t.Fatal("nothing was refused")
	}
}

// TestTooLarge: a builder does not expand a dictionary-coded page beyond the largest
// position.
func TestTooLarge(t *testing.T) {
	const width = 1 << 20
	leaf := meta.Leaf{Type: format.FixedLenByteArray, TypeLength: width, Dotted: "a", MaxRep: 1, MaxDef: 1}
	dict := dictionary(t, &leaf, [][]byte{make([]byte, width)})
	for _, n := range []int{2, math.MaxUint32/width + 1} {
		p := &parquet.Page{
			Values: n, Rows: n, NonNull: n, Coded: true, Indices: make([]uint32, n),
			Rep: make([]uint8, n), Def: bytes.Repeat([]byte{1}, n),
		}
		err := leaves.NewBuilder([]meta.Leaf{leaf}).Add(0, p, dict)
		if n == 2 != (err == nil) || n > 2 && !errors.Is(err, fault.ErrMemory) {
			t.Errorf("%d values: %v", n, err)
		}
	}
}

// TestAddRefused: pages that are not consistent, and blocks with too few rows.
func TestAddRefused(t *testing.T) {
	leaf := meta.Leaf{Type: format.ByteArray, Dotted: "a", MaxDef: 1, MaxRep: 1}
	good := func() *parquet.Page {
		return &parquet.Page{Values: 2, NonNull: 1, Rows: 2, Def: []uint8{1, 0}, Rep: []uint8{0, 0}, Plain: []byte{1, 0, 0, 0, 'x'}}
	}
	for name, change := range map[string]func(p *parquet.Page){
		"no definition levels":    func(p *parquet.Page) { p.Def = nil },
		"no repetition levels":    func(p *parquet.Page) { p.Rep = nil },
		"too few levels":          func(p *parquet.Page) { p.Def = p.Def[:1] },
		"another number of NULLs": func(p *parquet.Page) { p.Def[1] = 1 },
		"a length beyond":         func(p *parquet.Page) { p.Plain[0] = 2 },
		"a length too small":      func(p *parquet.Page) { p.Plain[0] = 0 },
		"a long length":           func(p *parquet.Page) { p.Plain[3] = 0xff },
		"too few bytes":           func(p *parquet.Page) { p.Plain = p.Plain[:3] },
		"begins within a row":     func(p *parquet.Page) { p.Rep[0] = 1 },
		"no dictionary":           func(p *parquet.Page) { p.Coded, p.Plain, p.Indices = true, nil, []uint32{0} },
	} {
		p := good()
		change(p)
		if err := leaves.NewBuilder([]meta.Leaf{leaf}).Add(0, p, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	b := leaves.NewBuilder([]meta.Leaf{leaf})
	if err := b.Add(0, good(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Block(3); err == nil {
		t.Error("3 rows from 2: no error")
	}
	other := leaves.New([]meta.Leaf{{Type: format.Int32}}, nil)
	b = leaves.NewBuilder([]meta.Leaf{leaf})
	block, err := b.Block(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Append(block, nil); err == nil {
		t.Error("rows of other columns: no error")
	}
}

// TestPagesRefused: shapes that the stored levels do not have.
func TestPagesRefused(t *testing.T) {
	of := []meta.Leaf{{Type: format.Int32, Dotted: "a"}}
	s := leaves.New(of, nil)
	for _, as := range []leaves.Shape{{MaxDef: 1}, {MaxDef: 0}} {
		n := 0
		var last error
		for _, err := range s.Pages(0, []uint32{leaves.None}, as) {
			n, last = n+1, err
		}
		if n != 1 || last == nil {
			t.Errorf("%+v: %d pages, %v", as, n, last)
		}
	}
	for p, err := range s.Pages(0, []uint32{leaves.None}, leaves.Shape{Shift: 1, MaxDef: 1}) {
		if err != nil || p.Values != 1 || p.NonNull != 0 || p.Def[0] != 0 {
			t.Errorf("%+v %v", p, err)
		}
	}
}

// TestPageSize: pages of large values and of large rows have bounded size.
func TestPageSize(t *testing.T) {
	of := []meta.Leaf{
		{Type: format.ByteArray, Dotted: "a", MaxDef: 1}, {Type: format.ByteArray, Dotted: "b"},
		{Type: format.Int32, Dotted: "c", MaxDef: 1, MaxRep: 1}, {Type: format.Int64, Dotted: "d"},
	}
	const n = 200
	b := leaves.NewBuilder(of)
	value := appendPlain(nil, &of[0], make([]byte, 100_000))
	for range n {
		def, rep := bytes.Repeat([]byte{1}, 9000), append([]byte{0}, bytes.Repeat([]byte{1}, 8999)...)
		for i, p := range []*parquet.Page{
			{Values: 1, Rows: 1, NonNull: 1, Def: []uint8{1}, Plain: value}, {Values: 1, Rows: 1, NonNull: 1, Plain: value},
			{Values: 9000, Rows: 1, NonNull: 9000, Def: def, Rep: rep, Plain: make([]byte, 36_000)},
			{Values: 1, Rows: 1, NonNull: 1, Plain: make([]byte, 8)},
		} {
			if err := b.Add(i, p, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	block, err := b.Block(n)
	if err != nil {
		t.Fatal(err)
	}
	s := leaves.New(of, nil)
	if err := s.Append(block, nil); err != nil {
		t.Fatal(err)
	}
	rows := make([]uint32, 300_000)
	for i := range rows {
		rows[i] = uint32(i % n)
		if i >= 3*n {
			rows[i] = leaves.None
		}
	}
	for i := range of {
		pages, total := 0, 0
		rows, shift := rows, uint8(0)
		if of[i].MaxDef == 0 {
			rows = rows[:3*n]
		}
		for p, err := range s.Pages(i, rows, leaves.Shape{Shift: shift, MaxDef: of[i].MaxDef}) {
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Plain) > 1<<20+100_004 || p.Values > 1<<16+9000 {
				t.Errorf("a page of %d bytes, %d entries", len(p.Plain), p.Values)
			}
			pages, total = pages+1, total+p.Rows
		}
		if total != len(rows) || pages > 90 {
			t.Errorf("column %d: %d rows, want %d; %d pages", i, total, len(rows), pages)
		}
	}
}
