package table

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/hugepage"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// item is a key to be added to a table: its mixed hash, its position in the batch,
// and its row.
type item struct {
	hash     uint64
	pos, row uint32
}

// shortage is the set of things that a table must get before a key can be added.
type shortage uint32

const (
	room    shortage = 1 << iota // slots
	counts                       // of repetitions of each key
	links                        // of rows
	tooMany                      // nothing helps: a key has more IDs than can be counted
)

// filler adds keys to the tables of a side, a part of a batch at a time. Its memory
// is reused.
type filler struct {
	batch   *keys.Batch
	values  []uint64 // the keys, if they are integers
	threads int

	items, negative, sorted []item
}

const blockKeys = 1 << 14 // keys added at once

// load collects the items of the batch's keys at positions lo to hi. If keep is not
// nil, they are those at positions keep[lo:hi], and their rows are numbered from
// row on. Negative integers are collected for the table below, all others for t.
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

// fill adds the items to t, those of one key in order. It is safe for concurrent
// use, unless rows are kept. The error wraps [fault.ErrMemory].
func (f *filler) fill(t *table, items []item) error {
	for len(items) > 0 {
		t.grown.RLock()
		from := t.n
		rest, short, err := f.pass(t, items)
		t.grown.RUnlock()
		if err != nil {
			return err
		}
		if err := t.supply(short, from); err != nil {
			return err
		}
		items = rest
	}
	return nil
}

// pass adds items until the table is short of something, and returns the rest, those of a
// range in order.
func (f *filler) pass(t *table, items []item) (rest []item, short shortage, err error) {
	if t.n == 0 {
		return items, room, nil
	}
	var starts [maxRanges + 1]int
	sorted := f.sort(t, items, &starts)
	var done [maxRanges]int
	var errs [maxRanges]error
	var all atomic.Uint32
	first := items[0].hash >> t.shift // any range but the one where all others start
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
		var l shortage
		if t.ints {
			done[r], l = t.insertInts(r, part, f.values)
		} else {
			done[r], l, errs[r] = t.insertBytes(r, part, f.batch)
		}
		all.Or(uint32(l))
	})
	rest = items[:0]
	for r := range ranges {
		if errs[r] != nil {
			return nil, 0, errs[r]
		}
		rest = append(rest, sorted[starts[r]+done[r]:starts[r+1]]...)
	}
	return rest, shortage(all.Load()), nil
}

// sort sorts the items by range. Range r is items[starts[r]:starts[r+1]].
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

// each calls fn with 0 to n-1, from several goroutines.
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

// insertInts adds items of range r until the table is short of something, and returns how
// many it added.
func (t *table) insertInts(r uint64, items []item, values []uint64) (done int, short shortage) {
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
				short = t.again(at, it.row)
			case *members == limit:
				short = room
			default:
				t.words[at] = v
				*members++
				t.came(at, it.row)
			}
			if short != 0 {
				return done, short
			}
			done++
		}
	}
	return done, 0
}

// insertBytes is insertInts for keys in the arena.
func (t *table) insertBytes(r uint64, items []item, batch *keys.Batch) (done int, short shortage, err error) {
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
				short = t.again(at, it.row)
			case rg.n == limit:
				short = room
			default:
				place, err := t.arena.put(&rg.chunk, column)
				if err != nil {
					return done, 0, err
				}
				dir = t.arena.dir()
				t.words[at] = tag(it.hash)<<placeBits | place
				rg.n++
				t.came(at, it.row)
			}
			if short != 0 {
				return done, short, nil
			}
			done++
		}
	}
	return done, 0, nil
}

// came records the first row of a key.
func (t *table) came(slot uint64, row uint32) {
	if t.chains != nil {
		t.aside[slot] = row
	}
}

// again records another row of a key, unless it is short of something.
func (t *table) again(slot uint64, row uint32) shortage {
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

// supply provides what a pass lacked that began with a table of from slots. The
// error wraps [fault.ErrMemory].
func (t *table) supply(short shortage, from uint64) error {
	if short&room != 0 {
		if err := t.grow(from); err != nil {
			return err
		}
	}
	if short&counts != 0 {
		if err := t.count(); err != nil {
			return err
		}
	}
	if short&tooMany != 0 {
		return errors.New("one key has more than 2^32 IDs: want fewer (remove duplicate IDs)")
	}
	if short&links != 0 {
		return t.chains.begin()
	}
	return nil
}

// count makes room for counting repetitions of keys.
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

// reserve makes room for n keys in an empty table. The error wraps
// [fault.ErrMemory]; the table then stays empty.
func (t *table) reserve(n uint64) error {
	t.grown.Lock()
	defer t.grown.Unlock()
	return t.resize(slotsFor(n))
}

// grow doubles the table, or makes it larger by less if the account does not allow
// that, or by more if it is known what will come. It does nothing if the table has grown since it
// had from slots.
func (t *table) grow(from uint64) (err error) {
	t.grown.Lock()
	defer t.grown.Unlock()
	if t.n != from {
		return nil
	}
	for _, n := range []uint64{t.foreseen(), 2*from + 64, from + from/2, from + from/4} {
		if n <= from {
			continue
		}
		if err = t.resize(n); err == nil {
			return nil
		}
	}
	return err
}

// foreseen returns the slots for all keys that are expected, once enough rows say how many have a
// key of their own; else 0. It leaves most of the account to the rows.
func (t *table) foreseen() uint64 {
	if t.chains == nil || t.chains.rows < t.expected/16 {
		return 0
	}
	n := slotsFor(uint64(float64(t.len()) / float64(t.chains.rows) * float64(t.expected)))
	if t.share.Left() < 4*t.size(n, true) {
		return 0
	}
	return n
}

// resize moves the keys to about n slots. The error wraps [fault.ErrMemory]; the
// table is then unchanged.
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
		t.share.Give(t.size(next.n, next.aside != nil)) // a range is full, as if the keys were chosen to collide
		n *= 2
	}
}

// layOut gives an empty table about as many slots as asked for, in its own memory
// if that suffices.
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

// allocate allocates slots that are laid out.
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

// move moves the members to other, more slots. It reports false if a range there is
// full, because too many hashes are alike.
func (t *table) move(to *slots, members *[maxRanges]uint64) bool {
	if t.zero && t.aside != nil {
		to.aside[to.n] = t.aside[t.n]
	}
	threads := 0
	if t.n < 1<<18 {
		threads = 1
	}
	var full atomic.Bool
	each(threads, int(t.n/t.width), func(r int) { // a range here maps to one range there, or to several
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

// len returns the number of keys. No goroutine may be adding any.
func (t *table) len() (n uint64) {
	for r := range t.ranges {
		n += t.ranges[r].n
	}
	if t.zero {
		n++
	}
	return n
}
