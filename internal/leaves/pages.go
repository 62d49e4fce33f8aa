package leaves

import (
	"bytes"
	"fmt"
	"iter"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// Shape says how a leaf's entries become entries of another leaf.
type Shape struct {
	Shift  uint8 // added to definition levels, since an ancestor became optional
	MaxDef int   // of the other leaf: this one's plus Shift
}

// A page ends at the first row with which it reaches one of these.
const (
	pageRows  = 1 << 16 // rows, or entries of a repeated leaf
	pageBytes = 1 << 20 // bytes of values
)

// Pages yields the entries of a leaf at the given rows, in that order, as pages of
// bounded size without dictionary. None stands for a NULL: one entry of levels 0. A
// page is valid until the next one. An error is the last thing that is yielded. An
// iteration takes about 2 MiB of memory besides the store's.
func (s *Store) Pages(leaf int, rows []uint32, as Shape) iter.Seq2[*parquet.Page, error] {
	return func(yield func(*parquet.Page, error) bool) {
		k, cols := &s.kinds[leaf], s.leaves[leaf]
		if as.MaxDef != int(k.maxDef)+int(as.Shift) {
			yield(nil, fmt.Errorf("column %s: definition levels up to %d and %d, not %d", s.of[leaf].Dotted, k.maxDef, as.Shift, as.MaxDef))
			return
		}
		m, _ := s.makers.Get().(*pageMaker)
		if m == nil {
			m = new(pageMaker)
		}
		defer s.makers.Put(m)
		for len(rows) > 0 {
			var n int
			if k.maxRep > 0 {
				n = m.repeated(k, cols, rows, as)
			} else if n = m.flat(k, cols, rows, as); n == 0 {
				yield(nil, fmt.Errorf("column %s: a row that is missing, in a column that is never NULL", s.of[leaf].Dotted))
				return
			}
			if rows = rows[n:]; !yield(&m.page, nil) {
				return
			}
		}
	}
}

// pageMaker is the memory of a page.
type pageMaker struct {
	page     parquet.Page
	rep, def []uint8
	plain    []byte
	bools    []byte // booleans, a byte each
	hits     []uint32
}

// flat makes the page of the first rows of a leaf that is not repeated. It returns
// their number, or 0 if a row is None that may not be NULL.
func (m *pageMaker) flat(k *kind, cols []column, rows []uint32, as Shape) int {
	rows = rows[:min(len(rows), pageRows)]
	hits, ok := m.levels(k, cols, rows, as)
	if !ok {
		return 0
	}
	n := len(rows)
	switch {
	case k.typ == format.Boolean:
		m.bools = sized(m.bools, len(hits))
		gatherSlots(m.bools, cols, k.width, hits)
		m.plain = pack(m.plain[:0], m.bools)
	case k.dense:
		m.plain = sized(m.plain, len(hits)*k.width)
		gatherSlots(m.plain, cols, k.width, hits)
	default:
		var taken int
		if m.plain, taken = appendValues(m.plain[:0], cols, hits, pageBytes); taken < len(hits) {
			n = m.rowsUntil(taken, as)
			hits = hits[:taken]
		}
	}
	m.page = parquet.Page{Values: n, Rows: n, NonNull: len(hits), Encoding: format.Plain, Plain: m.plain}
	if as.MaxDef > 0 {
		m.page.Def = m.def[:n]
	}
	return n
}

// sized returns n bytes, in b's memory if it suffices.
func sized(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// rowsUntil returns the number of rows before the one that has value n.
func (m *pageMaker) rowsUntil(n int, as Shape) int {
	if as.MaxDef == 0 {
		return n
	}
	at := 0
	for ; n >= 0; n-- {
		at += bytes.IndexByte(m.def[at:], uint8(as.MaxDef)) + 1
	}
	return at - 1
}

// levels sets m.def to the levels of rows and returns those rows that have a value.
// It returns false if a row is None that may not be NULL.
func (m *pageMaker) levels(k *kind, cols []column, rows []uint32, as Shape) (hits []uint32, ok bool) {
	none := countNone(rows)
	if as.MaxDef == 0 {
		return rows, none == 0
	}
	m.def = sized(m.def, len(rows))
	nulls := slices.ContainsFunc(cols, func(c column) bool { return c.def != nil })
	switch full := uint8(as.MaxDef); {
	case none == len(rows):
		clear(m.def)
		return nil, true
	case none == 0 && !nulls:
		for i := range m.def {
			m.def[i] = full
		}
		return rows, true
	case nulls:
		return m.present(cols, rows, k.maxDef, as.Shift), true
	default:
		return m.matched(rows, full), true
	}
}

func countNone(rows []uint32) (n int) {
	for _, r := range rows {
		if r == None {
			n++
		}
	}
	return n
}

const step = 8 // rows that are skipped together if all are None

// noneOf reports whether rows begins with step rows that are None.
func noneOf(rows []uint32) bool {
	if len(rows) < step {
		return false
	}
	r := (*[step]uint32)(rows)
	return r[0]&r[1]&r[2]&r[3]&r[4]&r[5]&r[6]&r[7] == None
}

// matched returns the rows that are not None, whose levels are full.
func (m *pageMaker) matched(rows []uint32, full uint8) []uint32 {
	clear(m.def)
	hits := m.roomForHits(len(rows))
	k := 0
	for at := 0; at < len(rows); at += step {
		if noneOf(rows[at:]) {
			continue
		}
		some := rows[at:min(at+step, len(rows))]
		def := m.def[at:][:len(some)]
		for i, r := range some {
			hits[k] = r
			level := uint8(0)
			if r != None {
				level = full
				k++
			}
			def[i] = level
		}
	}
	return hits[:k]
}

// present returns the rows that have a value.
func (m *pageMaker) present(cols []column, rows []uint32, max, shift uint8) []uint32 {
	clear(m.def)
	hits := m.roomForHits(len(rows))
	k := 0
	for at := 0; at < len(rows); at += step {
		if noneOf(rows[at:]) {
			continue
		}
		some := rows[at:min(at+step, len(rows))]
		def := m.def[at:][:len(some)]
		for i, r := range some {
			if r == None {
				continue
			}
			c, j := locate(cols, r)
			level := max
			if c.def != nil {
				level = c.def[j]
			}
			def[i] = level + shift
			hits[k] = r
			if level == max {
				k++
			}
		}
	}
	return hits[:k]
}

func (m *pageMaker) roomForHits(n int) []uint32 {
	if cap(m.hits) < n {
		m.hits = make([]uint32, n)
	}
	return m.hits[:n]
}

// repeated makes the page of the first rows of a repeated leaf and returns their
// number.
func (m *pageMaker) repeated(k *kind, cols []column, rows []uint32, as Shape) int {
	rep, def, values := m.rep[:0], m.def[:0], m.plain[:0]
	if k.typ == format.Boolean {
		values = m.bools[:0]
	}
	n := 0
	for ; n < len(rows) && len(rep) < pageRows && len(values) < pageBytes; n++ {
		if n%warmed == 0 {
			some := rows[n:min(n+warmed, len(rows))]
			warmEntries(cols, some)
			warm(cols, some)
		}
		if rows[n] == None {
			rep, def = append(rep, 0), append(def, 0)
			continue
		}
		c, i := locate(cols, rows[n])
		from, to := c.entries[i], c.entries[i+1]
		rep, def = appendShort(rep, c.rep, from, to), appendShort(def, c.def, from, to)
		if as.Shift > 0 {
			for j := range def[len(def)-int(to-from):] {
				def[len(def)-int(to-from)+j] += as.Shift
			}
		}
		values = appendShort(values, c.values, c.starts[i], c.starts[i+1])
	}
	m.rep, m.def = rep, def
	if k.typ == format.Boolean {
		m.bools, m.plain = values, pack(m.plain[:0], values)
	} else {
		m.plain = values
	}
	m.page = parquet.Page{
		Values: len(rep), Rows: n, NonNull: bytes.Count(def, []byte{uint8(as.MaxDef)}), Encoding: format.Plain,
		Rep: rep, Def: def, Plain: m.plain,
	}
	return n
}
