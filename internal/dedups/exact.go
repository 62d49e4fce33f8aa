package dedups

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/internal/ring"
	"github.com/bloomjoin/bloomjoin/internal/spill"
)

// Exact finds duplicates by the keys themselves. Rows are divided among parts by the hashes of
// their keys, and parts that exceed the budget go to disk. Each part is compared in memory; one
// with too many keys is divided again.
type Exact struct {
	Counts
	late     Late
	clock    ring.Clock
	most     int64 // bytes for rows and for keys; 0: no limit
	least    int64 // what it takes even so
	held     int64 // of rows
	file     *spill.File
	parts    parts
	keys     int // of the part that was compared last
	verdicts []ring.Verdict
}

// parts are rows divided by 8 bits of the hashes of their keys.
type parts [256]part

// part has the rows of some keys, in order: those on disk, then those in memory.
type part struct {
	disk *spill.Stream // nil: none
	rows [][]byte
}

const (
	entryBytes = 64      // of a key, beside its bytes: an estimate
	partBytes  = 1 << 20 // of rows in one slice
)

// NewExact returns an Exact that takes memory bytes, and what exceeds them in files of dir; 0: no
// limit. A bit for each row is part of these bytes.
func NewExact(p ring.Params, late Late, memory int64, dir string) *Exact {
	return &Exact{late: late, clock: p.Clock(), most: memory, least: 1 << 20, file: spill.New(dir, "{TempDir}: keys to compare")}
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

// End calls drop with the number of each duplicate, some of them more than once.
func (e *Exact) End(drop func(row int64)) error { return e.finish(&e.parts, 0, drop) }

// Spilled returns the number of bytes that were written to disk.
func (e *Exact) Spilled() int64 { return e.file.Written() }

// Close frees the disk space.
func (e *Exact) Close() error { return e.file.Close() }

// full reports whether so many bytes exceed half of the budget.
func (e *Exact) full(bytes int64) bool {
	return e.most > 0 && bytes > max(e.most-e.RowsIn/8, e.least)/2
}

// row is a row with a key.
type row struct {
	number, slot, gone int64 // gone: the newest slot that was dropped then
	key                []byte
}

// add adds a row to its part.
func (e *Exact) add(to *parts, level uint64, r row) error {
	p := &to[xxh3.HashSeed(r.key, level)>>56]
	n := len(p.rows) - 1
	if n < 0 || len(p.rows[n]) >= partBytes {
		p.rows = append(p.rows, nil)
		n++
	}
	b := p.rows[n]
	before := cap(b)
	b = binary.AppendUvarint(b, uint64(r.number))
	b = binary.AppendVarint(b, r.slot)
	b = binary.AppendUvarint(b, uint64(r.slot-r.gone))
	b = binary.AppendUvarint(b, uint64(len(r.key)))
	p.rows[n] = append(b, r.key...)
	if e.held += int64(cap(p.rows[n]) - before); e.full(e.held) {
		return e.flush(to)
	}
	return nil
}

// flush writes the rows in memory to disk.
func (e *Exact) flush(of *parts) error {
	for i := range of {
		p := &of[i]
		for _, b := range p.rows {
			if p.disk == nil {
				p.disk = e.file.Stream()
			}
			if err := p.disk.Write(b, false); err != nil {
				return err
			}
		}
		e.free(p)
	}
	return nil
}

// free releases the memory of a part.
func (e *Exact) free(p *part) {
	for _, b := range p.rows {
		e.held -= int64(cap(b))
	}
	p.rows = nil
}

// each calls fn with the rows of the part.
func (p *part) each(fn func(row) error) error {
	var r row
	decode := func(b []byte) error {
		for len(b) > 0 {
			number, n := binary.Uvarint(b)
			slot, m := binary.Varint(b[n:])
			n += m
			ahead, m := binary.Uvarint(b[n:])
			n += m
			size, m := binary.Uvarint(b[n:])
			n += m
			r = row{int64(number), slot, slot - int64(ahead), b[n : n+int(size)]}
			if err := fn(r); err != nil {
				return err
			}
			b = b[n+int(size):]
		}
		return nil
	}
	if p.disk != nil {
		in, b := p.disk.Reader(), []byte(nil)
		for {
			var err error
			if b, err = in.Next(b); err == io.EOF {
				break
			} else if err == nil {
				err = decode(b)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, b := range p.rows {
		if err := decode(b); err != nil {
			return err
		}
	}
	return nil
}

// errFull means that a part has too many keys.
var errFull = errors.New("too many keys in a part")

// finish compares the keys of each part, and releases it.
func (e *Exact) finish(of *parts, level uint64, drop func(row int64)) error {
	for i := range of {
		p := &of[i]
		err := e.compare(p, level, drop)
		if err == errFull {
			err = e.divide(of, p, level+1, drop)
		}
		if err != nil {
			return err
		}
		e.free(p)
		if p.disk != nil {
			p.disk.Free()
		}
	}
	return nil
}

// divide divides one of some parts. The others go to disk, so that the memory is free.
func (e *Exact) divide(of *parts, p *part, level uint64, drop func(row int64)) error {
	if err := e.flush(of); err != nil {
		return err
	}
	var finer parts
	if err := p.each(func(r row) error { return e.add(&finer, level, r) }); err != nil {
		return err
	}
	return e.finish(&finer, level, drop)
}

// compare drops the duplicates of a part. Keys that no division has separated are few.
func (e *Exact) compare(p *part, level uint64, drop func(row int64)) error {
	const mostLevels = 8
	passed := make(map[string]int64, e.keys) // by key: the slot of the row that passed last
	held, found := int64(0), int64(0)
	err := p.each(func(r row) error {
		at, before := passed[string(r.key)]
		if before && at > r.gone {
			drop(r.number)
			found++
			return nil
		}
		passed[string(r.key)] = r.slot
		if before {
			return nil
		}
		if held += int64(len(r.key)) + entryBytes; level < mostLevels && e.full(held) {
			return errFull
		}
		return nil
	})
	if e.keys = len(passed); err == nil {
		e.Duplicates += found
	}
	return err
}
