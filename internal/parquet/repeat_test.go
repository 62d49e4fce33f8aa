package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// repeatCase is a column's pages, and how often each of its rows is to appear.
type repeatCase struct {
	leaf  *meta.Leaf
	pages []*Page
	dicts []*Dictionary
	times []uint32
	want  []string // entries of the result
}

func newRepeatCase(rng *rand.Rand) *repeatCase {
	col := newModel(rng, 1, 1, []int{3, 60, 700}[rng.IntN(3)]).columns[0]
	r := &repeatCase{leaf: col.bareLeaf()}
	r.leaf.Dotted = col.name
	most := []int{1, 1, 5, 30, 70_000}[rng.IntN(5)]
	share := []int{1, 30, 100}[rng.IntN(3)]
	step := []int{1, 4, 1 << 30}[rng.IntN(3)]
	var rows [][]string
	for i := range col.groups[0] {
		in := &col.groups[0][i]
		text := entries(in.rep, in.def, col.maxDef, func(i int) []byte { return in.values[i] }, nil)
		for i, rep := range in.rep {
			if rep == 0 {
				rows = append(rows, nil)
			}
			rows[len(rows)-1] = append(rows[len(rows)-1], text[i])
		}
		for from, value := 0, 0; from < len(in.def); {
			to := min(from+1+rng.IntN(step), len(in.def))
			var p *Page
			p, value = in.page(r.leaf, from, to, value)
			p.Number = len(r.pages) + 1
			r.pages, r.dicts = append(r.pages, p), append(r.dicts, in.dict)
			from = to
		}
	}
	for _, row := range rows {
		n := 1
		if rng.IntN(100) < share {
			n += rng.IntN(most)
		}
		if n > 100 && rng.IntN(1000) > 0 {
			n = 2
		}
		r.times = append(r.times, uint32(n))
		for range n {
			r.want = append(r.want, row...)
		}
	}
	return r
}

// pages returns a function that returns the pages in order.
func (c *repeatCase) next() func() (*Page, *Dictionary, error) {
	at := 0
	return func() (*Page, *Dictionary, error) {
		if at > 0 {
			c.pages[at-1].scribble() // it is no longer valid
		}
		if at == len(c.pages) {
			return nil, nil, io.EOF
		}
		at++
		return c.pages[at-1], c.dicts[at-1], nil
	}
}

// repeats reports whether a row that has entries in page i is to be repeated.
func (c *repeatCase) repeats(i int) bool {
	rows := 0
	for _, p := range c.pages[:i] {
		rows += p.Rows
	}
	p := c.pages[i]
	if p.Rep != nil && p.Rep[0] != 0 {
		rows--
	}
	end := rows + p.Rows
	if p.Rep != nil && p.Rep[0] != 0 {
		end++
	}
	return slices.Max(c.times[rows:end]) > 1
}

func TestRepeater(t *testing.T) {
	n := uint64(cases.Count(60, 200, 600))
	passed, made, coded := 0, 0, 0
	for seed := range n {
		rng := rand.New(rand.NewPCG(seed, 5))
		c := newRepeatCase(rng)
		unrepeated := map[*Page]string{}
		for i, p := range c.pages {
			if !c.repeats(i) {
				unrepeated[p] = fmt.Sprint(*p)
			}
		}
		r := NewRepeater(c.leaf, c.times)
		next := c.next()
		var got []string
		for {
			p, dict, err := r.Next(next)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if text, ok := unrepeated[p]; ok {
				if text != fmt.Sprint(*p) {
					t.Fatalf("seed %d: page %d was changed", seed, p.Number)
				}
				passed++
			} else {
				made++
				if p.Values > repeatedEntries+150 || len(p.Plain) > repeatedBytes+150*2000 {
					t.Fatalf("seed %d: a page of %d entries, %d bytes", seed, p.Values, len(p.Plain))
				}
			}
			if p.Coded {
				coded++
			}
			if err := r.check(p); err != nil || p.Values == 0 {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got = append(got, pageEntries(c.leaf, p, dict)...)
		}
		if !slices.Equal(got, c.want) {
			t.Fatalf("seed %d: %d entries, want %d of %d rows, %v %d %d", seed, len(got), len(c.want), len(c.times), c.leaf.Type, c.leaf.MaxDef, c.leaf.MaxRep)
		}
		if _, _, err := r.Next(next); err != io.EOF {
			t.Fatalf("seed %d: after the end: %v", seed, err)
		}
	}
	if passed == 0 || made == 0 || coded == 0 {
		t.Fatalf("%d pages passed on, %d made, %d coded", passed, made, coded)
	}
}

func pageEntries(l *meta.Leaf, p *Page, dict *Dictionary) []string {
	rep, def := p.Rep, p.Def
	if rep == nil {
		rep = make([]uint8, p.Values)
	}
	if def == nil {
		def = make([]uint8, p.Values)
	}
	return entries(rep, def, l.MaxDef, func(i int) []byte { return valueOf(l, p, dict, i) }, nil)
}

// TestRepeaterRows: a wrong number of rows is an error, and so is a row that is to be
// dropped.
func TestRepeaterRows(t *testing.T) {
	leaf := &meta.Leaf{Type: format.Int32, Dotted: "a"}
	page := func(rows int) func() (*Page, *Dictionary, error) {
		done := false
		return func() (*Page, *Dictionary, error) {
			if done {
				return nil, nil, io.EOF
			}
			done = true
			return &Page{Values: rows, Rows: rows, NonNull: rows, Plain: make([]byte, 4*rows)}, nil, nil
		}
	}
	for _, times := range [][]uint32{{1}, {2}, {1, 1, 1}, {2, 1, 1}, {1, 1, 2}, {1, 0}, {0, 2}, {}} {
		r := NewRepeater(leaf, times)
		next := page(2)
		var err error
		for err == nil {
			_, _, err = r.Next(next)
		}
		if err == io.EOF {
			t.Errorf("2 rows, %v times: no error", times)
		}
	}
	failed := errors.New("failed")
	if _, _, err := NewRepeater(leaf, []uint32{2}).Next(func() (*Page, *Dictionary, error) { return nil, nil, failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
}

// TestRepeaterManyPages: a page becomes many, and values stay with their rows among
// NULLs.
func TestRepeaterManyPages(t *testing.T) {
	const rows = 50_000
	leaf := &meta.Leaf{Type: format.Int32, Dotted: "a", MaxDef: 1}
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 6))
		p := &Page{Values: rows, Rows: rows, Def: make([]uint8, rows), Coded: seed%2 == 1, Encoding: format.Plain}
		dict := &Dictionary{Len: rows, Plain: make([]byte, 4*rows)}
		times := make([]uint32, rows)
		var want []int // row, or -1 for NULL
		for i := range times {
			times[i] = uint32(1 + rng.IntN(9))
			row := -1
			binary.LittleEndian.PutUint32(dict.Plain[4*i:], uint32(i))
			if rng.IntN(3) > 0 {
				row, p.Def[i] = i, 1
				p.NonNull++
				p.Indices = append(p.Indices, uint32(i))
				p.Plain = binary.LittleEndian.AppendUint32(p.Plain, uint32(i))
			}
			for range times[i] {
				want = append(want, row)
			}
		}
		if !p.Coded {
			p.Indices = nil
		} else {
			p.Plain = nil
		}
		r, done := NewRepeater(leaf, times), false
		var got []int
		pages := 0
		for ; ; pages++ {
			q, d, err := r.Next(func() (*Page, *Dictionary, error) {
				if done {
					return nil, nil, io.EOF
				}
				done = true
				return p, dict, nil
			})
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, def := range q.Def {
				if def == 0 {
					got = append(got, -1)
					continue
				}
				got = append(got, int(binary.LittleEndian.Uint32(valueOf(leaf, q, d, n))))
				n++
			}
		}
		if pages < 3 || !slices.Equal(got, want) {
			t.Errorf("seed %d: %d rows in %d pages, want %d", seed, len(got), pages, len(want))
		}
	}
}

// TestRepeaterLargeRow: a row above the limits of a page stands alone, and its parts
// in several forms become plain.
func TestRepeaterLargeRow(t *testing.T) {
	leaf := &meta.Leaf{Type: format.ByteArray, Dotted: "a", MaxDef: 1, MaxRep: 1}
	value := bytes.Repeat([]byte{7}, 100_000)
	plain := plainOf(leaf, [][]byte{value})
	dict := &Dictionary{Len: 1, Plain: plain, offsets: byteArrayOffsets(nil, plain, 1)}
	var pages []*Page
	for i := range 24 {
		p := &Page{Values: 1, NonNull: 1, Rep: []uint8{1}, Def: []uint8{1}, Encoding: format.Plain}
		if i == 0 {
			p.Rep[0], p.Rows = 0, 1
		}
		if i%3 == 1 {
			p.Plain = plain
		} else {
			p.Coded, p.Indices = true, []uint32{0}
		}
		pages = append(pages, p)
	}
	r := NewRepeater(leaf, []uint32{3})
	n := 0
	next := func() (*Page, *Dictionary, error) {
		if n++; n > len(pages) {
			return nil, nil, io.EOF
		}
		return pages[n-1], dict, nil
	}
	for i := range 4 {
		p, _, err := r.Next(next)
		if i == 3 {
			if err != io.EOF {
				t.Fatal(err)
			}
			break
		}
		if err != nil || p.Coded || p.Rows != 1 || p.Values != 24 || !bytes.Equal(p.Plain, bytes.Repeat(plain, 24)) {
			t.Fatalf("copy %d: %v, %d rows, %d values", i, err, p.Rows, p.Values)
		}
	}
}
