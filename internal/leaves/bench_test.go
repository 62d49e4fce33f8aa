package leaves_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/leaves"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// benchLeaf is a leaf with a way to make values.
type benchLeaf struct {
	name string
	leaf meta.Leaf
}

var benchLeaves = []benchLeaf{
	{"int64", meta.Leaf{Type: format.Int64}},
	{"int64 optional", meta.Leaf{Type: format.Int64, MaxDef: 1}},
	{"int64 with NULLs", meta.Leaf{Type: format.Int64, MaxDef: 1}},
	{"int32", meta.Leaf{Type: format.Int32}},
	{"boolean", meta.Leaf{Type: format.Boolean}},
	{"uuid", meta.Leaf{Type: format.FixedLenByteArray, TypeLength: 16}},
	{"string", meta.Leaf{Type: format.ByteArray, MaxDef: 1}},
	{"list", meta.Leaf{Type: format.Int32, MaxDef: 2, MaxRep: 1}},
}

// page returns a page with rows of the leaf.
func (l *benchLeaf) page(rng *rand.Rand, rows int) *parquet.Page {
	p := &parquet.Page{Rows: rows, Encoding: format.Plain}
	for range rows {
		n := 1
		if l.leaf.MaxRep > 0 {
			n = 1 + rng.IntN(4)
		}
		for i := range n {
			p.Values++
			if l.leaf.MaxRep > 0 {
				p.Rep = append(p.Rep, uint8(min(i, 1)))
			}
			if l.name == "int64 with NULLs" && rng.IntN(2) == 0 {
				p.Def = append(p.Def, 0)
				continue
			}
			if l.leaf.MaxDef > 0 {
				p.Def = append(p.Def, uint8(l.leaf.MaxDef))
			}
			p.NonNull++
			switch w := l.leaf.Width(); {
			case l.leaf.Type == format.Boolean:
				if p.NonNull%8 == 1 {
					p.Plain = append(p.Plain, byte(rng.Uint32()))
				}
			case w > 0:
				p.Plain = append(p.Plain, make([]byte, w)...)
				binary.LittleEndian.PutUint32(p.Plain[len(p.Plain)-4:], rng.Uint32())
			default:
				p.Plain = appendPlain(p.Plain, &l.leaf, make([]byte, 6+rng.IntN(12)))
			}
		}
	}
	if n := p.NonNull % 8; l.leaf.Type == format.Boolean && n > 0 {
		p.Plain[len(p.Plain)-1] &= 1<<n - 1
	}
	return p
}

func benchStore(b *testing.B, l *benchLeaf, rows int) *leaves.Store {
	of := []meta.Leaf{l.leaf}
	s, builder := leaves.New(of, nil), leaves.NewBuilder(of)
	page := l.page(rand.New(rand.NewPCG(1, 1)), 1<<16)
	for s.Len() < rows {
		if err := builder.Add(0, page, nil); err != nil {
			b.Fatal(err)
		}
		block, err := builder.Block(page.Rows)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Append(block, nil); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// benchPages measures the time for each row.
func benchPages(b *testing.B, s *leaves.Store, rows []uint32, as leaves.Shape) {
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range s.Pages(0, rows, as) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(rows)), "ns/row")
}

// BenchmarkPages: 2 million random rows of a store of 2 million.
func BenchmarkPages(b *testing.B) {
	const n = 2 << 20
	for _, l := range benchLeaves {
		s := benchStore(b, &l, n)
		rng := rand.New(rand.NewPCG(2, 2))
		rows := make([]uint32, n)
		for i := range rows {
			rows[i] = uint32(rng.IntN(s.Len()))
		}
		b.Run(l.name, func(b *testing.B) { benchPages(b, s, rows, leaves.Shape{MaxDef: l.leaf.MaxDef}) })
	}
}

// BenchmarkMissing: 20 million rows of which few, or half, are there.
func BenchmarkMissing(b *testing.B) {
	const n = 20 << 20
	for _, l := range benchLeaves {
		s := benchStore(b, &l, 1<<18)
		for _, share := range []int{1000, 100, 2} {
			rng := rand.New(rand.NewPCG(2, 2))
			rows := make([]uint32, n)
			for i := range rows {
				rows[i] = leaves.None
				if rng.IntN(share) == 0 {
					rows[i] = uint32(rng.IntN(s.Len()))
				}
			}
			b.Run(fmt.Sprintf("%s/1 of %d", l.name, share), func(b *testing.B) {
				benchPages(b, s, rows, leaves.Shape{Shift: 1, MaxDef: l.leaf.MaxDef + 1})
			})
		}
	}
}
