package joins

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/joins/internal/answer"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// batchRows is the maximum number of rows in a batch of the answer: a log row may
// match many IDs.
const batchRows = 1 << 16

// A row that matches many others is repeated in the answer, so a batch may be far
// larger than the input rows. It is therefore bounded in bytes too: batches of more
// than one row have at most about batchBytes, or less if the bytes in flight are
// bounded, but not less than minBatchBytes.
const (
	batchBytes    = 16 << 20
	minBatchBytes = 1 << 20
	batchPart     = 16 // of the bytes in flight
)

// batchBytesOf returns the bound on the bytes of a batch, given that on the bytes
// in flight; 0: none.
func batchBytesOf(inFlight int64) int64 {
	if inFlight == 0 {
		return batchBytes
	}
	return min(max(inFlight/batchPart, minBatchBytes), batchBytes)
}

// pairer makes records of the answer from rows of log batches and the IDs that they
// match. One goroutine uses it.
type pairer struct {
	*task
	side  *table.Side    // of IDs
	held  *table.Records // their rows; nil: only keys are held
	tally *tally
	most  int64 // bytes of a batch

	file    *source.File
	layout  *answer.Layout
	emit    func(arrow.Record) error
	log     []int         // rows of the log batch to emit
	ids     []int         // for each of them an ID row, or -1
	places  []take.Place  // of ID rows
	columns []arrow.Array // of the log batch, those in the answer
	widest  int64         // bound on the bytes of a row of columns
}

func newPairer(t *task, side *table.Side, counts *tally) *pairer {
	held, _ := side.Rows().(*table.Records)
	return &pairer{task: t, side: side, held: held, tally: counts, most: batchBytesOf(tasks.InFlight(t.pieces))}
}

// begin prepares for a batch of a log file.
func (p *pairer) begin(f *source.File, rec arrow.Record, emit func(arrow.Record) error) {
	p.file, p.layout = f, p.answer.Layouts[f]
	p.columns, p.emit = rec.Columns(), emit
	if p.layout.Read != nil {
		p.columns = p.columns[:p.layout.Kept]
	}
	p.widest, p.log, p.ids = table.WidestRow(p.columns), p.log[:0], p.ids[:0]
}

// pairs adds the pairs of a log row and the IDs of an entry.
func (p *pairer) pairs(row int, e uint32) error {
	if p.held == nil {
		for range p.side.Times(e) {
			if err := p.add(row, -1); err != nil {
				return err
			}
		}
		return nil
	}
	for id := p.side.First(e); id != table.None; id = p.side.Next(e, id) {
		if err := p.add(row, int(id)); err != nil {
			return err
		}
	}
	return nil
}

// add adds a row to the answer: a log row with an ID row, or with none if id is -1.
func (p *pairer) add(row, id int) error {
	p.log, p.ids = append(p.log, row), append(p.ids, id)
	if len(p.log) < batchRows {
		return nil
	}
	return p.flush()
}

// flush emits the rows added so far.
func (p *pairer) flush() error {
	if len(p.log) == 0 {
		return nil
	}
	p.tally.rowsOut.Add(int64(len(p.log)))
	for log, ids := p.log, p.ids; len(log) > 0; {
		n := p.fitting(log, ids)
		if err := p.assemble(log[:n], ids[:n]); err != nil {
			return fmt.Errorf("%s: %w", p.file.Name(), err)
		}
		log, ids = log[n:], ids[n:]
	}
	p.log, p.ids = p.log[:0], p.ids[:0]
	return nil
}

// fitting returns how many of the rows, at least one, fit in a batch.
func (p *pairer) fitting(log, ids []int) int {
	width := p.widest
	if p.held != nil {
		width += p.held.WidestRow()
	}
	if int64(len(log))*width <= p.most {
		return len(log)
	}
	var bytes int64
	for i, row := range log {
		bytes += table.RowBytes(p.columns, row)
		if p.held != nil && ids[i] >= 0 {
			bytes += p.held.RowBytes(ids[i])
		}
		if bytes > p.most {
			return max(i, 1)
		}
	}
	return len(log)
}

// assemble emits rows, in halves if they exceed what an array can hold.
func (p *pairer) assemble(log, ids []int) error {
	rec, err := p.record(log, ids)
	if errors.Is(err, take.ErrTooLarge) && len(log) > 1 {
		half := len(log) / 2
		if err := p.assemble(log[:half], ids[:half]); err != nil {
			return err
		}
		return p.assemble(log[half:], ids[half:])
	}
	if err != nil {
		return err
	}
	return p.emit(rec)
}

// record makes a record of rows.
func (p *pairer) record(log, ids []int) (arrow.Record, error) {
	cols := answer.Builder{Mem: p.opts.Mem}
	defer cols.Release()
	if p.held != nil {
		p.places = p.held.Locate(p.places[:0], ids)
	}
	for i, c := range p.layout.Columns {
		t := p.layout.Schema.Field(i).Type
		if c.Log < 0 {
			if cols.Err == nil {
				cols.Add(p.held.Column(c.Held, p.places, t))
			}
			continue
		}
		switch col := p.columns[c.Log]; {
		case col.DataType().ID() == arrow.NULL && t.ID() != arrow.NULL: // a shared key
			cols.Null(t, len(log))
		case p.layout.Plain:
			cols.Values(col, log)
		default:
			cols.Take(col, log)
		}
	}
	return cols.Record(p.layout.Schema, len(log))
}
