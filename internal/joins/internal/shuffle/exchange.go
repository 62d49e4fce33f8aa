package shuffle

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// The exchange determines which pieces of the log need which IDs, bucket by bucket:
// a table holds the log's distinct keys, each with the pieces that have it, and the
// IDs are streamed past. So a key that is frequent on either side takes no more
// memory than a rare one. A bucket whose keys exceed the table is divided by
// another hash, repeatedly. Where that does not help, because keys were chosen to
// collide, the table is filled with as many keys as it takes, and again with the
// others. This ends in any case, because each time at least one key is dealt with.

// Bounds on the division of a bucket.
const (
	divideBy = 16
	maxLevel = 6 // 16^6 parts
)

// exchanger carries out the exchange in one goroutine.
type exchanger struct {
	s      *Shuffle
	share  *budget.Share
	table  *logKeys
	out    *entryWriter // of wants, or of keys by piece
	needs  *needs
	reader *entryReader
	hashes []uint64
	values []uint64
}

// Exchange determines which IDs each piece of the log needs, and sets Ranges. All
// writers must be closed.
func (s *Shuffle) Exchange(ctx context.Context) error {
	var out []*entryStream
	if s.rows == nil {
		s.perPiece = newEntryStreams(s.file, s.pieces())
		out = s.perPiece
	} else if len(s.rows.bins) > 0 {
		part := s.left() / 8 / int64(s.Threads)
		out = s.rows.prepare(int(max(part/(2*minBuffer), 1)))
	}
	s.needs = newNeeds(s.pieces())
	if err := s.share.Take(s.needs.bytes()); err != nil {
		return err
	}
	if err := s.exchangeAll(ctx, out); err != nil {
		return err
	}
	s.chooseRanges()
	if s.rows != nil {
		s.perRange = s.file.Streams(len(s.pieceRanges))
		return s.rows.deal(ctx)
	}
	return nil
}

// exchangeAll distributes the buckets over all threads.
func (s *Shuffle) exchangeAll(ctx context.Context, out []*entryStream) error {
	group, ctx := errgroup.WithContext(ctx)
	threads := int(max(min(s.left()/(4*minRoom), int64(s.Threads)), 1))
	room := s.left() / int64(threads)
	var next atomic.Int64
	var all []*exchanger
	for range threads {
		x, err := s.newExchanger(out, room)
		if x != nil {
			defer x.share.GiveAll()
		}
		if err != nil {
			return err
		}
		all = append(all, x)
	}
	for _, x := range all {
		group.Go(func() error {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(s.logKeys) {
					return x.out.close()
				}
				if err := x.bucket(ctx, s.logKeys[n], s.idKeys[n], 0); err != nil {
					return err
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, x := range all {
		for i, c := range x.needs.counts {
			s.needs.counts[i] += c
		}
	}
	return nil
}

// newExchanger divides its part of the memory. The table is as large as the largest
// bucket needs, or as there is room for.
func (s *Shuffle) newExchanger(out []*entryStream, room int64) (*exchanger, error) {
	x := &exchanger{s: s, share: s.newShare("the keys of the log in a part of their hashes"), needs: newNeeds(s.pieces())}
	x.reader = &entryReader{integers: s.Integers, hash: levelHash(maxLevel + 1)}
	if err := x.share.Take(x.needs.bytes() + s.readBytes()); err != nil {
		return x, err
	}
	size := minBuffer
	if len(out) > 0 {
		size = int(min(max(room/8/int64(len(out)), minBuffer), int64(s.size)))
	}
	var err error
	if x.out, err = newEntryWriter(out, s.Integers || s.rows != nil, size, x.share); err != nil {
		return x, err
	}
	var most, keyBytes int64
	var entries int64
	for _, b := range s.logKeys {
		most = max(most, b.count.Load())
		keyBytes += b.bytes.Load()
		entries += b.count.Load()
	}
	perKey := float64(keyBytes) / float64(max(entries, 1))
	table := (room - x.share.Bytes() - divideBy*2*minBuffer) / 8 * 7
	need := int64(float64(most+1)*(slotsPerKey*(slotBytes+8)+nodeBytes+perKey)) + int64(nodeBytes*(s.pieces()+64)) + 4096
	x.table = newLogKeys(s.Integers, min(table, need), perKey, s.pieces())
	x.table.mask = s.mask
	return x, x.share.Take(x.table.bytes())
}

// readBytes returns the memory that reading entries takes: a read window, a chunk,
// and its entries.
func (s *Shuffle) readBytes() int64 {
	perByte := int64(3)
	if !s.Integers {
		perByte = 8
	}
	return int64(s.file.Window) + perByte*int64(s.size)
}

// bucket exchanges the keys of a bucket, and frees it.
func (x *exchanger) bucket(ctx context.Context, log, ids *entryStream, level int) error {
	defer log.free()
	defer ids.free()
	if log.count.Load() == 0 || ids.count.Load() == 0 {
		return nil
	}
	if level > maxLevel {
		return x.byTableful(ctx, log, ids)
	}
	x.table.reset(log.count.Load())
	err := x.reader.each(ctx, log, func(b *entryBatch) error {
		for lo := 0; lo < len(b.pairs); lo += probedAtOnce {
			hi := min(lo+probedAtOnce, len(b.pairs))
			x.table.warm(b, lo, hi)
			for i := lo; i < hi; i++ {
				if !x.table.add(b, i) {
					return errFull
				}
			}
		}
		return nil
	})
	if errors.Is(err, errFull) {
		return x.divide(ctx, log, ids, level+1)
	}
	if err != nil {
		return err
	}
	return x.reader.each(ctx, ids, x.ids)
}

// errFull says that a bucket's keys exceed the table.
var errFull = errors.New("the table is full")

// divide divides a bucket, and exchanges the parts.
func (x *exchanger) divide(ctx context.Context, log, ids *entryStream, level int) error {
	var parts [2][]*entryStream
	for i, from := range []*entryStream{log, ids} {
		parts[i] = newEntryStreams(x.s.file, divideBy)
		if err := x.deal(ctx, from, parts[i], level); err != nil {
			return err
		}
		from.free()
	}
	for i := range divideBy {
		if err := x.bucket(ctx, parts[0][i], parts[1][i], level); err != nil {
			return err
		}
	}
	return nil
}

// deal writes the entries of a stream to its parts.
func (x *exchanger) deal(ctx context.Context, from *entryStream, parts []*entryStream, level int) error {
	size := int(min(max(x.table.bytes()/64/divideBy, minBuffer), int64(x.s.size)))
	w, err := newEntryWriter(parts, x.s.Integers, size, x.share)
	if err != nil {
		return err
	}
	err = x.reader.each(ctx, from, func(b *entryBatch) error {
		x.hashes = b.hashes(x.hashes, &x.values, level)
		for i, h := range x.hashes {
			if err := w.put(bucketOf(h&x.s.mask, divideBy), b, i, b.tag(i)); err != nil {
				return err
			}
		}
		return nil
	})
	return w.finish(err)
}

// byTableful exchanges the keys of a bucket, each time as many as the table takes,
// with all entries of each key.
func (x *exchanger) byTableful(ctx context.Context, log, ids *entryStream) error {
	rest := newEntryStreams(x.s.file, 1)
	defer func() { rest[0].free() }()
	for from := log; from.count.Load() > 0; {
		later := newEntryStreams(x.s.file, 1)
		w, err := newEntryWriter(later, x.s.Integers, x.s.size, x.share)
		if err != nil {
			return err
		}
		// The table holds so few keys that each may have a set of all tags. Then add
		// rejects only keys that are not in the table, and rejects such a key every time.
		x.table.reset(int64((cap(x.table.nodes) - 1) / (x.s.pieces() + 1)))
		err = x.reader.each(ctx, from, func(b *entryBatch) error {
			for i := range b.pairs {
				if x.table.add(b, i) {
					continue
				}
				if err := w.put(0, b, i, b.tag(i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err := w.finish(err); err != nil {
			return err
		}
		if x.table.count == 0 {
			return faults.Errorf("%w: a single key of the log takes more than a table of keys, %s (raise {Memory})", fault.ErrMemory, show.Size(int64(x.table.bytes())))
		}
		if err := x.reader.each(ctx, ids, x.ids); err != nil {
			return err
		}
		rest[0].free()
		rest, from = later, later[0]
	}
	return nil
}

// ids looks up IDs in the table, and writes which pieces need them.
func (x *exchanger) ids(b *entryBatch) error {
	var matched, again int64
	defer func() {
		x.s.IDsMatched.Add(matched)
		x.s.KeysMatched.Add(matched - again)
	}()
	for lo := 0; lo < len(b.pairs); lo += probedAtOnce {
		hi := min(lo+probedAtOnce, len(b.pairs))
		x.table.warm(b, lo, hi)
		for i := lo; i < hi; i++ {
			slot, _ := x.table.find(b, i)
			if slot.info&slotUsed == 0 {
				continue
			}
			matched++
			if slot.info&slotSeen != 0 {
				again++
				if x.s.rows == nil && !x.s.Repeats {
					continue // the pieces already have the key
				}
			}
			slot.info |= slotSeen
			if err := x.emit(slot, b, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// emit writes that the pieces of a key need an ID.
func (x *exchanger) emit(slot *keySlot, b *entryBatch, i int) error {
	if x.s.rows == nil {
		return x.table.tags(slot, func(piece, below int) error {
			x.needs.add(piece, below)
			return x.out.put(piece, b, i, uint64(below+1))
		})
	}
	to, at := x.s.rows.want(b.tag(i))
	return x.table.tags(slot, func(piece, below int) error {
		x.needs.add(piece, below)
		return x.out.putInt(to, at, 0, uint64(piece))
	})
}

// Bytes that an ID takes in a table, besides its key, if that is not an integer,
// and its row.
const (
	sideKeyBytes = 24
	sideRowBytes = 64
)

// chooseRanges sets the ranges so that a table of a range's IDs takes at most the
// memory that is left, with some spare.
func (s *Shuffle) chooseRanges() {
	perID := float64(sideKeyBytes)
	var entries, keyBytes int64
	for _, b := range s.perPiece {
		entries += b.count.Load()
		keyBytes += b.bytes.Load()
	}
	if s.rows != nil {
		perID = sideRowBytes
		entries, keyBytes = s.rows.rows, s.rows.bytes
	}
	if !s.Integers || s.rows != nil {
		perID += 1.5 * float64(keyBytes) / float64(max(entries, 1))
	}
	if !s.Integers {
		perID += sideRowBytes
	}
	most := float64(s.left()) * 0.8 / perID
	if s.Account.Limit() == 0 {
		most = 1 << 31
	}
	s.pieceRanges = s.choose(max(int64(most), 1))
	for _, run := range s.pieceRanges {
		if len(s.GroupRows) == 0 {
			break
		}
		s.Ranges = append(s.Ranges, Range{s.starts[run.Lo], s.starts[run.Hi]})
	}
}
