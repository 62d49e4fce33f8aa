package shuffle

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/spill"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
	"github.com/bloomjoin/bloomjoin/key"
)

// Source reads the IDs that a range needs into ID sides: into one if they fit,
// as they should, else into one after the other. One goroutine uses it.
type Source struct {
	s      *Shuffle
	n      int   // range
	pieces Range // its stretches

	Only              *table.Side // if not nil, IDs that it has not are left out
	all, found, entry []uint32

	piece   int // stretch that is read, where rows are not wanted
	entries entryReader
	rows    *spill.Reader // where they are
	batch   key.Batch
	plain   [2][]byte // keys as a batch takes them; of integers, from zero on and below
}

// Source returns the source of the IDs that range n of s.ranges needs.
func (s *Shuffle) Source(ctx context.Context, n int) *Source {
	r := &Source{s: s, n: n, pieces: s.pieceRanges[n], piece: s.pieceRanges[n].Lo}
	if s.rows != nil {
		r.rows = s.perRange[n].Reader()
		return r
	}
	r.entries = entryReader{ctx: ctx, integers: s.Integers}
	r.entries.open(s.perPiece[r.piece])
	return r
}

// ids returns how many IDs the range needs.
func (r *Source) ids() (n int64) {
	for stretch := r.pieces.Lo; stretch < r.pieces.Hi; stretch++ {
		n += r.s.needs.more(stretch, r.pieces.Lo)
	}
	return n
}

// Free gives back the disk that the range's IDs take.
func (r *Source) Free() {
	if r.s.rows != nil {
		r.s.perRange[r.n].Free()
		return
	}
	for stretch := r.pieces.Lo; stretch < r.pieces.Hi; stretch++ {
		r.s.perPiece[stretch].free()
	}
}

// place is where a source is.
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

// Next returns a sealed side with IDs, and whether there are more than it could
// take. The first one may be empty. The caller releases it. The error wraps
// [fault.ErrMemory] if hardly any ID fits.
func (r *Source) Next(ctx context.Context) (side *table.Side, more bool, err error) {
	start, most := r.position(), 0
	for reserve := r.Only == nil; ; reserve = false {
		var n int
		side, n, more, err = r.fill(ctx, most, reserve)
		if err == nil || !errors.Is(err, fault.ErrMemory) || n < 2 && !reserve {
			return side, more, err
		}
		// Whatever of chunk n the side has: it is made again, without it, and
		// without room for all beforehand.
		r.seek(start)
		if n > 1 {
			most = n - max(n/16, 1)
		}
	}
}

// fill fills a side with at most so many chunks of IDs, or as many as there
// are, having made room for all beforehand if that is asked for. n is the number
// of those that were begun.
func (r *Source) fill(ctx context.Context, most int, reserve bool) (side *table.Side, n int, more bool, err error) {
	s := r.s
	kind := table.Kind{Integers: s.Integers, Rows: s.rows != nil, Held: s.Held, Threads: s.Threads, Mem: s.Mem}
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

// add puts the IDs of the next chunk into a side, or returns io.EOF.
func (r *Source) add(ctx context.Context, side *table.Side) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.rows != nil {
		return r.addRows(side)
	}
	for {
		b, err := r.entries.next()
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
	b, err := r.rows.Next(nil) // of which the record is made
	if err != nil {
		return err
	}
	rec, err := spill.Record(r.s.Schema, b, 0)
	if err != nil {
		return fault.Errorf("%s: %w", waitsOnDisk, err)
	}
	defer rec.Release()
	if err := r.s.Encoder.Encode(rec, &r.batch); err != nil {
		return err
	}
	if r.Only != nil {
		return side.AddRowsAt(rec, &r.batch, r.wanted())
	}
	return side.AddRows(rec, &r.batch)
}

// wanted returns the positions in the batch of the IDs that only has.
func (r *Source) wanted() []uint32 {
	r.all = table.UpTo(r.all, len(r.batch.Rows))
	r.found, r.entry = r.Only.Find(&r.batch, r.all, r.found, r.entry)
	return r.found
}

// addBatch adds the batch to a side.
func (r *Source) addBatch(side *table.Side) error {
	if r.Only != nil {
		return side.AddKeysAt(&r.batch, r.wanted())
	}
	return side.AddKeys(&r.batch)
}

// addKeys adds those keys that no stretch of the range before needs.
func (r *Source) addKeys(side *table.Side, b *entryBatch) error {
	plain := [2][]byte{r.plain[0][:0], r.plain[1][:0]}
	var n int
	for i, p := range b.pairs {
		switch {
		case int(b.tag(i)) > r.pieces.Lo: // the tag is the stretch before, and one
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
