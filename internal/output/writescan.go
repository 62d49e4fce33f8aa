package output

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/pagecopy"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/storage"
)

// WriteScan writes the rows of the pieces that pass the scanner; see
// [Destination.Write] for what of it an error leaves. logs are all files of the log,
// whatever the shard. The output records what its rows are and, if the scanner has one
// filter, which they have passed. An output that exists is an error that wraps
// [ErrExists], unless Force is set.
func (o Output) WriteScan(ctx context.Context, s *keyscan.Scanner, pieces []source.Piece, logs []*source.File) (w dataset.Written, err error) {
	if err := keyscan.Usable(s); err != nil {
		return w, err
	}
	d := Destination{Output: o, Result: s.Result()}
	if len(s.Match) == 1 {
		if d.Filter, err = s.Match[0].Filter.Digest(); err != nil {
			return w, err
		}
	}
	return d.WriteScan(ctx, s, pieces, logs, nil)
}

// WriteScan writes the rows of the pieces that pass the scanner. Parquet files that
// become Parquet files are copied page by page; others are written as Arrow records.
// logs are all files of the log, from which the output takes its schema if the
// shard has none of them.
//
// If scans is not nil, the rows come from several scans instead, whose columns are those of
// s. What an error leaves is as of [Destination.Write].
func (o Destination) WriteScan(ctx context.Context, s *keyscan.Scanner, pieces []source.Piece, logs []*source.File, scans *Scans) (_ dataset.Written, err error) {
	ctx, release, err := source.OpenPieces(ctx, pieces)
	if err != nil {
		return dataset.Written{}, err
	}
	defer faults.Join(&err, release)
	var pairs *tables.Pairs
	if scans != nil {
		pairs = scans.Pairs
	}
	w, err := o.openScan(ctx, s, pairs, pieces, logs)
	if err != nil {
		return dataset.Written{}, err
	}
	defer w.abort()
	if scans == nil {
		err = w.Scan(ctx, s, nil, pieces)
	} else {
		err = scans.Each(w)
	}
	if err = cmp.Or(err, w.failed); err != nil {
		return dataset.Written{}, err
	}
	return w.close(ctx)
}

// Scans are several scans that write one output.
type Scans struct {
	// Pairs has the columns of the pairs that all scans make; nil: they make none. It is for
	// scanners with Entries and, unless its Arrays is set, only from Parquet to Parquet.
	Pairs *tables.Pairs
	// Each is called once. It calls [ScanWriter.Scan] with each scanner and its pieces, in
	// ascending order. Each of these is one of WriteScan's pieces or a part of one. Nothing
	// of a single file is visible before Each returns nil; its error is WriteScan's.
	Each func(*ScanWriter) error
}

// ScanWriter is an output that is open for scans; see [Destination.WriteScan]. It must not
// be used concurrently.
type ScanWriter struct {
	scanner *keyscan.Scanner // determines columns and schema
	parts   []Part
	at      int           // the part of the piece scanned last; pieces ascend over all scans
	nulls   map[int]int64 // rows without a key, by part
	counted source.Piece  // the last one of which nulls has the rows
	rows    *rowWriter
	rest    *restWriter // nil: the output has no rows but the log's
	left    pagecopy.Unfinished
	end     func() error // releases what the writers share
	failed  error        // the first error of a method, whatever its caller does with it
}

// openScan opens the output for the rows of the pieces. ctx bounds the whole life of
// the ScanWriter, which must be ended with close or abort.
func (o Destination) openScan(ctx context.Context, s *keyscan.Scanner, pairs *tables.Pairs, pieces []source.Piece, logs []*source.File) (*ScanWriter, error) {
	if err := o.check(ctx); err != nil {
		return nil, err
	}
	if err := keyscan.Usable(s); err != nil {
		return nil, fmt.Errorf("Output.WriteScan: %w", err)
	}
	if len(logs) == 0 && len(pieces) > 0 {
		return nil, errors.New("Output.WriteScan: logs is empty (pass all files of the log, whatever the shard)")
	}
	if err := source.CheckFiles("Output.WriteScan: logs", logs); err != nil {
		return nil, err
	}
	if err := source.CheckPieces(pieces); err != nil {
		return nil, fmt.Errorf("Output.WriteScan: %w", err)
	}
	if s.Options.Limit > 0 && o.IsDir(ctx) {
		return nil, faults.Unsupported(fault.At{File: o.Name}, "{Limit} with a directory").WithHint("write one file")
	}
	if s.Options.Columns != nil && len(s.Options.Columns) == 0 && pairs == nil {
		return nil, errors.New("no column is named for the output (name some, or leave Columns nil for all)")
	}
	if len(logs) == 0 && !o.IsDir(ctx) {
		return nil, fmt.Errorf("%s: the log has no files, so the columns of the output are unknown (write to a directory)%w", o.Name, quiet.Error{Err: storage.ErrNoFiles})
	}
	if err := o.prepare(ctx, logs); err != nil {
		return nil, err
	}
	end := o.begin()
	w, err := o.beginScan(ctx, s, pairs, pieces, logs)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	w.end = end
	return w, nil
}

// beginScan is openScan for an output on which begin was called.
func (o Destination) beginScan(ctx context.Context, s *keyscan.Scanner, pairs *tables.Pairs, pieces []source.Piece, logs []*source.File) (*ScanWriter, error) {
	s.Options.Mirrored = o.IsDir(ctx)
	arrays := pairs != nil && pairs.Arrays
	united := pairs != nil && s.Options.United() // which their columns show
	var all *unified
	if !arrays && !united { // else only the schemas of the answer count
		var err error
		if all, err = o.unified(ctx, &s.Options, logs); err != nil {
			return nil, err
		}
	}
	if len(pieces) == 0 && !o.IsDir(ctx) {
		pieces = []source.Piece{{File: logs[0]}} // for its schema, without rows
	}
	w := &ScanWriter{scanner: s, nulls: map[int]int64{}, left: pagecopy.Unfinished{Left: s.Options.Left()}}
	var err error
	if w.parts, err = partsOf(s, pieces, all == nil && !united); err != nil {
		return nil, err
	}
	for i := range w.parts {
		if arrays || united {
			w.parts[i].Schema = pairs.Schema(w.parts[i].Piece.File)
		}
	}
	if o.pagesFit() && !arrays {
		if err := o.planPages(ctx, s, pairs, w.parts, all); err != nil {
			return nil, err
		}
	}
	copied := map[*source.File]string{}
	for _, p := range w.parts {
		if p.pages != nil {
			copied[p.Piece.File] = p.pages.HowPages()
		} else if pairs != nil && !arrays {
			return nil, faults.Unsupported(fault.At{File: p.Piece.File.Name()}, "pairs that are not copied from Parquet to Parquet")
		}
	}
	s.SetCopied(copied)
	if pairs != nil && pairs.KeepTable {
		if err := w.openRest(ctx, o, pairs, logs[0]); err != nil {
			return nil, err
		}
	}
	counts := o.Counts
	o.Counts = func(inputs []dataset.WrittenInput, pieces []source.Piece) (idsMatched, idsTotal int64) {
		for i := range inputs { // the first parts, one each
			inputs[i].KeysNull = w.nulls[i]
		}
		if counts != nil {
			return counts(inputs, pieces)
		}
		return 0, 0
	}
	w.rows, err = o.openRows(ctx, w.parts)
	return w, err
}

// openRest adds the part for rows without a log row.
func (w *ScanWriter) openRest(ctx context.Context, o Destination, pairs *tables.Pairs, log *source.File) error {
	w.rest = &restWriter{pairs: pairs, log: log, part: len(w.parts), threads: w.scanner.Options.Threads, mem: w.scanner.Options.Mem}
	if pairs.Arrays {
		w.parts = append(w.parts, Part{Name: restName, Schema: pairs.Schema(log)})
		return nil
	}
	src := &pagecopy.Source{Piece: source.Piece{File: log}, Sink: new(pagecopy.Relay), Most: pagecopy.GroupBytes}
	if !o.IsDir(ctx) {
		src.Layout = w.parts[0].pages.Layout
	}
	if err := o.ofPairs(src, pairs, nil); err != nil {
		return err
	}
	w.rest.source = src
	w.parts = append(w.parts, Part{Name: restName, Schema: log.Schema(), pages: src})
	return nil
}

// Scan writes the rows of the pieces that pass the scanner, or the pairs of such a row and
// its partners, after those that were written before. Each piece must be one of those of WriteScan or a part of one;
// they must come in ascending order, and the scanner must keep the same columns.
// After an error nothing more can be written.
func (w *ScanWriter) Scan(ctx context.Context, s *keyscan.Scanner, pairs *tables.Pairs, pieces []source.Piece) error {
	if w.failed == nil {
		w.failed = w.scan(ctx, s, pairs, pieces)
	}
	return w.failed
}

func (w *ScanWriter) scan(ctx context.Context, s *keyscan.Scanner, pairs *tables.Pairs, pieces []source.Piece) error {
	source.NeedContext(ctx)
	if err := keyscan.Usable(s); err != nil {
		return fmt.Errorf("ScanWriter.Scan: %w", err)
	}
	if err := source.CheckPieces(pieces); err != nil {
		return fmt.Errorf("ScanWriter.Scan: %w", err)
	}
	if s.Options.Entries != (pairs != nil) {
		return errors.New("internal error: a scan has entries if, and only if, it makes pairs")
	}
	if !slices.Equal(s.Options.Columns, w.scanner.Options.Columns) || s.Options.IgnoreCase != w.scanner.Options.IgnoreCase {
		return errors.New("a scan that keeps other columns than the output was opened for (give all scanners the same Columns)")
	}
	if err := s.Begin(); err != nil {
		return err
	}
	s.CopiedAs(w.scanner)
	parts, of, err := w.narrowed(pieces)
	if err != nil {
		return err
	}
	asPages := !slices.ContainsFunc(parts, func(p Part) bool { return p.pages == nil })
	if !asPages { // pages and records take turns
		if err := w.endFilling(ctx); err != nil {
			return err
		}
	}
	w.left.Continued = asPages
	for r, err := range eachPart(ctx, s, pairs, parts, &w.left) {
		if err != nil {
			return w.rows.fail(err)
		}
		if r.group != nil {
			r.Piece = r.group.Part
		} else {
			r.Piece = of[r.Piece]
		}
		if err := w.rows.write(r); err != nil {
			return err
		}
	}
	for i, p := range parts {
		if w.counted.Contains(p.Piece) && w.counted.Lo < w.counted.Hi {
			continue // row groups that are scanned several times count once
		}
		w.nulls[of[i]] += s.Stats.KeysNullOf(p.Piece)
		w.counted = p.Piece
	}
	return nil
}

// endFilling writes the row group that the last scan has left unfinished, if there is
// one.
func (w *ScanWriter) endFilling(ctx context.Context) error {
	if w.left.Group == nil {
		return nil
	}
	last := &keyscan.Scanner{Options: w.scanner.Options, Stats: new(keyscan.Stats)}
	w.left.Continued = false
	for g, err := range pagecopy.Copy(ctx, last, nil, nil, &w.left) {
		if err != nil {
			return w.rows.fail(err)
		}
		if err := w.rows.write(outRows{arraycopy.Rows{Piece: g.Part}, g}); err != nil {
			return err
		}
	}
	return nil
}

// narrowed returns a part of the output for each piece, and the index of the part
// that it belongs to.
func (w *ScanWriter) narrowed(pieces []source.Piece) (parts []Part, of []int, err error) {
	for _, p := range pieces {
		for w.at < len(w.parts) && !w.parts[w.at].Piece.Contains(p) {
			w.at++
		}
		if w.at == len(w.parts) {
			return nil, nil, fmt.Errorf("%s: row groups %d to %d belong to no piece of the output, or come out of order", p.File.Name(), p.Lo+1, p.Hi)
		}
		part := w.parts[w.at]
		part.Piece = p
		if part.pages != nil {
			own := *part.pages
			own.Piece, own.Part = p, w.at
			part.pages = &own
		}
		parts, of = append(parts, part), append(of, w.at)
	}
	return parts, of, nil
}

// close makes the output visible and returns what was written.
func (w *ScanWriter) close(ctx context.Context) (dataset.Written, error) {
	if err := errors.Join(w.endFilling(ctx), w.endRest()); err != nil {
		return dataset.Written{}, err
	}
	w.parts = nil // what the parts hold is not needed to publish the files
	written, err := w.rows.close()
	return written, errors.Join(err, w.shut())
}

// abort discards what was written. After close it does nothing.
func (w *ScanWriter) abort() {
	_ = w.rows.fail(errAborted)
	_ = w.shut() // its rows are not needed
}

func (w *ScanWriter) shut() error {
	end := w.end
	w.end = func() error { return nil }
	return end()
}
