package joins

import (
	"cmp"
	"math"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/joins/internal/plan"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/rowfilter"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// idRows returns the number of ID rows, or an estimate; -1 if it is unknown.
func (t *task) idRows() (rows int64, exact bool) {
	exact = true
	for _, f := range t.ids {
		n, sure, err := rowfilter.EstimateRows(f)
		if err != nil || n < 0 {
			return -1, false // reading the file will report the error
		}
		rows, exact = rows+n, exact && sure
	}
	return rows, exact
}

// facts returns a plan and sizes from the footers.
func (t *task) facts() (*plan.Plan, plan.Sizes, error) {
	p := &plan.Plan{Advice: []string{}}
	s := plan.Sizes{KeyBytes: 8, Integer: t.keys.Integers(), Copied: true}
	p.Log.Files, p.IDs.Files = len(t.pieces), len(t.ids)
	var rows int64 // -1: not known
	for _, piece := range t.pieces {
		f := piece.File
		column, kept, err := t.logColumns(f)
		if err != nil {
			return nil, s, err
		}
		if rows, err = addRows(rows, piece); err != nil {
			return nil, s, err
		}
		p.Log.KeyBytes = addBytes(p.Log.KeyBytes, rowfilter.PlainBytes(f, piece.Lo, piece.Hi, column))
		p.Log.Bytes = addBytes(p.Log.Bytes, rowfilter.PlainBytes(f, piece.Lo, piece.Hi, kept))
		s.LogColumns = math.Max(s.LogColumns, float64(f.Schema().NumFields()))
		s.Codec, s.Copied = cmp.Or(s.Codec, f.Codec()), s.Copied && f.Parquet() != nil
		if kept != nil {
			s.LogColumns = float64(len(kept))
		}
	}
	if p.Log.Rows = plan.Exactly(float64(rows)); rows > 0 && slices.ContainsFunc(t.logs, (*source.File).Uncounted) {
		p.Log.Rows.Low = 0
	}
	s.LogRows, s.LogBytes = float64(rows), float64(max(p.Log.Bytes, 0))
	if err := t.idFacts(p, &s); err != nil {
		return nil, s, err
	}
	if rows < 0 { // as a guess, as many as there are IDs
		s.LogRows = math.Max(1<<20, s.IDRows)
	}
	if !s.Integer {
		s.KeyBytes = math.Max(8, math.Max(float64(max(p.Log.KeyBytes, 0))/math.Max(s.LogRows, 1), float64(p.IDs.KeyBytes)/math.Max(s.IDRows, 1)))
	}
	s.LogKeys = s.LogRows / 4 // a guess until keys are sampled
	s.Selectivity = 0.05
	s.Kept = math.Min(s.IDRows, s.Selectivity*s.LogKeys)
	s.JoinRows = s.Selectivity * s.LogRows
	return p, s, nil
}

// addRows adds the rows of a piece to a number of rows; -1 stands for unknown.
func addRows(rows int64, p source.Piece) (int64, error) {
	if rows < 0 {
		return rows, nil
	}
	n := rowfilter.MostRows(p)
	if n < 0 {
		all, err := p.File.CountRows()
		if err != nil || all < 0 {
			return -1, err
		}
		n = all / int64(p.File.NumGroups()) * int64(p.Hi-p.Lo)
	}
	return rows + n, nil
}

// addBytes adds sizes; -1 stands for unknown.
func addBytes(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

// idFacts fills in the figures from the footers of the IDs.
func (t *task) idFacts(p *plan.Plan, s *plan.Sizes) error {
	n, sure := t.idRows()
	p.IDs.Rows = plan.Exactly(float64(n))
	if !sure && n >= 0 {
		p.IDs.Rows.Low, p.IDs.Rows.High = float64(n)/2, float64(n)*2
	}
	for _, f := range t.ids {
		key, err := t.keys.KeyColumns(f)
		if err != nil {
			return err
		}
		kept := key
		if t.answer.IDs.Rows {
			kept = t.answer.IDs.Held.In(f)
		}
		p.IDs.KeyBytes = addBytes(p.IDs.KeyBytes, rowfilter.PlainBytes(f, 0, f.NumGroups(), key))
		p.IDs.Bytes = addBytes(p.IDs.Bytes, rowfilter.PlainBytes(f, 0, f.NumGroups(), kept))
	}
	s.IDRows = math.Max(0, p.IDs.Rows.High)
	s.IDKeys = s.IDRows
	if t.answer.IDs.Rows {
		s.IDBytes = math.Max(0, float64(p.IDs.Bytes))
	}
	s.Exact, s.Spread = t.comesOutExact(s.IDKeys, nil)
	return nil
}

// logColumns returns the positions of the key columns of a log file, and of those
// in the answer; nil: all.
func (t *task) logColumns(f *source.File) (column, kept []int, err error) {
	for _, c := range t.keys.Log {
		field, err := c.Resolve(f.Schema(), t.opts.IgnoreCase)
		if err != nil {
			return nil, nil, f.Failed(err)
		}
		column = append(column, field.Index[0])
	}
	if scan := t.answer.ScanOptions(t.logs[0]); scan.Columns != nil {
		kept = []int{}
		for _, name := range scan.Columns {
			scan.Columns = []string{name}
			if at, err := scan.ColumnsOf(f); err == nil { // else it is in another file of a union
				kept = append(kept, at...)
			}
		}
	}
	return column, kept, nil
}

// comesOutExact reports whether a filter of n distinct IDs will be exact, because an exact set
// takes fewer bytes than a Bloom filter. It assumes IDs spread evenly over their range, the worst
// case. The range comes from bounds or, if they are nil, from the statistics. spread is the number
// of integers in it; 0: unknown.
func (t *task) comesOutExact(n float64, bounds *keys.Bounds) (exact bool, spread float64) {
	if t.opts.Filter != nil {
		set := t.opts.Filter.Exact()
		if set == nil {
			return false, 0
		}
		lo, below, _ := set.Least()
		hi, negative, _ := set.Greatest()
		return true, integer(hi, negative) - integer(lo, below) + 1
	}
	if !t.keys.Integers() || n < 1 {
		return false, 0
	}
	lo, hi, ok := t.rangeOfIDs(bounds)
	if !ok {
		return false, 0
	}
	return plan.ExactIsSmaller(n, hi-lo+1, t.opts.FPR), hi - lo + 1
}

// rangeOfIDs returns the least and the greatest of integer IDs, according to bounds
// or, if they are nil, to statistics.
func (t *task) rangeOfIDs(bounds *keys.Bounds) (lo, hi float64, ok bool) {
	if bounds == nil {
		if len(t.keys.IDs) != 1 {
			return 0, 0, false
		}
		return keyscan.IntegerRange(t.ids, t.keys.IDs[0], t.opts.IgnoreCase)
	}
	least, most, ok := bounds.Column(0)
	a, fine := keys.Number(keys.Integer, least)
	b, known := keys.Number(keys.Integer, most)
	if !ok || !fine || !known {
		return 0, 0, false
	}
	lo, _ = a.Float64()
	hi, _ = b.Float64()
	return lo, hi, true
}

// integer returns the approximate value of an integer in two's complement.
func integer(v uint64, negative bool) float64 {
	if negative {
		return float64(int64(v))
	}
	return float64(v)
}
