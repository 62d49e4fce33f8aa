package leaves

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

const (
	segmentShift = 16
	segmentRows  = 1 << segmentShift // rows of all segments but the last
)

// Store holds rows, numbered from 0. Append must not be concurrent with anything
// else; the other methods are safe for concurrent use.
type Store struct {
	of     []meta.Leaf
	kinds  []kind
	leaves [][]column // by segment
	rows   int
	take   func(int64) error
	bytes  int64
	makers sync.Pool // of *pageMaker
	widest func() int64
}

// New returns an empty store of rows with the given leaves. take, if not nil, is
// called before memory is allocated; its error is Append's.
func New(of []meta.Leaf, take func(bytes int64) error) *Store {
	s := &Store{of: of, kinds: kindsOf(of), leaves: make([][]column, len(of)), take: take}
	s.widest = sync.OnceValue(s.widestRow)
	return s
}

// Len returns the number of rows.
func (s *Store) Len() int { return s.rows }

// Bytes returns the bytes that were passed to take.
func (s *Store) Bytes() int64 { return s.bytes }

// RowBytes returns the approximate bytes of a row; 0 for None.
func (s *Store) RowBytes(row uint32) (n int64) {
	if row == None {
		return 0
	}
	for i := range s.leaves {
		n += s.kinds[i].rowBytes(locate(s.leaves[i], row))
	}
	return n
}

// WidestRow returns an upper bound on RowBytes. No row may be appended after the first call.
func (s *Store) WidestRow() int64 { return s.widest() }

func (s *Store) widestRow() (most int64) {
	for i, cols := range s.leaves {
		widest := int64(s.kinds[i].width) // of dense leaves
		for c := range cols {
			for row := range max(len(cols[c].starts)-1, 0) {
				widest = max(widest, s.kinds[i].rowBytes(&cols[c], uint32(row)))
			}
		}
		most += widest
	}
	return most
}

// rowBytes returns the bytes of a row of a column.
func (k *kind) rowBytes(c *column, row uint32) int64 {
	switch n := int64(k.width); {
	case k.dense:
		return n
	case k.maxRep > 0:
		return int64(c.starts[row+1]-c.starts[row]) + 2*int64(c.entries[row+1]-c.entries[row])
	default:
		return int64(c.starts[row+1] - c.starts[row])
	}
}

// Append appends the given rows of the block, all if rows is nil. After an error the
// store has the rows that it had before.
func (s *Store) Append(b *Block, rows []uint32) error {
	if !slices.Equal(s.kinds, b.kinds) {
		return errors.New("rows to be held in memory have other columns")
	}
	n := len(rows)
	if rows == nil {
		n = b.rows
	}
	if uint64(s.rows)+uint64(n) > None {
		return fmt.Errorf("%w: more than 2^32 rows in a table", fault.ErrMemory)
	}
	for i := range s.leaves {
		if err := s.appendLeaf(i, &b.cols[i], rows, n); err != nil {
			for j := range i + 1 {
				cols := s.leaves[j] // of which the store does not count the new rows
				for seg := s.rows >> segmentShift; seg < len(cols); seg++ {
					cols[seg].truncate(&s.kinds[j], max(s.rows-seg<<segmentShift, 0))
				}
			}
			return err
		}
	}
	s.rows += n
	return nil
}

// appendLeaf appends n rows of a block to a leaf: those given, or the first n.
func (s *Store) appendLeaf(leaf int, from *column, rows []uint32, n int) error {
	l, k := &s.leaves[leaf], &s.kinds[leaf]
	for row, done := s.rows, 0; done < n; {
		seg := row >> segmentShift
		if seg == len(*l) {
			if err := s.addSegment(l); err != nil {
				return err
			}
		}
		some := min(n-done, segmentRows-row&(segmentRows-1))
		p := portion{from: from, first: uint32(done), n: some}
		if rows != nil {
			p.rows = rows[done : done+some]
		}
		g := growth{s: s}
		if seg > 0 {
			g.former = &(*l)[seg-1]
		}
		add := g.ragged
		if k.dense {
			add = g.dense
		}
		if err := add(k, &(*l)[seg], &p); err != nil {
			return fmt.Errorf("column %s: %w", s.of[leaf].Dotted, err)
		}
		row, done = row+some, done+some
	}
	return nil
}

func (s *Store) addSegment(cols *[]column) error {
	if len(*cols) == cap(*cols) {
		wider := max(2*cap(*cols), 4)
		if err := s.charge(int64(wider-cap(*cols)) * int64(unsafe.Sizeof(column{}))); err != nil {
			return err
		}
		*cols = append(make([]column, 0, wider), *cols...)
	}
	*cols = append(*cols, column{})
	return nil
}

func (s *Store) charge(bytes int64) error {
	if s.take != nil {
		if err := s.take(bytes); err != nil {
			return err
		}
	}
	s.bytes += bytes
	return nil
}
