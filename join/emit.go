package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/compute"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// batchRows is the most rows of the answer in one batch: a log row may meet
// many IDs.
const batchRows = 1 << 16

// A row that meets many others stands in the answer that many times: so a batch
// of the answer may be far larger than what it is made of, and is bounded by
// bytes as well as rows.

// batchBytes and leastBatchBytes bound about the most bytes of a batch of the
// answer that has more than one row.
const (
	batchBytes      = 16 << 20
	leastBatchBytes = 1 << 20
	batchPart       = 16 // of what may be in flight
)

// batchBytesOf returns how many bytes such a batch may have, for logs of which so
// many bytes may be in flight; 0: no bound.
func batchBytesOf(inFlight int64) int64 {
	if inFlight == 0 {
		return batchBytes
	}
	return min(max(inFlight/batchPart, leastBatchBytes), batchBytes)
}

// worker joins the log batches of one goroutine.
type worker struct {
	j      *Join
	file   *partition.File
	layout *layout
	prober *partition.Prober
	spread *spread
	asking *filtering
	asked  bool // the filter is, about the batch at hand
	// Of the candidates, those that have an ID, and its entry.
	members, entries []uint32
	// Rows of the answer: log row, and ID row or -1.
	log, ids []int
	places   []take.Place // of the ID rows
	emit     func(arrow.Record) error
	cols     []arrow.Array // of the log batch, those that the answer has
	widest   int64         // a bound on the bytes of a row of cols
}

func (j *Join) newWorker() (partition.Work, error) {
	w := &worker{j: j, spread: newSpread(), asking: j.newFiltering()}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.spreads = append(j.spreads, w.spread)
	return w.work, nil
}

// newPairer returns what makes pairs of log rows that the scan has found to have
// an ID, which it has counted too.
func (j *Join) newPairer() (partition.Work, error) {
	w := &worker{j: j}
	return w.pair, nil
}

// pair makes the pairs of one batch.
func (w *worker) pair(p partition.Piece, rec arrow.Record, emit func(arrow.Record) error) error {
	if err := w.enter(p.File, rec, w.j.matchOf(w.j.plan.Spec.Header(), w.j.logKey)); err != nil {
		return err
	}
	hits, err := w.prober.Probe(rec)
	if err != nil {
		return err
	}
	w.begin(rec, emit)
	k, side := &w.prober.Keys, w.j.side
	w.members, w.entries = side.Find(k, hits, w.members, w.entries)
	if len(w.members) != k.Len {
		return fmt.Errorf("internal error: %d of %d rows that were found to have an ID have none", k.Len-len(w.members), k.Len)
	}
	for row, e := range w.entries {
		if err := w.pairs(row, e); err != nil {
			return err
		}
	}
	return w.flush()
}

// begin prepares for a log batch.
func (w *worker) begin(rec arrow.Record, emit func(arrow.Record) error) {
	w.cols, w.emit = rec.Columns(), emit
	if w.layout.read != nil {
		w.cols = w.cols[:w.layout.kept]
	}
	w.widest, w.log, w.ids = table.WidestRow(w.cols), w.log[:0], w.ids[:0]
}

// pairs appends the pairs of a log row and the IDs of an entry.
func (w *worker) pairs(row int, e uint32) error {
	side := w.j.side
	if !side.HasRows() {
		for range side.Times(e) {
			if err := w.add(row); err != nil {
				return err
			}
		}
		return nil
	}
	for id := side.First(e); id != table.None; id = side.Next(e, id) {
		w.log, w.ids = append(w.log, row), append(w.ids, int(id))
		if len(w.log) == batchRows {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// add appends a log row to the answer, without an ID row.
func (w *worker) add(row int) error {
	w.log, w.ids = append(w.log, row), append(w.ids, -1)
	if len(w.log) < batchRows {
		return nil
	}
	return w.flush()
}

// enter prepares for the batches of a file, all of which have one schema.
func (w *worker) enter(f *partition.File, rec arrow.Record, m partition.Match) (err error) {
	if w.file == f {
		return nil
	}
	if w.prober, err = partition.NewProber(f.Name, rec.Schema(), m); err != nil {
		return err
	}
	w.file, w.layout = f, w.j.layouts[f]
	return nil
}

// work joins one batch of the log.
func (w *worker) work(p partition.Piece, rec arrow.Record, emit func(arrow.Record) error) error {
	if err := w.enter(p.File, rec, w.j.match()); err != nil {
		return err
	}
	probe := w.prober.Probe
	if w.asked = w.asking.ask(); !w.asked {
		probe = w.prober.All
	}
	hits, err := probe(rec)
	if err != nil {
		return err
	}
	w.begin(rec, emit)
	if err := w.rows(hits); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	j := w.j
	if !j.block.counts() {
		return nil
	}
	j.rowsIn.Add(rec.NumRows())
	j.keysNull.Add(int64(w.prober.Keys.Nulls()))
	j.candidates.Add(int64(len(hits)))
	if n := int64(len(w.prober.Keys.Rows)); w.asked {
		w.asking.seen(n, int64(len(hits)))
	} else {
		j.unasked.Add(n)
	}
	if j.opts.Progress != nil {
		j.opts.Progress(rec.NumRows())
	}
	return nil
}

// rows finds the answer's rows for each row of the log batch, in order. hits
// are positions in the batch of keys that the filter let through.
func (w *worker) rows(hits []uint32) error {
	k, side, blk := &w.prober.Keys, w.j.side, w.j.block
	w.members, w.entries = side.Find(k, hits, w.members, w.entries)
	matched := int64(0)
	defer func() { w.j.matched.Add(matched) }()
	at, hit, member := 0, 0, 0 // next row with a key, next candidate, next one that has an ID
	for row := range k.Len {
		e, keyed, candidate := table.None, false, false
		if at < len(k.Rows) && int(k.Rows[at]) == row {
			keyed = true
			if hit < len(hits) && int(hits[hit]) == at {
				hit++
				candidate = true
			}
			if member < len(w.members) && int(w.members[member]) == at {
				e = w.entries[member]
				member++
			}
			at++
		}
		if e != table.None {
			if err := w.pairs(row, e); err != nil {
				return err
			}
			side.Mark(e)
			if blk.join(row) {
				matched++
			}
			continue
		}
		if !blk.lone(row) {
			continue
		}
		if candidate && w.asked {
			w.j.falsePositives.Add(1)
		}
		if keyed && w.asked {
			w.stranger(at - 1)
		}
		if err := w.add(row); err != nil {
			return err
		}
	}
	blk.pass(k.Len)
	return nil
}

// stranger counts a row whose key is in no ID.
func (w *worker) stranger(i int) {
	w.spread.add(w.prober.Keys.HashAt(table.Hash, i), 1)
}

// flush emits the rows collected so far.
func (w *worker) flush() error {
	if len(w.log) == 0 {
		return nil
	}
	w.j.rowsOut.Add(int64(len(w.log)))
	for log, ids := w.log, w.ids; len(log) > 0; {
		n := w.fitting(log, ids)
		if err := w.assemble(log[:n], ids[:n]); err != nil {
			return fmt.Errorf("%s: %w", w.file.Name, err)
		}
		log, ids = log[n:], ids[n:]
	}
	w.log, w.ids = w.log[:0], w.ids[:0]
	return nil
}

// fitting returns how many of the rows, at least one, fit in a batch of the answer.
func (w *worker) fitting(log, ids []int) int {
	width := w.widest
	held := w.j.idCols.rows
	if held {
		width += w.j.side.WidestRow()
	}
	if int64(len(log))*width <= w.j.batchBytes {
		return len(log)
	}
	var bytes int64
	for i, row := range log {
		bytes += table.RowBytes(w.cols, row)
		if held && ids[i] >= 0 {
			bytes += w.j.side.RowBytes(ids[i])
		}
		if bytes > w.j.batchBytes {
			return max(i, 1)
		}
	}
	return len(log)
}

// assemble emits rows of the answer, in halves if they exceed what an array
// can hold.
func (w *worker) assemble(log, ids []int) error {
	rec, err := w.record(log, ids)
	if errors.Is(err, take.ErrTooLarge) && len(log) > 1 {
		half := len(log) / 2
		if err := w.assemble(log[:half], ids[:half]); err != nil {
			return err
		}
		return w.assemble(log[half:], ids[half:])
	}
	if err != nil {
		return err
	}
	return w.emit(rec)
}

func (w *worker) record(log, ids []int) (arrow.Record, error) {
	mem := w.j.opts.Mem
	cols := columns{mem: mem}
	defer cols.release()
	if w.j.idCols.rows {
		w.places = w.j.side.Locate(w.places[:0], ids)
	}
	for i, c := range w.layout.columns {
		t := w.layout.schema.Field(i).Type
		if c.log < 0 {
			if cols.err == nil {
				cols.add(w.j.side.Column(c.held, w.places, t))
			}
			continue
		}
		switch col := w.cols[c.log]; {
		case col.DataType().ID() == arrow.NULL && t.ID() != arrow.NULL: // a key that stands once
			cols.null(t, len(log))
		case w.layout.plain:
			cols.values(col, log)
		default:
			cols.take(col, log)
		}
	}
	return cols.record(w.layout.schema, len(log))
}

// columns collects the columns of a record until the first error.
type columns struct {
	mem  memory.Allocator
	cols []arrow.Array
	err  error
}

func (c *columns) release() {
	for _, a := range c.cols {
		a.Release()
	}
}

func (c *columns) add(a arrow.Array, err error) {
	switch {
	case err != nil && c.err == nil:
		c.err = err
	case err == nil:
		c.cols = append(c.cols, a)
	}
}

func (c *columns) take(a arrow.Array, rows []int) {
	if c.err == nil {
		c.add(take.Array(c.mem, a, rows))
	}
}

// values is take with values in place of dictionaries.
func (c *columns) values(a arrow.Array, rows []int) {
	if c.err != nil {
		return
	}
	taken, err := take.Array(c.mem, a, rows)
	if err != nil {
		c.err = err
		return
	}
	c.add(take.Plain(c.mem, taken))
	taken.Release()
}

// null adds a column of n NULLs.
func (c *columns) null(t arrow.DataType, n int) {
	if c.err == nil {
		c.add(table.Nulls(c.mem, t, n))
	}
}

func (c *columns) record(schema *arrow.Schema, n int) (arrow.Record, error) {
	if c.err != nil {
		return nil, c.err
	}
	return array.NewRecord(schema, c.cols, int64(n)), nil
}

// unmatched yields the IDs whose key no log row has, and those with a NULL
// key, in the ID set's order.
func (j *Join) unmatched(ctx context.Context) iter.Seq2[partition.Rows, error] {
	return func(yield func(partition.Rows, error) bool) {
		l := j.layouts[j.logs[0]]
		errStop := errors.New("stop")
		one := func(rec arrow.Record, rows []int) error {
			out, err := j.lone(ctx, l, rec, rows)
			if err != nil {
				return err
			}
			j.rowsOut.Add(int64(len(rows)))
			if !yield(partition.Rows{Piece: len(j.pieces), Record: out}, nil) {
				return errStop
			}
			return nil
		}
		if err := j.loneIDs(ctx, one); err != nil && !errors.Is(err, errStop) {
			yield(partition.Rows{}, err)
		}
	}
}

// loneIDs calls fn with the IDs that no log row has: from memory if all are
// there.
func (j *Join) loneIDs(ctx context.Context, fn func(rec arrow.Record, rows []int) error) error {
	switch {
	case j.shuffled != nil:
		return j.shuffled.loneRows(ctx, fn)
	case j.whole:
		return j.side.Unmatched(fn)
	}
	var all, members, entries []uint32
	return j.eachID(ctx, true, func(_ *partition.File, rec arrow.Record, batch *key.Batch) error {
		all = table.UpTo(all, len(batch.Rows))
		members, entries = j.side.Find(batch, all, members, entries)
		var rows []int
		at, member := 0, 0
		for row := range batch.Len {
			lone := true
			if at < len(batch.Rows) && int(batch.Rows[at]) == row {
				if member < len(members) && int(members[member]) == at {
					lone = !j.side.Marked(entries[member])
					member++
				}
				at++
			}
			if lone {
				rows = append(rows, row)
			}
		}
		return j.hold(rec, rows, fn)
	})
}

// hold calls fn with rows of a record that eachID has given, if there are any,
// in a record as the ID table has them.
func (j *Join) hold(rec arrow.Record, rows []int, fn func(rec arrow.Record, rows []int) error) error {
	if len(rows) == 0 {
		return nil
	}
	held := table.Project(rec, j.idCols.held)
	defer held.Release()
	return fn(held, rows)
}

// lone makes rows of the answer of IDs without a log row.
func (j *Join) lone(ctx context.Context, l *layout, rec arrow.Record, rows []int) (arrow.Record, error) {
	cols := columns{mem: j.opts.Mem}
	defer cols.release()
	for i, c := range l.columns {
		f := l.schema.Field(i)
		switch {
		case c.held < 0:
			cols.null(f.Type, len(rows))
		case c.log < 0:
			cols.take(rec.Column(c.held), rows)
		default: // a key that stands once
			key, err := take.Array(j.opts.Mem, rec.Column(c.held), rows)
			if err != nil {
				return nil, err
			}
			cols.add(j.cast(ctx, key, f))
			key.Release()
		}
	}
	return cols.record(l.schema, len(rows))
}

// cast gives the keys of IDs the type of the log's key column. A key that the
// type cannot hold is an error.
func (j *Join) cast(ctx context.Context, key arrow.Array, f arrow.Field) (arrow.Array, error) {
	if arrow.TypeEqual(key.DataType(), f.Type) {
		key.Retain()
		return key, nil
	}
	out, err := castArray(compute.WithAllocator(ctx, j.opts.Mem), key, f.Type)
	if err == nil && !sameKeys(key, out) { // a float64 that no float32 equals
		out.Release()
		err = errors.New("not every value has an equal there")
	}
	if err != nil {
		e := fault.Unsupported(fault.At{Column: f.Name}, "an ID's key of type %s in the log's column of type %s", key.DataType(), f.Type)
		return nil, e.WithHint("rename the ID's column and write {On %s=NAME}, so that each side keeps its own", f.Name)
	}
	return out, nil
}

// sameKeys reports whether two arrays hold the same keys in the same rows.
func sameKeys(a, b arrow.Array) bool {
	var batches [2]key.Batch
	for i, col := range []arrow.Array{a, b} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "key", Type: col.DataType(), Nullable: true}}, nil)
		enc, err := key.NewEncoder(schema, []key.Column{{Path: key.Path{"key"}}}, key.Options{}) // of one class, whatever the join compares
		if err != nil {
			return false
		}
		rec := array.NewRecord(schema, []arrow.Array{col}, int64(col.Len()))
		err = enc.Encode(rec, &batches[i])
		rec.Release()
		if err != nil {
			return false
		}
	}
	x, y := &batches[0], &batches[1]
	if !slices.Equal(x.Rows, y.Rows) {
		return false
	}
	var p, q []byte
	for i := range x.Rows {
		if p, q = x.Append(p[:0], i), y.Append(q[:0], i); !bytes.Equal(p, q) {
			return false
		}
	}
	return true
}

// castArray is arrow's safe cast, but for instants of different zones, which
// are the same numbers and at which arrow v15 panics.
func castArray(ctx context.Context, a arrow.Array, t arrow.DataType) (out arrow.Array, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("casting %s to %s: %v", a.DataType(), t, r)
		}
	}()
	from, ok := a.DataType().(*arrow.TimestampType)
	to, ok2 := t.(*arrow.TimestampType)
	if !ok || !ok2 {
		return compute.CastArray(ctx, a, compute.SafeCastOptions(t))
	}
	if from.Unit != to.Unit {
		b, err := compute.CastArray(ctx, a, compute.SafeCastOptions(&arrow.TimestampType{Unit: to.Unit, TimeZone: from.TimeZone}))
		if err != nil {
			return nil, err
		}
		defer b.Release()
		a = b
	}
	d := a.Data()
	zoned := array.NewData(t, d.Len(), d.Buffers(), nil, d.NullN(), d.Offset())
	defer zoned.Release()
	return array.MakeFromData(zoned), nil
}
