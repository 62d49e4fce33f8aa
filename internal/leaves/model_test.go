package leaves_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// entry is an entry of a row: its levels, and its value, a byte array without its
// length and a boolean as a byte; nil if there is none.
type entry struct {
	rep, def uint8
	value    []byte
}

type row []entry

// model is a leaf with rows, each kept by itself.
type model struct {
	leaf   meta.Leaf
	nodes  []format.FieldRepetitionType
	nulls  int // in 100, at each node
	values [][]byte
	dict   *parquet.Dictionary
	number map[string]uint32 // of the values in dict
	rows   []row
}

var types = []struct {
	typ    format.Type
	length int
}{
	{format.Boolean, 0}, {format.Int32, 0}, {format.Int64, 0}, {format.Int96, 0}, {format.Float, 0}, {format.Double, 0},
	{format.ByteArray, 0}, {format.FixedLenByteArray, 1}, {format.FixedLenByteArray, 3}, {format.FixedLenByteArray, 16},
	{format.FixedLenByteArray, 17}, {format.FixedLenByteArray, 70},
}

// newModel draws a leaf and rows.
func newModel(t testing.TB, rng *rand.Rand, index, rows int) *model {
	m := &model{nulls: []int{0, 5, 50, 95, 100}[rng.IntN(5)]}
	of := types[rng.IntN(len(types))]
	m.leaf = meta.Leaf{Dotted: fmt.Sprintf("c%d", index), Path: []string{fmt.Sprintf("c%d", index)}, Index: index, Type: of.typ, TypeLength: of.length}
	for range 1 + rng.IntN(3) {
		n := []format.FieldRepetitionType{format.Required, format.Optional, format.Optional, format.Repeated}[rng.IntN(4)]
		m.nodes = append(m.nodes, n)
		if n != format.Required {
			m.leaf.MaxDef++
		}
		if n == format.Repeated {
			m.leaf.MaxRep++
		}
	}
	m.drawValues(t, rng)
	for range rows {
		m.rows = append(m.rows, m.row(rng))
	}
	return m
}

func (m *model) drawValues(t testing.TB, rng *rand.Rand) {
	m.number = map[string]uint32{}
	longest := []int{0, 5, 40, 3000}[rng.IntN(4)]
	for range 1 + rng.IntN(30) {
		n := m.leaf.Width()
		switch m.leaf.Type {
		case format.Boolean:
			m.values = append(m.values, []byte{uint8(rng.IntN(2))})
			continue
		case format.ByteArray:
			n = rng.IntN(longest + 1)
		}
		v := make([]byte, n)
		for i := range v {
			v[i] = byte(rng.Uint32())
		}
		m.values = append(m.values, v)
	}
	if m.leaf.Type != format.Boolean {
		m.dict = dictionary(t, &m.leaf, m.values)
		for i := range m.dict.Len {
			p := parquet.Page{Indices: []uint32{uint32(i)}, Coded: true}
			if m.leaf.Type == format.ByteArray {
				m.number[string(p.Bytes(0, m.dict))] = uint32(i)
			} else {
				m.number[string(m.dict.Plain[i*m.leaf.Width():(i+1)*m.leaf.Width()])] = uint32(i)
			}
		}
	}
}

// dictionary returns a dictionary of values, as it is read from a file.
func dictionary(t testing.TB, l *meta.Leaf, values [][]byte) *parquet.Dictionary {
	t.Helper()
	root, e := meta.Element{Name: "schema"}, meta.Element{Name: "v"}
	root.NumChildren.Set(1)
	e.Type.Set(l.Type)
	e.TypeLength.Set(int32(l.TypeLength))
	e.RepetitionType.Set(format.Required)
	var out bytes.Buffer
	w, err := parquet.NewWriter(&out, []meta.Element{root, e}, nil, parquet.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := w.Chunk(0)
	c.UseDictionary()
	p := &parquet.Page{Encoding: format.Plain}
	for range 50 { // so that a dictionary pays
		for _, v := range values {
			p.Plain = appendPlain(p.Plain, l, v)
			p.Values, p.Rows, p.NonNull = p.Values+1, p.Rows+1, p.NonNull+1
		}
	}
	if err := c.Add(p, nil); err != nil {
		t.Fatal(err)
	}
	chunk, err := c.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.RowGroup(int64(p.Rows), []*parquet.EncodedChunk{chunk}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.Open(nil, bytes.NewReader(out.Bytes()), int64(out.Len()), "dictionary")
	if err != nil {
		t.Fatal(err)
	}
	in := f.Chunk(0, 0)
	defer in.Close()
	d, err := in.ReadDictionary(context.Background())
	if err != nil || d == nil {
		t.Fatal("no dictionary", err)
	}
	return d.Clone()
}

func appendPlain(dst []byte, l *meta.Leaf, v []byte) []byte {
	if l.Type == format.ByteArray {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(v)))
	}
	return append(dst, v...)
}

// row draws a row.
func (m *model) row(rng *rand.Rand) (out row) {
	var walk func(depth int, rep, next, def uint8)
	walk = func(depth int, rep, next, def uint8) {
		if depth == len(m.nodes) {
			out = append(out, entry{rep, def, m.values[rng.IntN(len(m.values))]})
			return
		}
		n := 1
		switch m.nodes[depth] {
		case format.Required:
			walk(depth+1, rep, next, def)
			return
		case format.Repeated:
			next++
			n = 1 + rng.IntN(4)
		}
		if rng.IntN(100) < m.nulls {
			out = append(out, entry{rep: rep, def: def})
			return
		}
		for range n {
			walk(depth+1, rep, next, def+1)
			rep = next
		}
	}
	walk(0, 0, 0, 0)
	return out
}

// page returns entries as a page, coded or not.
func (m *model) page(entries []entry, coded bool) *parquet.Page {
	l := &m.leaf
	p := &parquet.Page{Values: len(entries), Encoding: format.Plain, Coded: coded && l.Type != format.Boolean}
	if l.MaxDef > 0 {
		p.Def = []uint8{}
	}
	if l.MaxRep > 0 {
		p.Rep = []uint8{}
	}
	for _, e := range entries {
		if l.MaxDef > 0 {
			p.Def = append(p.Def, e.def)
		}
		if l.MaxRep > 0 {
			p.Rep = append(p.Rep, e.rep)
		}
		if e.rep == 0 {
			p.Rows++
		}
		switch {
		case e.value == nil:
			continue
		case p.Coded:
			p.Indices = append(p.Indices, m.number[string(e.value)])
		case l.Type == format.Boolean:
			if p.NonNull%8 == 0 {
				p.Plain = append(p.Plain, 0)
			}
			p.Plain[p.NonNull/8] |= e.value[0] << (p.NonNull % 8)
		default:
			p.Plain = appendPlain(p.Plain, l, e.value)
		}
		p.NonNull++
	}
	return p
}

// pages calls fn with pages of rows, cut anywhere.
func (m *model) pages(rng *rand.Rand, rows []row, fn func(p *parquet.Page)) {
	var all []entry
	for _, r := range rows {
		all = append(all, r...)
	}
	most := []int{1, 3, 100, 1 << 30}[rng.IntN(4)]
	coded := rng.IntN(3)
	for len(all) > 0 {
		n := min(1+rng.IntN(most), len(all))
		fn(m.page(all[:n], coded == 1 || coded == 2 && rng.IntN(2) == 0))
		all = all[n:]
	}
}

// entries reads the entries of a page and checks that the page is consistent.
func entries(t testing.TB, l *meta.Leaf, maxDef int, p *parquet.Page, dict *parquet.Dictionary) (out []entry) {
	t.Helper()
	if (p.Def == nil) != (maxDef == 0) || (p.Rep == nil) != (l.MaxRep == 0) ||
		p.Def != nil && len(p.Def) != p.Values || p.Rep != nil && len(p.Rep) != p.Values {
		t.Fatalf("%d entries with levels %v %v", p.Values, p.Rep, p.Def)
	}
	n, rows, pos := 0, 0, 0
	for i := range p.Values {
		e := entry{def: uint8(maxDef)}
		if p.Def != nil {
			e.def = p.Def[i]
		}
		if p.Rep != nil {
			e.rep = p.Rep[i]
		}
		if e.rep == 0 {
			rows++
		}
		if int(e.def) == maxDef {
			w := l.Width()
			switch {
			case p.Coded && l.Type == format.ByteArray:
				e.value = p.Bytes(n, dict)
			case p.Coded:
				e.value = dict.Plain[int(p.Indices[n])*w:][:w]
			case l.Type == format.ByteArray:
				w = int(binary.LittleEndian.Uint32(p.Plain[pos:]))
				e.value = p.Plain[pos+4:][:w:w]
				pos += 4 + w
			case l.Type == format.Boolean:
				e.value = []byte{p.Plain[n/8] >> (n % 8) & 1}
				pos = n/8 + 1
			default:
				e.value = p.Plain[pos:][:w:w]
				pos += w
			}
			e.value = append([]byte{}, e.value...)
			n++
		}
		out = append(out, e)
	}
	if n != p.NonNull || rows != p.Rows || pos != len(p.Plain) || p.Coded && n != len(p.Indices) {
		t.Fatalf("a page with %d values in %d rows and %d bytes: %+v", n, rows, pos, p)
	}
	return out
}

func sameEntries(a, b []entry) error {
	if len(a) != len(b) {
		return fmt.Errorf("%d entries, want %d", len(a), len(b))
	}
	for i := range a {
		if x, y := a[i], b[i]; x.rep != y.rep || x.def != y.def || (x.value == nil) != (y.value == nil) || !bytes.Equal(x.value, y.value) {
			return fmt.Errorf("entry %d is %v, want %v", i, x, y)
		}
	}
	return nil
}
