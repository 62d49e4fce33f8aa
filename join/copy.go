package join

import (
	"context"
	"iter"

	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/partition"
)

// The rows of a semi or anti join are rows of the log as they are. So the scan
// itself makes the answer, and copies pages where it can: each candidate is
// looked up among the IDs while the page with its key is at hand.

// Write joins and writes the answer to the output. End, if not nil, is called
// when all has been read and Options.Require is met, before anything is visible;
// its error is the join's. With Options.Require, that holds for the files of a
// directory, too: see [partition.Output].Hold.
func (j *Join) Write(ctx context.Context, out partition.Output, end func() error) (partition.Written, error) {
	if j.rowsOfLog() || j.opts.Schema == partition.Strict {
		if err := out.CheckSchemas(ctx, j.kept(), j.logs); err != nil {
			return partition.Written{}, err
		}
	}
	out.Hold = out.Hold || j.opts.Require.any()
	if !j.rowsOfLog() {
		return out.Write(ctx, j.Parts(), j.until(ctx, end))
	}
	defer func() { j.side.release() }()
	if err := j.prepare(ctx); err != nil {
		return partition.Written{}, err
	}
	var s *partition.Scanner
	s, err := j.scanner(func() error {
		if err := j.finishScan(s); err != nil || end == nil {
			return err
		}
		return end()
	})
	if err != nil {
		return partition.Written{}, err
	}
	j.scanned = s
	return out.WriteScan(ctx, s, j.pieces, j.logs)
}

// PathOf returns the way that the rows of a log file went, see
// [partition.Scanner.PathOf]. It is known once Write has returned.
func (j *Join) PathOf(f *partition.File) (path, why string) {
	if j.scanned == nil {
		return "generic", "rows are joined as Arrow records"
	}
	return j.scanned.PathOf(f)
}

// rowsOfLog reports whether the answer is rows of the log as they are.
func (j *Join) rowsOfLog() bool { return !j.opts.Type.columnsOfIDs() }

// scanner returns the scan that makes the answer.
func (j *Join) scanner(end func() error) (*partition.Scanner, error) {
	m := j.match()
	m.Exclude = j.opts.Type == Anti
	m.Verifier = j.newVerifier
	opts := j.kept()
	opts.Match, opts.End, opts.Normalize = []partition.Match{m}, end, j.opts.Normalize
	return partition.NewScanner(opts)
}

// kept is what the scan does with the rows that pass.
func (j *Join) kept() partition.ScanOptions {
	o := &j.opts
	return partition.ScanOptions{
		Columns: o.Columns, Schema: o.Schema, Pinned: o.Pinned,
		Threads: o.Threads, Mem: o.Mem, Progress: o.Progress,
	}
}

// newVerifier returns what one worker of the scan checks candidates with.
func (j *Join) newVerifier() partition.Verifier {
	v := &verifier{j: j, side: j.side, spread: newSpread()}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.spreads = append(j.spreads, v.spread)
	return v
}

// rowsOf returns how many rows have the key at position i.
func rowsOf(rows []uint32, i uint32) int64 {
	if rows == nil {
		return 1
	}
	return int64(rows[i])
}

// verifier looks candidates up among the IDs.
type verifier struct {
	j       *Join
	side    *idSide
	spread  *spread
	entries []uint32 // of the members that Verify has found
	hashes  []uint64
}

// Filter implements [partition.Verifier].
func (v *verifier) Filter() bool { return true }

// Begin implements [partition.Verifier].
func (v *verifier) Begin(*partition.File, int) {}

func (v *verifier) Verify(k *keys.Batch, hits []uint32) []uint32 {
	var members []uint32
	members, v.entries = v.side.find(k, hits, hits, v.entries)
	return members
}

func (v *verifier) Count(k *keys.Batch, hits, members, rows []uint32) error {
	candidates, matched := int64(0), int64(0)
	for _, h := range hits {
		candidates += rowsOf(rows, h)
	}
	for i, m := range members {
		if n := rowsOf(rows, m); n > 0 {
			v.side.mark(v.entries[i])
			matched += n
		}
	}
	v.j.candidates.Add(candidates)
	v.j.falsePositives.Add(candidates - matched)
	v.hashes = k.Hash(tableHash, v.hashes)
	for i, h := range v.hashes {
		if len(members) > 0 && members[0] == uint32(i) {
			members = members[1:]
			continue
		}
		v.spread.add(h, rowsOf(rows, uint32(i)))
	}
	return nil
}

// scan is Run of a join whose answer is rows of the log as they are.
func (j *Join) scan(ctx context.Context, yield func(partition.Rows, error) bool) {
	s, err := j.scanner(nil)
	if err != nil {
		yield(partition.Rows{}, err)
		return
	}
	for r, err := range s.Scan(ctx, j.pieces) {
		if !yield(r, err) || err != nil {
			return
		}
	}
	if err := j.finishScan(s); err != nil {
		yield(partition.Rows{}, err)
	}
}

// finishScan is finish after a scan.
func (j *Join) finishScan(s *partition.Scanner) error {
	st := s.Stats
	j.rowsIn.Store(st.RowsIn.Load())
	j.rowsOut.Store(st.RowsOut.Load())
	j.keysNull.Store(st.KeysNull.Load())
	j.report.RowGroupsSkipped = st.RowGroupsSkipped.Load()
	j.report.Pages, j.report.PagesSkipped = st.Pages.Load(), st.PagesSkipped.Load()
	return j.finish()
}

// until is Run, with end called at its end.
func (j *Join) until(ctx context.Context, end func() error) iter.Seq2[partition.Rows, error] {
	return func(yield func(partition.Rows, error) bool) {
		for r, err := range j.Run(ctx) {
			if !yield(r, err) || err != nil {
				return
			}
		}
		if end == nil {
			return
		}
		if err := end(); err != nil {
			yield(partition.Rows{}, err)
		}
	}
}
