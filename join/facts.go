package join

import (
	"fmt"
	"math"

	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// idRows is the number of ID rows, or an estimate, -1 if nothing is known.
func (j *Join) idRows() (rows int64, exact bool) {
	exact = true
	for _, f := range j.ids {
		n, sure, err := f.EstimateRows()
		if err != nil || n < 0 {
			return -1, false // whoever reads the file will get the error
		}
		rows, exact = rows+n, exact && sure
	}
	return rows, exact
}

// facts looks at the footers.
func (j *Join) facts() (*Plan, sizes, error) {
	p := &Plan{Advice: []string{}}
	s := sizes{keyBytes: 8, integer: len(j.classes) == 1 && j.classes[0] == key.Integer}
	p.Log.Files, p.IDs.Files = len(j.pieces), len(j.ids)
	var rows int64 // -1: not known
	for _, piece := range j.pieces {
		f := piece.File
		column, kept, err := j.logColumns(f)
		if err != nil {
			return nil, s, err
		}
		if rows, err = addRows(rows, piece); err != nil {
			return nil, s, err
		}
		p.Log.KeyBytes = addBytes(p.Log.KeyBytes, f.PlainBytes(piece.Lo, piece.Hi, column))
		p.Log.Bytes = addBytes(p.Log.Bytes, f.PlainBytes(piece.Lo, piece.Hi, kept))
		s.logColumns = math.Max(s.logColumns, float64(len(f.Schema().Fields())))
		if kept != nil {
			s.logColumns = float64(len(kept))
		}
	}
	p.Log.Rows = exactly(float64(rows))
	s.logRows, s.logBytes, s.logKeyBytes = float64(rows), float64(max(p.Log.Bytes, 0)), float64(max(p.Log.KeyBytes, 0))
	if err := j.idFacts(p, &s); err != nil {
		return nil, s, err
	}
	if rows < 0 { // as many as there are IDs, for want of better
		s.logRows = math.Max(1<<20, s.idRows)
	}
	if !s.integer {
		s.keyBytes = math.Max(8, math.Max(s.logKeyBytes/math.Max(s.logRows, 1), float64(p.IDs.KeyBytes)/math.Max(s.idRows, 1)))
	}
	s.logKeys = s.logRows / 4 // as long as nobody has looked
	s.selectivity = 0.05
	s.kept = math.Min(s.idRows, s.selectivity*s.logKeys)
	s.joinRows = s.selectivity * s.logRows
	return p, s, nil
}

// addRows adds the rows of a piece to a number of rows, of which -1 says that it
// is not known.
func addRows(rows int64, p partition.Piece) (int64, error) {
	for g := p.Lo; g < p.Hi && rows >= 0; g++ {
		n := p.File.GroupRows(g)
		if n < 0 {
			all, err := p.File.CountRows()
			if err != nil || all < 0 {
				return -1, err
			}
			n = all / int64(p.File.NumGroups())
		}
		rows += n
	}
	return rows, nil
}

// addBytes adds sizes, of which -1 says that one is not known.
func addBytes(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

// idFacts looks at the footers of the IDs.
func (j *Join) idFacts(p *Plan, s *sizes) error {
	n, sure := j.idRows()
	p.IDs.Rows = exactly(float64(n))
	if !sure && n >= 0 {
		p.IDs.Rows.Low, p.IDs.Rows.High = float64(n)/2, float64(n)*2
	}
	for _, f := range j.ids {
		key, err := j.keyColumns(f)
		if err != nil {
			return err
		}
		kept := key
		if j.idCols.rows {
			if kept, err = j.idCols.kept(f); err != nil {
				return err
			}
		}
		p.IDs.KeyBytes = addBytes(p.IDs.KeyBytes, f.PlainBytes(0, f.NumGroups(), key))
		p.IDs.Bytes = addBytes(p.IDs.Bytes, f.PlainBytes(0, f.NumGroups(), kept))
	}
	s.idRows = math.Max(0, p.IDs.Rows.High)
	s.idKeys = s.idRows
	if j.idCols.rows {
		s.idBytes = math.Max(0, float64(p.IDs.Bytes))
	}
	s.exact, s.spread = j.comesOutExact(s.idKeys, nil)
	return nil
}

// logColumns returns the key columns of a log file, and those that the answer
// has, nil for all.
func (j *Join) logColumns(f *partition.File) (column, kept []int, err error) {
	for _, c := range j.left {
		field, err := c.Resolve(f.Schema(), j.opts.IgnoreCase)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		column = append(column, field.Index[0])
	}
	if names := j.logNames(false); names != nil {
		kept = []int{}
		for _, name := range names {
			if field, err := (key.Path{name}).Resolve(f.Schema(), j.opts.IgnoreCase); err == nil { // else another file of a union has it
				kept = append(kept, field.Index[0])
			}
		}
	}
	return column, kept, nil
}

// comesOutExact reports whether a filter of so many distinct IDs will be exact:
// whether, spread evenly over their range, they take fewer bytes as an exact set
// than as bits. Keys that are not spread evenly take still fewer. The range is
// that of bounds, or what the statistics tell; spread is the number of integers
// in it, 0 if it is not known.
func (j *Join) comesOutExact(n float64, bounds *key.Bounds) (exact bool, spread float64) {
	if j.opts.Filter != nil {
		set := j.opts.Filter.Exact()
		if set == nil {
			return false, 0
		}
		lo, below, _ := set.Least()
		hi, negative, _ := set.Greatest()
		return true, integer(hi, negative) - integer(lo, below) + 1
	}
	if !j.integers() || n < 1 {
		return false, 0
	}
	lo, hi, ok := j.rangeOfIDs(bounds)
	if !ok {
		return false, 0
	}
	return exactIsSmaller(n, hi-lo+1, j.opts.FPR), hi - lo + 1
}

// rangeOfIDs returns the least and the greatest of IDs that are integers, as
// bounds or, if they are nil, statistics tell.
func (j *Join) rangeOfIDs(bounds *key.Bounds) (lo, hi float64, ok bool) {
	if bounds == nil {
		if len(j.right) != 1 {
			return 0, 0, false
		}
		return partition.IntegerRange(j.ids, j.right[0], j.opts.IgnoreCase)
	}
	least, most, ok := bounds.Column(0)
	a, fine := key.Number(key.Integer, least)
	b, known := key.Number(key.Integer, most)
	if !ok || !fine || !known {
		return 0, 0, false
	}
	lo, _ = a.Float64()
	hi, _ = b.Float64()
	return lo, hi, true
}

// integer is about the value of an integer in two's complement.
func integer(v uint64, negative bool) float64 {
	if negative {
		return float64(int64(v))
	}
	return float64(v)
}

// exactIsSmaller compares an exact set of n keys, spread over a range, with a
// Bloom filter: by containers of 2^16 neighbours, which take two bytes for a key
// and up to 8 KiB in all.
func exactIsSmaller(n, spread, fpr float64) bool {
	if fpr == 0 {
		fpr = bloom.DefaultFPR(uint64(n))
	}
	const header = 16
	containers := math.Min(n, spread/(1<<16)+1)
	return containers*header+math.Min(2*n, 8192*containers) < filterBytes(n, fpr)
}
