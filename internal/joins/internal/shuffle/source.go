package shuffle

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/spill"
)

// Source reads the IDs that a range needs into tables: into one if they fit, as
// they should, else into several in turn. One goroutine uses it.
type Source struct {
	s      *Shuffle
	n      int   // of Shuffle.Ranges
	pieces Range // of the range

	Only              *table.Side // if not nil, only IDs that it has are read
	all, found, entry []uint32

	piece   int // being read, if rows are not kept
	entries entryReader
	rows    *spill.Reader // if rows are kept
	batch   keys.Batch    // of keys
	plain   [2][]byte     // keys as a batch takes them; of integers, those from zero on and negative ones
}

// Source returns the source of the IDs that range n of s.Ranges needs.
func (s *Shuffle) Source(n int) *Source {
	r := &Source{s: s, n: n, pieces: s.pieceRanges[n], piece: s.pieceRanges[n].Lo}
	if s.rows != nil {
		r.rows = s.perRange[n].Reader()
		return r
	}
	r.entries = entryReader{integers: s.Integers}
	r.entries.open(s.perPiece[r.piece])
	return r
}

// ids returns how many IDs the range needs.
func (r *Source) ids() (n int64) {
	for piece := r.pieces.Lo; piece < r.pieces.Hi; piece++ {
		n += r.s.needs.more(piece, r.pieces.Lo)
	}
	return n
}

// Free frees the disk space of the range's IDs.
func (r *Source) Free() {
	if r.s.rows != nil {
		r.s.perRange[r.n].Free()
		return
	}
	for piece := r.pieces.Lo; piece < r.pieces.Hi; piece++ {
		r.s.perPiece[piece].free()
	}
}

// position is a position of a source.
type position struct {
	at     int
	chunks spill.Place
}

func (r *Source) position() position {
	if r.rows != nil {
		return position{chunks: r.rows.Place()}
	}
	return position{r.piece, r.entries.r.Place()}
}

func (r *Source) seek(p position) {
	if r.rows != nil {
		r.rows.Seek(p.chunks)
		return
	}
	if r.piece != p.at {
		r.piece = p.at
		r.entries.open(r.s.perPiece[r.piece])
	}
	r.entries.r.Seek(p.chunks)
}

// Next returns a sealed table of IDs, and whether there are more than fit. The
// first table may be empty. The caller releases it. The error wraps
// [fault.ErrMemory] if hardly any ID fits.
func (r *Source) Next(ctx context.Context) (side *table.Side, more bool, err error) {
	start, most := r.position(), 0
	for reserve := r.Only == nil; ; reserve = false {
		var n int
		side, n, more, err = r.fill(ctx, most, reserve)
		if err == nil || !errors.Is(err, fault.ErrMemory) || n < 2 && !reserve {
			return side, more, err
		}
		// The table may have a part of chunk n, so it is filled again, without that
		// chunk and without room reserved for all.
		r.seek(start)
		if n > 1 {
			most = n - max(n/16, 1)
		}
	}
}

// fill fills a table with at most most chunks of IDs, or all if most is 0. reserve
// makes room for all beforehand. n is the number of chunks that were started.
func (r *Source) fill(ctx context.Context, most int, reserve bool) (side *table.Side, n int, more bool, err error) {
	s := r.s
	kind := table.Kind{Integers: s.Integers, Columns: s.Columns, Threads: s.Threads}
	side = table.New(kind, s.Account)
	defer func() {
		if err != nil {
			side.Release()
			side = nil
		}
	}()
	if reserve {
		side.Reserve(r.ids())
	}
	for {
		err := r.add(ctx, side)
		if err == io.EOF {
			return side, n, false, side.Seal()
		}
		n++
		if err != nil {
			return side, n, false, err
		}
		if n == most {
			return side, n, true, side.Seal()
		}
	}
}

// add adds the IDs of the next chunk to a table, or returns io.EOF.
func (r *Source) add(ctx context.Context, side *table.Side) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.rows != nil {
		return r.addRows(side)
	}
	for {
		b, err := r.entries.next(ctx)
		if err == nil {
			return r.addKeys(side, b)
		}
		if err != io.EOF || r.piece+1 == r.pieces.Hi {
			return err
		}
		r.piece++
		r.entries.open(r.s.perPiece[r.piece])
	}
}

func (r *Source) addRows(side *table.Side) error {
	chunk, err := r.rows.Next(nil) // the batch refers to it
	if err != nil {
		return err
	}
	b, err := r.s.Columns.Parse(chunk)
	if err != nil {
		return faults.Errorf("%s: %w", waitsOnDisk, err)
	}
	if r.Only == nil {
		return side.AddRows(b)
	}
	return side.AddRowsAt(b, r.wanted(b.Keys))
}

// wanted returns the positions in a batch of the IDs that Only has.
func (r *Source) wanted(k *keys.Batch) []uint32 {
	r.all = table.UpTo(r.all, len(k.Rows))
	r.found, r.entry = r.Only.Find(k, r.all, r.found, r.entry)
	return r.found
}

// addBatch adds the batch to a table.
func (r *Source) addBatch(side *table.Side) error {
	if r.Only != nil {
		return side.AddKeysAt(&r.batch, r.wanted(&r.batch))
	}
	return side.AddKeys(&r.batch)
}

// addKeys adds the keys that no earlier piece of the range needs.
func (r *Source) addKeys(side *table.Side, b *entryBatch) error {
	plain := [2][]byte{r.plain[0][:0], r.plain[1][:0]}
	var n int
	for i, p := range b.pairs {
		switch {
		case int(b.tag(i)) > r.pieces.Lo: // the tag is the last earlier piece that needs it, plus one
		case r.s.Integers:
			plain[p.B&1] = binary.LittleEndian.AppendUint64(plain[p.B&1], p.A)
		default:
			plain[0] = binary.LittleEndian.AppendUint32(plain[0], uint32(len(b.keys[i])))
			plain[0] = append(plain[0], b.keys[i]...)
			n++
		}
	}
	r.plain = plain
	if !r.s.Integers {
		r.batch.SetBytes(plain[0], n, 0)
		return r.addBatch(side)
	}
	for sign, values := range plain {
		if len(values) == 0 {
			continue
		}
		r.batch.SetInts(values, len(values)/8, 8, sign == 1)
		if err := r.addBatch(side); err != nil {
			return err
		}
	}
	return nil
}
