package table

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/hugepage"
	"github.com/bloomjoin/bloomjoin/key"
)

// item is a key on its way into a table: its mixed hash, its position in the
// batch, and its row.
type item struct {
	hash     uint64
	pos, row uint32
}

// lack says what a table needs before a key can be added.
type lack uint32

const (
	room    lack = 1 << iota // slots
	counts                   // of how often each key came again
	links                    // of rows
	tooMany                  // nothing: a key has more IDs than can be counted
)

// filler adds keys to the tables of a side, a block of a batch at a time. It
// keeps its memory.
type filler struct {
	batch   *key.Batch
	values  []uint64 // the keys, if they are integers
	threads int

	items, negative, sorted []item
}

const blockKeys = 1 << 14 // that are added at once

// load collects the items of the batch's keys from position lo to hi, or, if
// keep is not nil, of those at positions keep[lo:hi], whose rows are numbered
// from row on: those for t, and of integers those below zero for another table.
func (f *filler) load(t, below *table, keep []uint32, lo, hi int, row uint32) {
	f.items, f.negative = f.items[:0], f.negative[:0]
	for i := lo; i < hi; i++ {
		it := item{pos: uint32(i)}
		if keep != nil {
			it.pos, it.row = keep[i], row+uint32(i)
		} else {
			it.row = row + f.batch.Rows[i]
		}
		if !t.ints {
			it.hash = t.mix(f.batch.HashAt(Hash, int(it.pos)))
			f.items = append(f.items, it)
			continue
		}
		if v := f.values[it.pos]; int64(v) < 0 && f.batch.Negative(int(it.pos)) {
			it.hash = below.mix(v)
			f.negative = append(f.negative, it)
		} else {
			it.hash = t.mix(v)
			f.items = append(f.items, it)
		}
	}
}

// fill adds the items to t, those of one key in their order. It may be called
// from many goroutines, unless rows are wanted. The error wraps [fault.ErrMemory].
func (f *filler) fill(t *table, items []item) error {
	for len(items) > 0 {
		t.grown.RLock()
		from := t.n
		rest, lacks, err := f.pass(t, items)
		t.grown.RUnlock()
		if err != nil {
			return err
		}
		if err := t.supply(lacks, from); err != nil {
			return err
		}
		items = rest
	}
	return nil
}

// pass adds items until something lacks, and returns the rest, those of a range
// in their order.
func (f *filler) pass(t *table, items []item) (rest []item, lacks lack, err error) {
	if t.n == 0 {
		return items, room, nil
	}
	var starts [maxRanges + 1]int
	sorted := f.sort(t, items, &starts)
	var done [maxRanges]int
	var errs [maxRanges]error
	var lacking atomic.Uint32
	first := items[0].hash >> t.shift // any: not the one that all others begin with
	ranges := t.n / t.width
	threads := f.threads
	if len(items) < 1<<13 {
		threads = 1
	}
	each(threads, int(ranges), func(i int) {
		r := (first + uint64(i)) % ranges
		part := sorted[starts[r]:starts[r+1]]
		if len(part) == 0 {
			return
		}
		t.ranges[r].mu.Lock()
		defer t.ranges[r].mu.Unlock()
		var l lack
		if t.ints {
			done[r], l = t.insertInts(r, part, f.values)
		} else {
			done[r], l, errs[r] = t.insertBytes(r, part, f.batch)
		}
		lacking.Or(uint32(l))
	})
	rest = items[:0]
	for r := range ranges {
		if errs[r] != nil {
			return nil, 0, errs[r]
		}
		rest = append(rest, sorted[starts[r]+done[r]:starts[r+1]]...)
	}
	return rest, lack(lacking.Load()), nil
}

// sort puts the items in order of their ranges, which begin at starts.
func (f *filler) sort(t *table, items []item, starts *[maxRanges + 1]int) []item {
	for i := range items {
		starts[items[i].hash>>t.shift+1]++
	}
	for r := range maxRanges {
		starts[r+1] += starts[r]
	}
	if cap(f.sorted) < len(items) {
		f.sorted = make([]item, len(items))
	}
	sorted, next := f.sorted[:len(items)], *starts
	for _, it := range items {
		r := it.hash >> t.shift
		sorted[next[r]] = it
		next[r]++
	}
	return sorted
}

// each calls fn with 0 to n-1, from so many goroutines.
func each(threads, n int, fn func(i int)) {
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			fn(i)
		}
	}
	var wg sync.WaitGroup
	for range min(threads, n) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}

// insertInts adds items of range r until something lacks, and returns how many.
func (t *table) insertInts(r uint64, items []item, values []uint64) (done int, lacks lack) {
	limit, members := t.limit(), &t.ranges[r].n
	var hashes [warmed]uint64
	for len(items) > done {
		some := items[done:min(done+warmed, len(items))]
		for i := range some {
			hashes[i] = some[i].hash
		}
		t.warm(hashes[:len(some)])
		for _, it := range some {
			v := values[it.pos]
			at := t.place(v, it.hash)
			switch {
			case v == 0 && !t.zero:
				t.zero = true
				t.came(at, it.row)
			case v == 0 || t.words[at] == v:
				lacks = t.again(at, it.row)
			case *members == limit:
				lacks = room
			default:
				t.words[at] = v
				*members++
				t.came(at, it.row)
			}
			if lacks != 0 {
				return done, lacks
			}
			done++
		}
	}
	return done, 0
}

// insertBytes is insertInts for keys in the arena.
func (t *table) insertBytes(r uint64, items []item, batch *key.Batch) (done int, lacks lack, err error) {
	limit, rg, dir := t.limit(), &t.ranges[r], t.arena.dir()
	var buf [64]byte
	var hashes, words [warmed]uint64
	for len(items) > done {
		some := items[done:min(done+warmed, len(items))]
		for i := range some {
			hashes[i] = some[i].hash
		}
		t.warm(hashes[:len(some)])
		for i, h := range hashes[:len(some)] {
			at, end := t.start(h)
			words[i] = t.words[t.tagged(at, end, h)]
		}
		warmKeys(dir, words[:len(some)])
		for _, it := range some {
			column := batch.Bytes(buf[:], int(it.pos))
			at := t.placeOf(dir, column, it.hash)
			switch {
			case t.words[at] != 0:
				lacks = t.again(at, it.row)
			case rg.n == limit:
				lacks = room
			default:
				place, err := t.arena.put(&rg.piece, column)
				if err != nil {
					return done, 0, err
				}
				dir = t.arena.dir()
				t.words[at] = tag(it.hash)<<placeBits | place
				rg.n++
				t.came(at, it.row)
			}
			if lacks != 0 {
				return done, lacks, nil
			}
			done++
		}
	}
	return done, 0, nil
}

// came notes the first row of a key.
func (t *table) came(slot uint64, row uint32) {
	if t.chains != nil {
		t.aside[slot] = row
	}
}

// again notes another row of a key, unless something lacks.
func (t *table) again(slot uint64, row uint32) lack {
	switch {
	case t.chains == nil && t.aside == nil:
		return counts
	case t.chains == nil && t.aside[slot] == None:
		return tooMany
	case t.chains == nil:
		t.aside[slot]++
	case !t.chains.open:
		return links
	default:
		t.chains.link(t.aside[slot], row)
		t.aside[slot] = row
	}
	return 0
}

// supply makes what a pass lacked, which began with so many slots. The error
// wraps [fault.ErrMemory].
func (t *table) supply(lacks lack, from uint64) error {
	if lacks&room != 0 {
		if err := t.grow(from); err != nil {
			return err
		}
	}
	if lacks&counts != 0 {
		if err := t.count(); err != nil {
			return err
		}
	}
	if lacks&tooMany != 0 {
		return errors.New("one key has more than 2^32 IDs: want fewer (remove duplicate IDs)")
	}
	if lacks&links != 0 {
		return t.chains.begin()
	}
	return nil
}

// count makes room to count how often keys come again.
func (t *table) count() error {
	t.grown.Lock()
	defer t.grown.Unlock()
	if t.aside != nil {
		return nil
	}
	if err := t.share.Take(t.size(t.n, true) - t.size(t.n, false)); err != nil {
		return err
	}
	t.aside = make([]uint32, t.n+1)
	return nil
}

// reserve makes room for n keys in a table that has none. The error wraps
// [fault.ErrMemory]; the table is empty then as well.
func (t *table) reserve(n uint64) error {
	t.grown.Lock()
	defer t.grown.Unlock()
	return t.resize(slotsFor(n))
}

// grow makes room, unless the table has grown since it had from slots: twice as
// much, or, where the account does not allow it, less.
func (t *table) grow(from uint64) (err error) {
	t.grown.Lock()
	defer t.grown.Unlock()
	if t.n != from {
		return nil
	}
	for _, n := range []uint64{2*from + 64, from + from/2, from + from/4} {
		if n <= from {
			break
		}
		if err = t.resize(n); err == nil {
			return nil
		}
	}
	return err
}

// resize makes n slots, or a few more, and moves the keys there. The error wraps
// [fault.ErrMemory]; the table is then as it was.
func (t *table) resize(n uint64) error {
	if t.len() == 0 {
		return t.layOut(arrange(n))
	}
	for {
		next := arrange(n)
		if err := t.allocate(&next); err != nil {
			return err
		}
		var members [maxRanges]uint64
		if t.move(&next, &members) {
			t.share.Give(t.size(t.have, t.aside != nil))
			t.slots, t.have = next, next.n
			for r := range t.ranges {
				t.ranges[r].n = members[r]
			}
			return nil
		}
		t.share.Give(t.size(next.n, next.aside != nil)) // a range is full, as if by design
		n *= 2
	}
}

// layOut gives the slots of an empty table another layout, in the memory that
// it has if that suffices.
func (t *table) layOut(next slots) error {
	if next.n <= t.have {
		next.words = t.words[:next.n+1]
		if t.aside != nil {
			next.aside = t.aside[:next.n+1]
		}
		t.slots = next
		return nil
	}
	t.share.Give(t.size(t.have, t.aside != nil))
	t.slots, t.have = slots{}, 0
	if err := t.allocate(&next); err != nil {
		return err
	}
	t.slots, t.have = next, next.n
	return nil
}

// allocate makes the memory of slots that are laid out.
func (t *table) allocate(s *slots) error {
	if s.n >= 1<<31 {
		return fmt.Errorf("%w: more than %d IDs in one table", fault.ErrMemory, uint64(1<<31)/10*7)
	}
	aside := t.chains != nil || t.aside != nil
	if err := t.share.Take(t.size(s.n, aside)); err != nil {
		return err
	}
	s.words = hugepage.Words(s.n + 1)
	if aside {
		s.aside = make([]uint32, s.n+1)
	}
	return nil
}

// move puts the members into other slots, which are more. It reports false if a
// range there is full: of keys whose hashes are too much alike.
func (t *table) move(to *slots, members *[maxRanges]uint64) bool {
	if t.zero && t.aside != nil {
		to.aside[to.n] = t.aside[t.n]
	}
	threads := 0
	if t.n < 1<<18 {
		threads = 1
	}
	var full atomic.Bool
	each(threads, int(t.n/t.width), func(r int) { // a range here has one there, or some, of its own
		if !t.moveRange(uint64(r), to, members) {
			full.Store(true)
		}
	})
	return !full.Load()
}

func (t *table) moveRange(r uint64, to *slots, members *[maxRanges]uint64) bool {
	dir := t.arena.dir()
	limit := to.limit()
	for from := r * t.width; from < (r+1)*t.width; from += warmed {
		words := t.words[from:min(from+warmed, (r+1)*t.width)]
		if !t.ints {
			warmKeys(dir, words)
		}
		for i, w := range words {
			if w == 0 {
				continue
			}
			h := t.hash(w, dir)
			if members[h>>to.shift] == limit {
				return false
			}
			members[h>>to.shift]++
			at, end := to.start(h)
			for to.words[at] != 0 {
				if at++; at == end {
					at -= to.width
				}
			}
			to.words[at] = w
			if t.aside != nil {
				to.aside[at] = t.aside[from+uint64(i)]
			}
		}
	}
	return true
}

// len returns the number of keys, while nobody adds any.
func (t *table) len() (n uint64) {
	for r := range t.ranges {
		n += t.ranges[r].n
	}
	if t.zero {
		n++
	}
	return n
}
