package output

import (
	"context"
	"errors"
	"fmt"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/pagecopy"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// writtenInputs returns the inputs before anything is written.
func writtenInputs(pieces []source.Piece) (inputs []dataset.WrittenInput) {
	for _, p := range pieces {
		inputs = append(inputs, dataset.WrittenInput{Rel: p.File.Rel(), Lo: p.Lo, Hi: p.Hi, RowsIn: p.Rows(), KeysNull: -1})
	}
	return inputs
}

// outRows are rows on their way to an output: a record, or rows copied as pages in its place.
type outRows struct {
	arraycopy.Rows
	group *pagecopy.Group
}

func (r outRows) release() {
	if r.Record != nil {
		r.Record.Release()
	}
}

// of returns the numbers of rows by part.
func (r outRows) of() []pagecopy.PartRows {
	if r.group != nil {
		return r.group.From
	}
	return []pagecopy.PartRows{{Part: r.Piece, Rows: r.Record.NumRows(), Kept: r.Kept}}
}

// rowWriter writes rows to an output that is open. It must be ended with close, fail or
// abort, and must not be used concurrently.
type rowWriter struct {
	ctx     context.Context // openRows's
	out     Destination
	parts   int
	at      map[int]int // by part: its index among the inputs
	written dataset.Written
	sink    rowSink
	end     func() error // releases what the writers share
	ended   bool
	err     error // the error that ended it
}

// rowSink writes rows to a file, a stream or the files of a directory.
type rowSink interface {
	// write takes ownership of the rows.
	write(ctx context.Context, r outRows) error
	// end completes the output and its description, unless err says that rows are missing.
	// After an error nothing incomplete is left. It returns all errors, err first.
	end(ctx context.Context, w *dataset.Written, err error) error
}

// errAborted ends an output whose rows are discarded.
var errAborted = errors.New("given up")

// openRows opens the output for rows of the parts. ctx holds until the rowWriter ends.
func (o Destination) openRows(ctx context.Context, parts []Part) (*rowWriter, error) {
	if err := checkGiven(parts); err != nil {
		return nil, err
	}
	w := &rowWriter{ctx: ctx, parts: len(parts), at: map[int]int{}}
	var logs []*source.File
	for i, p := range parts {
		if p.Piece.File != nil {
			w.at[i] = len(w.at)
			logs, o.given = append(logs, p.Piece.File), append(o.given, p.Piece)
		}
	}
	if err := o.prepare(ctx, logs); err != nil {
		return nil, err
	}
	if o.Run != nil && o.Run.List != nil && o.Name != "-" { // Pending has looked at its roots
		if err := o.apart(ctx, &Run{Log: logs}); err != nil {
			return nil, err
		}
	}
	w.end = o.begin()
	w.out, w.written.Inputs = o, writtenInputs(o.given)
	var err error
	switch {
	case o.Name == "-":
		w.sink, err = o.openStream(parts)
	case o.owner.InDir:
		w.sink, err = o.openDir(ctx, parts)
	default:
		w.sink, err = o.openFile(ctx, parts)
	}
	if err != nil {
		return nil, errors.Join(err, w.end())
	}
	return w, nil
}

// write writes rows and takes ownership of them. An error ends the output, as that of fail.
func (w *rowWriter) write(r outRows) error {
	if w.ended {
		r.release()
		return w.err
	}
	if err := checkRows(r, w.parts); err != nil {
		r.release()
		return w.fail(err)
	}
	for _, f := range r.of() {
		if i, ok := w.at[f.Part]; ok {
			w.written.Inputs[i].RowsOut += f.Rows
			w.written.Inputs[i].RowsKept += f.Kept
		}
	}
	if err := w.sink.write(w.ctx, r); err != nil {
		return w.fail(err)
	}
	return nil
}

// fail ends the output with an error. It returns that of the first failure.
func (w *rowWriter) fail(err error) error {
	if !w.ended {
		w.err = errors.Join(w.sink.end(w.ctx, &w.written, err), w.end())
		w.ended, w.sink = true, nil
	}
	return w.err
}

// close completes the output and returns what was written.
func (w *rowWriter) close() (dataset.Written, error) {
	if w.ended {
		return dataset.Written{}, w.err
	}
	err := w.sink.end(w.ctx, &w.written, nil)
	if err == nil && w.out.Counts != nil && !w.out.owner.InDir { // else the manifest needed them
		w.out.Counts(w.written.Inputs, w.out.given)
	}
	w.err = errors.Join(err, w.end())
	w.ended, w.sink = true, nil
	if err != nil {
		return dataset.Written{}, w.err
	}
	return w.written, w.err
}

// checkRows refuses rows that belong to none of the parts, or that are none.
func checkRows(r outRows, parts int) error {
	switch {
	case r.group != nil:
	case r.Record == nil:
		return fmt.Errorf("rows of part %d of %d: Rows.Record is nil", r.Piece, parts)
	case r.Piece < 0 || r.Piece >= parts:
		return fmt.Errorf("rows out of order: want a part from 0 to %d, got %d", parts-1, r.Piece)
	}
	return nil
}
