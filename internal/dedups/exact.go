package dedups

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/internal/ring"
	"github.com/bloomjoin/bloomjoin/internal/spill"
)

// Exact finds duplicates by the keys themselves. Rows are divided among parts by the hashes of
// their keys; a part that exceeds its share of the budget goes to disk. Each part is compared in
// memory; one with too many keys is divided again.
type Exact struct {
	Counts
	late     Late
	clock    ring.Clock
	most     int64 // bytes; 0: no limit
	dir      string
	parts    parts
	verdicts []ring.Verdict
	buf      []byte
}

// parts are the rows of some keys each, in order.
type parts [128]*spill.Bytes

// NewExact returns an Exact that takes memory bytes, and what exceeds them in files of dir; 0: no
// limit. A bit for each row is part of these bytes.
func NewExact(p ring.Params, late Late, memory int64, dir string) *Exact {
	return &Exact{late: late, clock: p.Clock(), most: memory, dir: dir}
}

// Drop appends those rows to drop that cannot be judged, ascending. Duplicates are found by End.
func (e *Exact) Drop(rows *Rows, drop []int) ([]int, error) {
	e.verdicts = e.verdicts[:0]
	for i, at := range rows.At {
		v, _ := e.clock.Place(rows.Slots[i])
		if v == ring.Fresh {
			if err := e.add(&e.parts, 0, row{e.RowsIn + int64(at), rows.Slots[i], e.clock.Gone(), rows.Exact[i]}); err != nil {
				return nil, err
			}
		}
		e.verdicts = append(e.verdicts, v)
	}
	return e.Counts.add(rows, e.late, e.verdicts, drop)
}

// End calls drop with the number of each duplicate, some of them more than once, and frees the
// disk space.
func (e *Exact) End(drop func(row int64)) error { return e.finish(&e.parts, 0, drop) }

// row is a row with a key.
type row struct {
	number, slot, gone int64 // gone: the newest slot that was dropped then
	key                []byte
}

// third returns a third of the budget: for the rows, for those of a part that is divided, and for
// the keys of a part.
func (e *Exact) third() int64 {
	if e.most == 0 {
		return math.MaxInt64
	}
	return (e.most - e.RowsIn/8) / 3
}

// add adds a row to its part.
func (e *Exact) add(to *parts, level uint64, r row) error {
	p := &to[xxh3.HashSeed(r.key, level)>>57]
	if *p == nil {
		*p = spill.NewBytes("{TempDir}: keys to compare")
		(*p).Dir, (*p).Held = e.dir, max(e.third()/int64(len(to)), 4<<10)
	}
	b := binary.AppendUvarint(e.buf[:0], uint64(r.number))
	b = binary.AppendVarint(b, r.slot)
	b = binary.AppendUvarint(b, uint64(r.slot-r.gone))
	b = binary.AppendUvarint(b, uint64(len(r.key)))
	e.buf = append(b, r.key...)
	_, err := (*p).Write(e.buf)
	return err
}

// each calls fn with the rows of a part.
func each(p *spill.Bytes, fn func(row) error) error {
	if err := p.Flush(); err != nil {
		return err
	}
	in, key := bufio.NewReader(io.NewSectionReader(p, 0, p.Size())), []byte(nil)
	for {
		number, err := binary.ReadUvarint(in)
		if err == io.EOF {
			return nil
		}
		slot, err1 := binary.ReadVarint(in)
		ahead, err2 := binary.ReadUvarint(in)
		size, err3 := binary.ReadUvarint(in)
		key = slices.Grow(key[:0], int(size))[:size]
		_, err4 := io.ReadFull(in, key)
		if err = cmp.Or(err, err1, err2, err3, err4); err == nil {
			err = fn(row{int64(number), slot, slot - int64(ahead), key})
		}
		if err != nil {
			return err
		}
	}
}

// errFull means that a part has too many keys.
var errFull = errors.New("too many keys in a part")

// finish compares the keys of each part, and releases it.
func (e *Exact) finish(of *parts, level uint64, drop func(row int64)) error {
	for i, p := range of {
		if p == nil {
			continue
		}
		err := e.compare(p, level, drop)
		if err == errFull {
			var finer parts
			if err = each(p, func(r row) error { return e.add(&finer, level+1, r) }); err == nil {
				err = e.finish(&finer, level+1, drop)
			}
		}
		of[i] = nil
		if err = errors.Join(err, p.Close()); err != nil {
			return err
		}
	}
	return nil
}

// compare drops the duplicates of a part. After some divisions, keys are few.
func (e *Exact) compare(p *spill.Bytes, level uint64, drop func(row int64)) error {
	const (
		entryBytes = 64 // of a key, beside its own: an estimate
		mostLevels = 4
	)
	passed := map[string]int64{} // by key: the slot of the row that passed last
	held, found := int64(0), int64(0)
	err := each(p, func(r row) error {
		at, before := passed[string(r.key)]
		if before && at > r.gone {
			drop(r.number)
			found++
			return nil
		}
		if passed[string(r.key)] = r.slot; !before {
			held += int64(len(r.key)) + entryBytes
		}
		if held > e.third() && level < mostLevels {
			return errFull
		}
		return nil
	})
	if err == nil {
		e.Duplicates += found
	}
	return err
}
