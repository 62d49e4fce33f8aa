package dedups

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/internal/ring"
	"github.com/bloomjoin/bloomjoin/internal/spill"
)

// Exact finds duplicates by the keys themselves. Rows are divided among parts by the hashes of
// their keys; what exceeds a part's share of the budget goes to disk. Each part is compared in
// memory; one with too many keys is divided again.
type Exact struct {
	Counts
	Last     bool // of equal rows, the one with the greatest time stays, the last of several; see Columns.Last
	late     Late
	clock    ring.Clock
	most     int64 // bytes; 0: no limit
	disk     *spill.File
	seed     uint64 // of the hashes; random, so that no input can be made of keys that collide
	parts    parts
	passed   table
	verdicts []ring.Verdict
}

// parts are the rows of some keys each.
type parts [128]part

// part is rows in order, the last ones in memory.
type part struct {
	before *spill.Stream // rows that were spilled; nil if the part is empty
	last   []byte
}

// NewExact returns an Exact that takes memory bytes, and what exceeds them in a file of dir; 0: no
// limit. A bit for each row is part of these bytes.
func NewExact(p ring.Params, late Late, memory int64, dir string) *Exact {
	return &Exact{late: late, clock: p.Clock(), most: memory, seed: rand.Uint64(), disk: spill.New(dir, "{TempDir}: keys to compare")}
}

// Drop appends those rows to drop that cannot be judged, ascending. Duplicates are found by End.
func (e *Exact) Drop(rows *Rows, drop []int) ([]int, error) {
	e.verdicts = e.verdicts[:0]
	for i, at := range rows.At {
		r := row{e.RowsIn + int64(at), rows.Slots[i], 0, rows.Exact[i]}
		v := ring.Fresh
		if e.Last {
			r.rest = rows.Rests[i]
		} else {
			v, _ = e.clock.Place(r.slot)
			r.rest = r.slot - e.clock.Gone()
		}
		if v == ring.Fresh {
			if err := e.add(&e.parts, 0, r); err != nil {
				return nil, err
			}
		}
		e.verdicts = append(e.verdicts, v)
	}
	return e.Counts.add(rows, e.late, e.verdicts, drop)
}

// End calls drop with the number of each duplicate, and frees the disk space.
func (e *Exact) End(drop func(row int64)) error {
	return errors.Join(e.finish(&e.parts, 0, drop), e.disk.Close())
}

// row is a row with a key.
type row struct {
	number, slot int64
	rest         int64 // with Last, see Rows.Rests; otherwise how many slots the newest dropped one is before
	key          []byte
}

// third returns a third of the budget: for the rows, for those of a part that is divided, and for
// the keys of a part. The bits of very many rows may leave hardly anything: then it returns a
// sixteenth, since exceeding the budget is better than dividing keys one by one.
func (e *Exact) third() int64 {
	const most = 1 << 37 // with more, positions of entries would not fit in 32 bits
	if e.most == 0 {
		return most
	}
	return min(max((e.most-e.RowsIn/8)/3, e.most/16), most)
}

// hash returns the hash of a key, whose first bits choose a part. It differs from level to level.
func (e *Exact) hash(key []byte, level uint64) uint64 { return xxh3.HashSeed(key, e.seed+level) }

// add adds a row to its part.
func (e *Exact) add(to *parts, level uint64, r row) error {
	p := &to[e.hash(r.key, level)>>57]
	if p.before == nil {
		p.before = e.disk.Stream()
	}
	b := binary.AppendUvarint(p.last, uint64(r.number))
	b = binary.AppendUvarint(b, uint64(r.slot))
	b = binary.AppendUvarint(b, uint64(r.rest))
	b = binary.AppendUvarint(b, uint64(len(r.key)))
	p.last = append(b, r.key...)
	if share := max(e.third()/int64(len(to)), min(e.most, 4<<10)); int64(len(p.last)) > share {
		if err := p.before.Write(p.last, false); err != nil {
			return err
		}
		if p.last = p.last[:0]; int64(cap(p.last)) > 2*share { // a long key must not stay
			p.last = nil
		}
	}
	return nil
}

// each calls fn with the rows of a part.
func (p *part) each(fn func(row) error) error {
	in, chunk := p.before.Reader(), []byte(nil)
	for more := true; more; {
		var err error
		b := p.last
		if chunk, err = in.Next(chunk); err == nil {
			b = chunk
		} else if more = false; err != io.EOF {
			return err
		}
		for len(b) > 0 {
			var head [4]uint64
			for i := range head {
				v, n := binary.Uvarint(b)
				head[i], b = v, b[n:]
			}
			r := row{int64(head[0]), int64(head[1]), int64(head[2]), b[:head[3]]}
			if err := fn(r); err != nil {
				return err
			}
			b = b[head[3]:]
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
		if p.before == nil {
			continue
		}
		err := e.compare(p, level, drop)
		if errors.Is(err, errFull) {
			var finer parts
			if err = p.each(func(r row) error { return e.add(&finer, level+1, r) }); err == nil {
				p.free()
				err = e.finish(&finer, level+1, drop)
			}
		}
		if err != nil {
			return err
		}
		p.free()
	}
	return nil
}

func (p *part) free() {
	p.before.Free()
	p.last = nil
}

// compare drops the duplicates of a part. After some divisions, keys are few.
func (e *Exact) compare(p *part, level uint64, drop func(row int64)) error {
	const mostLevels = 4
	e.passed.clear()
	found := int64(0)
	err := p.each(func(r row) error {
		stays, before := e.passed.at(e.hash(r.key, level), r.key)
		if before && (e.Last || stays.slot > r.slot-r.rest) {
			found++
			if !e.Last || cmp.Or(cmp.Compare(r.slot, stays.slot), cmp.Compare(r.rest, stays.rest)) < 0 {
				drop(r.number)
				return nil
			}
			drop(stays.number)
		}
		stays.number, stays.slot, stays.rest = r.number, r.slot, r.rest
		if level < mostLevels && int64(len(e.passed.entries))*80+int64(len(e.passed.keys)) > e.third() {
			return errFull
		}
		return nil
	})
	if err == nil {
		e.Duplicates += found
	}
	return err
}

// table has the rows that stay, by key: the last ones of each.
type table struct {
	index   []uint32 // positions of entries, plus 1, from where a hash says
	entries []entry
	keys    []byte // of all entries
}

type entry struct {
	hash               uint64
	end                int // of the key
	number, slot, rest int64
}

func (t *table) clear() { t.index, t.entries, t.keys = t.index[:0], t.entries[:0], t.keys[:0] }

// at returns the entry of a key, until the next call, and whether it was there before.
func (t *table) at(h uint64, key []byte) (of *entry, before bool) {
	if 4*len(t.entries) >= 3*len(t.index) {
		n := max(2*len(t.index), 256)
		t.index = slices.Grow(t.index[:0], n)[:n]
		clear(t.index)
		for i, e := range t.entries {
			t.index[t.find(e.hash, nil)] = uint32(i + 1)
		}
	}
	i := t.find(h, key)
	if t.index[i] == 0 {
		t.keys = append(t.keys, key...)
		t.entries = append(t.entries, entry{hash: h, end: len(t.keys)})
		t.index[i] = uint32(len(t.entries))
		return &t.entries[len(t.entries)-1], false
	}
	return &t.entries[t.index[i]-1], true
}

// find returns the place of a key in the index, or the free place for it; for a nil key, a free
// place.
func (t *table) find(h uint64, key []byte) uint64 {
	mask := uint64(len(t.index) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		n := t.index[i]
		if n == 0 {
			return i
		}
		if e := t.entries[n-1]; key != nil && e.hash == h {
			from := 0
			if n > 1 {
				from = t.entries[n-2].end
			}
			if bytes.Equal(t.keys[from:e.end], key) {
				return i
			}
		}
	}
}
