// Package shuffle joins keys of a log with IDs that exceed the memory, through disk:
// see [Shuffle]. It knows row groups by number only, and reads no input.
//
// entries.go writes keys to disk and rowspill.go the rows of IDs; exchange.go finds
// the IDs that each piece of the log needs, with the log's keys of one bucket in
// memory (keysets.go); source.go reads the IDs of consecutive pieces back.
package shuffle

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/spill"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// Shuffle joins the log with IDs if even those that have a log row exceed the memory. Only keys
// of the log go to disk:
//
//	the log's keys ── LogWriter ──► (key, piece) in buckets by the key's hash
//	IDs ── IDWriter ──► (key, row) in the same buckets, and rows in order
//	bucket by bucket: Exchange ──► the IDs that each piece of the log needs
//	range by range: Source ──► a table of the IDs of consecutive pieces
//
// A piece is one or several consecutive row groups. The exchange counts exactly how many
// IDs each run of pieces needs. Shuffle then divides the pieces into ranges, runs whose IDs
// fit in memory. If a single piece needs more, its IDs are read in portions.
type Shuffle struct {
	Options
	file    *spill.File
	share   *budget.Share
	mu      sync.Mutex
	shares  []*budget.Share // all that were given out
	room    int64           // bytes that the account had when the shuffle began
	pieceOf []uint16        // by row group
	starts  []int           // by piece: its first row group; and the number of row groups
	mask    uint64          // of hashes: all bits, except in tests
	size    int             // bytes of a bucket's buffer
	logKeys []*entryStream
	idKeys  []*entryStream
	rows    *rowSpill // nil: rows are not kept

	// From the exchange:
	needs       *needs
	pieceRanges []Range        // of pieces
	Ranges      []Range        // the same ranges, of row groups
	perPiece    []*entryStream // if rows are not kept: the keys that each piece needs
	perRange    []*spill.Stream
	IDsMatched  atomic.Int64 // ID rows whose key a log row has
	KeysMatched atomic.Int64 // and their distinct keys
}

// Options configure a shuffle.
type Options struct {
	Account   *budget.Account
	Dir       string
	Integers  bool            // the key is one column of integers
	Columns   *tables.Columns // of the ID rows; nil: rows are not kept
	Repeats   bool            // if rows are not kept: how many IDs have a key matters
	GroupRows []int64         // rows of each row group; below 0: unknown
	Matched   bool            // if rows are kept: which of them the log has is needed
	Threads   int
}

// waitsOnDisk describes the spill file in errors.
const waitsOnDisk fault.Text = "keys and rows that wait on disk (raise {Memory}, or name a directory with room by {TempDir})"

// Limits on parts of a shuffle.
const (
	maxPieces   = 256
	maxBuckets  = 1024
	minRoom     = 64 << 10
	minWindow   = 1 << 10
	unboundRoom = 1 << 30 // used if the account has no bound
)

func New(o Options) (*Shuffle, error) {
	s := &Shuffle{Options: o, mask: ^uint64(0)}
	s.Threads = max(s.Threads, 1)
	s.share = s.newShare("keys and rows on their way to disk")
	s.file = spill.New(o.Dir, waitsOnDisk)
	s.room = s.left()
	if s.room < minRoom {
		return nil, s.share.Take(minRoom)
	}
	s.file.Window = int(min(max(s.room/64, minWindow), spill.Window))
	s.divideLog()
	s.divideKeys()
	if o.Columns != nil {
		s.rows = newRowSpill(s)
	}
	return s, nil
}

// newShare returns a share that ends with the shuffle at the latest.
func (s *Shuffle) newShare(what string) *budget.Share {
	sh := s.Account.Share(what)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shares = append(s.shares, sh)
	return sh
}

// left returns how many bytes the account has left.
func (s *Shuffle) left() int64 {
	if s.Account.Limit() == 0 {
		return unboundRoom
	}
	return s.Account.Limit() - s.Account.InUse()
}

// divideLog divides the log into pieces of about equal numbers of rows.
func (s *Shuffle) divideLog() {
	groups := len(s.GroupRows)
	n := int(math.Sqrt(float64(s.room) / float64(64*s.Threads))) // needs takes a sixteenth of the room
	n = max(min(n, groups, maxPieces), 1)
	var total, at float64
	for _, r := range s.GroupRows {
		total += float64(max(r, 0)) + 1
	}
	s.pieceOf = make([]uint16, groups)
	tag := -1
	for u, r := range s.GroupRows {
		// The last row groups get a piece each if there are no more of them than
		// pieces.
		want := min(int(at/total*float64(n)), n-1)
		if tag < 0 || tag < n-1 && (want > tag || groups-u <= n-1-tag) {
			tag++
			s.starts = append(s.starts, u)
		}
		s.pieceOf[u] = uint16(tag)
		at += float64(max(r, 0)) + 1
	}
	if groups == 0 {
		s.starts = []int{0}
	}
	s.starts = append(s.starts, groups)
}

func (s *Shuffle) pieces() int { return len(s.starts) - 1 }

// divideKeys chooses the number of buckets: enough that the table of one fits in
// memory, and preferably in the processor's cache, while their buffers take no more
// than their part.
func (s *Shuffle) divideKeys() {
	part := min(s.room/4, 64<<20) / int64(s.Threads)
	var rows int64
	for _, r := range s.GroupRows {
		if r < 0 {
			rows = math.MaxInt32 // unknown: assume many
		}
		rows += r
	}
	table := min(s.room/int64(4*s.Threads), 2<<20)
	n := int64(1)
	for n < maxBuckets && n*table < rows*int64(slotBytes+nodeBytes) && 2*n*2*minBuffer < part {
		n *= 2
	}
	s.size = int(max(min(part/n, s.room/int64(64*s.Threads), maxBuffer), minBuffer))
	s.logKeys, s.idKeys = newEntryStreams(s.file, int(n)), newEntryStreams(s.file, int(n))
}

// bucket returns the bucket of a key's hash.
func (s *Shuffle) bucket(hash uint64) int { return bucketOf(hash&s.mask, len(s.logKeys)) }

// bucketOf returns which of n buckets, a power of two, a hash belongs to. Filters
// have used the high bits; these are others, mixed.
func bucketOf(hash uint64, n int) int {
	return int((hash * 0x9e3779b97f4a7c15) >> 1 >> (63 - bits.TrailingZeros(uint(n))))
}

// Written returns how many bytes went to disk.
func (s *Shuffle) Written() int64 { return s.file.Written() }

// Close frees the disk space and the memory.
func (s *Shuffle) Close() error {
	for _, sh := range s.shares {
		sh.GiveAll()
	}
	return s.file.Close()
}

// LogWriter writes the keys of the log to disk. One goroutine uses it.
type LogWriter struct {
	s      *Shuffle
	w      *entryWriter
	hashes []uint64
	ints   []spill.Pair // the last entry written, by a part of the key's hash
	others []lastKey
	key    []byte
	share  *budget.Share
}

// lastKey is the position of a key in a writer's buffer.
type lastKey struct {
	hash, tag uint64 // 0: none yet
	flush     uint32
	at, size  int
}

// repeatSlots is how many recent keys a LogWriter remembers: a key that repeats
// within a piece needs to be written only once.
const (
	repeatSlots = 1 << 13
	lastBytes   = 40
)

// NewLogWriter returns a writer for one goroutine, to be closed. The error wraps
// [fault.ErrMemory].
func (s *Shuffle) NewLogWriter() (*LogWriter, error) {
	l := &LogWriter{s: s, share: s.newShare("keys of the log on their way to disk")}
	var err error
	if l.w, err = newEntryWriter(s.logKeys, s.Integers, s.size, l.share); err != nil {
		return nil, err
	}
	slots, each := repeatSlots, int64(pairBytes)
	if !s.Integers {
		each = lastBytes
	}
	for int64(slots)*each > s.room/int64(64*s.Threads) {
		slots /= 2
	}
	if err := l.share.Take(int64(slots)*each + 8*hashedAtOnce); err != nil {
		l.share.GiveAll()
		return nil, err
	}
	if s.Integers {
		l.ints = make([]spill.Pair, slots)
	} else {
		l.others = make([]lastKey, slots)
	}
	return l, nil
}

// Add writes the keys of a batch at the positions in hits, which are in row group
// number group of the log.
func (l *LogWriter) Add(batch *keys.Batch, hits []uint32, group int) error {
	if len(hits) == 0 {
		return nil
	}
	tag := uint64(l.s.pieceOf[group])
	_, ints := batch.Ints()
	for some := range slices.Chunk(hits, hashedAtOnce) {
		l.hashes = hashesOf(l.hashes, batch, some)
		if ints && l.s.Integers {
			if err := l.addInts(batch, some, tag); err != nil {
				return err
			}
			continue
		}
		for i, h := range some {
			l.key = batch.Append(l.key[:0], int(h))
			if err := l.addKey(l.hashes[i], tag); err != nil {
				return err
			}
		}
	}
	return nil
}

// hashedAtOnce is how many keys of a batch are hashed before they are written.
const hashedAtOnce = 1 << 10

// hashesOf returns the hashes of the keys at the positions in hits, which may
// repeat.
func hashesOf(dst []uint64, batch *keys.Batch, hits []uint32) []uint64 {
	dst = slices.Grow(dst[:0], len(hits))[:len(hits)]
	if values, ok := batch.Ints(); ok {
		for i, h := range hits {
			dst[i] = values[h]
		}
		levelHash(0).Sum64(dst, dst)
		return dst
	}
	for i, h := range hits {
		dst[i] = batch.HashAt(levelHash(0), int(h))
	}
	return dst
}

// addInts is Add of integers.
func (l *LogWriter) addInts(batch *keys.Batch, hits []uint32, tag uint64) error {
	values, _ := batch.Ints()
	for i, h := range hits {
		hash, v := l.hashes[i], values[h]
		entry := spill.Pair{A: v, B: (tag+1)<<1 | negative(batch, h)} // no entry is zero
		last := &l.ints[hash&uint64(len(l.ints)-1)]
		if *last == entry {
			continue
		}
		*last = entry
		if err := l.w.putInt(l.s.bucket(hash), v, entry.B&1, tag); err != nil {
			return err
		}
	}
	return nil
}

// addKey writes l.key.
func (l *LogWriter) addKey(hash, tag uint64) error {
	n := l.s.bucket(hash)
	last := &l.others[hash&uint64(len(l.others)-1)]
	if last.hash == hash && last.tag == tag+1 && last.flush == l.w.flushes[n] && last.size == len(l.key) {
		if was := l.w.raw[n]; last.at+last.size <= len(was) && bytes.Equal(was[last.at:last.at+last.size], l.key) {
			return nil
		}
	}
	at, err := l.w.putKey(n, l.key, tag)
	*last = lastKey{hash: hash, tag: tag + 1, flush: l.w.flushes[n], at: at, size: len(l.key)}
	return err
}

// Close writes the buffers and gives their memory back.
func (l *LogWriter) Close() error {
	err := l.w.close()
	l.share.GiveAll()
	l.ints, l.others = nil, nil
	return err
}

// negative returns 1 for a negative integer.
func negative(batch *keys.Batch, i uint32) uint64 {
	if batch.Negative(int(i)) {
		return 1
	}
	return 0
}

// IDWriter writes IDs to disk. One goroutine uses it.
type IDWriter struct {
	s      *Shuffle
	w      *entryWriter
	hashes []uint64
	key    []byte
	share  *budget.Share
}

// NewIDWriter returns a writer for one goroutine, to be closed. If rows are kept,
// there must be only one. The error wraps [fault.ErrMemory].
func (s *Shuffle) NewIDWriter() (*IDWriter, error) {
	w := &IDWriter{s: s, share: s.newShare("IDs on their way to disk")}
	var err error
	w.w, err = newEntryWriter(s.idKeys, s.Integers, s.size, w.share)
	return w, err
}

// AddKeys writes the keys of a batch of IDs at the ascending positions in keep, if rows are not
// kept.
func (w *IDWriter) AddKeys(batch *keys.Batch, keep []uint32) error { return w.add(batch, keep, 0) }

// AddRows writes the rows of a batch of IDs whose keys are at the ascending positions in keep. The
// first row of the batch has number firstRow among all ID rows; numbers ascend from call to call.
func (w *IDWriter) AddRows(b *tables.Batch, keep []uint32, firstRow int64) error {
	if err := w.add(b.Keys, keep, firstRow); err != nil {
		return err
	}
	return w.s.rows.add(b, keep, firstRow)
}

func (w *IDWriter) add(batch *keys.Batch, keep []uint32, firstRow int64) error {
	for some := range slices.Chunk(keep, hashedAtOnce) {
		w.hashes = hashesOf(w.hashes, batch, some)
		if err := w.addKeys(batch, some, firstRow); err != nil {
			return err
		}
	}
	return nil
}

// addKeys writes the keys, tagged with their row's number if rows are kept.
func (w *IDWriter) addKeys(batch *keys.Batch, keep []uint32, firstRow int64) error {
	rows := w.s.rows != nil
	tag := uint64(0)
	values, ints := batch.Ints()
	ints = ints && w.s.Integers
	for i, k := range keep {
		n := w.s.bucket(w.hashes[i])
		if rows {
			tag = uint64(firstRow) + uint64(batch.Rows[k])
		}
		var err error
		if ints {
			err = w.w.putInt(n, values[k], negative(batch, k), tag)
		} else {
			w.key = batch.Append(w.key[:0], int(k))
			_, err = w.w.putKey(n, w.key, tag)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close writes the buffers and gives their memory back.
func (w *IDWriter) Close() error {
	err := w.w.close()
	w.share.GiveAll()
	if w.s.rows != nil {
		w.s.rows.done()
	}
	return err
}

// Range is a range of row groups or pieces, from Lo to Hi, exclusive.
type Range struct{ Lo, Hi int }

// choose divides the pieces into ranges, each of as many pieces as need at most
// most IDs.
func (s *Shuffle) choose(most int64) (runs []Range) {
	for lo := 0; lo < s.pieces(); {
		hi, sum := lo, int64(0)
		for hi < s.pieces() {
			sum += s.needs.more(hi, lo)
			if hi > lo && sum > most {
				break
			}
			hi++
		}
		runs = append(runs, Range{lo, hi})
		lo = hi
	}
	return runs
}

// needs counts the IDs that runs of pieces need. For each ID and each piece that
// needs it, it counts which earlier piece was the last to need it, if any did.
type needs struct {
	counts []int64 // by piece, and by the last earlier one, from 1; 0: none
}

func newNeeds(pieces int) *needs {
	return &needs{counts: make([]int64, (pieces+1)*pieces/2)}
}

func (n *needs) bytes() int64 { return int64(8 * len(n.counts)) }

// add counts an ID that a piece needs, and that piece below, or none if -1, was the
// last before to need.
func (n *needs) add(piece, below int) { n.counts[piece*(piece+1)/2+below+1]++ }

// more returns how many IDs a piece needs that no piece from lo on needs before it.
func (n *needs) more(piece, lo int) (sum int64) {
	for _, c := range n.counts[piece*(piece+1)/2:][:lo+1] {
		sum += c
	}
	return sum
}
