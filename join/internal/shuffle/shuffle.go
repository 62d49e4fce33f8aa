package shuffle

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/spill"
	"github.com/bloomjoin/bloomjoin/join/internal/budget"
	"github.com/bloomjoin/bloomjoin/key"
)

// A shuffle is a join of IDs that exceed the memory, even those that some log
// row may have. Of the log nothing goes to disk but keys:
//
//	the log's keys ── logWriter ──► (key, stretch) by buckets of the key's hash
//	IDs ── idWriter ──► (key, row) by the same buckets, and rows in their order
//	bucket by bucket: exchange ──► what IDs each stretch of the log needs
//	range by range: source.fill ──► the ID side for a run of stretches
//
// A stretch is a run of units, a unit is a row group of the log. How many IDs
// each run of stretches needs is known exactly after the exchange, so that
// ranges, runs whose IDs fit into memory, are chosen then. Only a single stretch
// may need more; its IDs are taken in blocks.
type Shuffle struct {
	Options
	file    *spill.File
	share   *budget.Share
	mu      sync.Mutex
	shares  []*budget.Share // all that were given out
	room    int64           // bytes that the account had when the shuffle began
	pieceOf []uint16        // by unit: its stretch
	starts  []int           // by stretch: its first unit; and the number of units
	mask    uint64          // of hashes: all bits, but in tests
	size    int             // bytes of a bucket's buffer
	logKeys []*entryStream
	idKeys  []*entryStream
	rows    *rowSpill // of joins that want rows

	// From the exchange:
	needs       *needs
	pieceRanges []Range        // of stretches
	Ranges      []Range        // the same, of units
	perPiece    []*entryStream // of joins that want no rows: keys that each needs
	perRange    []*spill.Stream
	IDsMatched  atomic.Int64 // ID rows whose key a log row has
}

// shuffleOptions say what a shuffle is to do.
type Options struct {
	Account   *budget.Account
	Dir       string
	Integers  bool          // the key is one column of integers
	Encoder   *key.Encoder  // of the schema of the ID rows; nil: rows are not wanted
	Schema    *arrow.Schema // of the ID rows
	Held      []int         // columns of them that the sides hold; nil: all
	Repeats   bool          // how many IDs have a key counts, in joins that want no rows
	GroupRows []int64       // rows of each unit; fewer than 0: not known
	Matched   bool          // which ID rows the log has is wanted, in joins that want rows
	Threads   int
	Mem       memory.Allocator
}

// waitsOnDisk is what errors of the file say.
const waitsOnDisk fault.Text = "keys and rows that wait on disk (raise {Memory}, or name a directory with room by {TempDir})"

// Sizes that a shuffle's parts have at the most.
const (
	mostPieces  = 256
	mostBuckets = 1024
	leastRoom   = 64 << 10
	leastWindow = 1 << 10
	unboundRoom = 1 << 30 // what is used where there is no bound
)

func New(o Options) (*Shuffle, error) {
	s := &Shuffle{Options: o, mask: ^uint64(0)}
	s.Threads = max(s.Threads, 1)
	s.share = s.newShare("keys and rows on their way to disk")
	s.file = spill.New(o.Dir, waitsOnDisk)
	s.room = s.left()
	if s.room < leastRoom {
		return nil, s.share.Take(leastRoom)
	}
	s.file.Window = int(min(max(s.room/64, leastWindow), spill.Window))
	s.divideLog()
	s.divideKeys()
	if o.Encoder != nil {
		s.rows = newRowSpill(s)
	}
	return s, nil
}

// newShare returns a share that ends with the shuffle, if not before.
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

// divideUnits makes stretches of about equal numbers of rows.
func (s *Shuffle) divideLog() {
	units := len(s.GroupRows)
	n := int(math.Sqrt(float64(s.room) / float64(64*s.Threads))) // what is counted of them takes a sixteenth
	n = max(min(n, units, mostPieces), 1)
	var total, at float64
	for _, r := range s.GroupRows {
		total += float64(max(r, 0)) + 1
	}
	s.pieceOf = make([]uint16, units)
	tag := -1
	for u, r := range s.GroupRows {
		// The last units have a stretch each if there are no more than that.
		want := min(int(at/total*float64(n)), n-1)
		if tag < 0 || tag < n-1 && (want > tag || units-u <= n-1-tag) {
			tag++
			s.starts = append(s.starts, u)
		}
		s.pieceOf[u] = uint16(tag)
		at += float64(max(r, 0)) + 1
	}
	if units == 0 {
		s.starts = []int{0}
	}
	s.starts = append(s.starts, units)
}

func (s *Shuffle) pieces() int { return len(s.starts) - 1 }

// divideKeys chooses the number of buckets: so many that the table of one fits
// into memory, and better into the processor's cache, as far as the buffers for
// them take no more than their part.
func (s *Shuffle) divideKeys() {
	part := min(s.room/4, 64<<20) / int64(s.Threads)
	var rows int64
	for _, r := range s.GroupRows {
		if r < 0 {
			rows = math.MaxInt32 // many
		}
		rows += r
	}
	table := min(s.room/int64(4*s.Threads), 2<<20)
	n := int64(1)
	for n < mostBuckets && n*table < rows*int64(slotBytes+nodeBytes) && 2*n*2*leastBuffer < part {
		n *= 2
	}
	s.size = int(max(min(part/n, s.room/int64(64*s.Threads), mostBuffer), leastBuffer))
	s.logKeys, s.idKeys = newEntryStreams(s.file, int(n)), newEntryStreams(s.file, int(n))
}

// bucket returns the bucket of a key's hash.
func (s *Shuffle) bucket(hash uint64) int { return bucketOf(hash&s.mask, len(s.logKeys)) }

// bucketOf returns which of n buckets, a power of two, a hash belongs to. The
// filters have used the high bits; these are others, mixed.
func bucketOf(hash uint64, n int) int {
	return int((hash * 0x9e3779b97f4a7c15) >> 1 >> (63 - bits.TrailingZeros(uint(n))))
}

// Written returns how many bytes went to disk, and disk the most that it held
// at one time.
func (s *Shuffle) Written() int64 { return s.file.Written() }
func (s *Shuffle) Disk() int64    { return s.file.Disk() }

// Close gives back the disk and the memory.
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
	ints   []spill.Pair // the last entry that was written of the keys of each place
	others []lastKey
	key    []byte
	share  *budget.Share
}

// lastKey is where a key stands in a writer's buffer.
type lastKey struct {
	hash, tag uint64 // 0: none yet
	flush     uint32
	at, size  int
}

// repeatSlots is how many keys a logWriter knows again: those that repeat
// within a stretch need to be written once.
const (
	repeatSlots = 1 << 13
	lastBytes   = 40
)

// logWriter returns a writer for one goroutine, to be closed. The error wraps
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

// Add writes the keys of a batch at the positions in hits, which stand in a
// unit of the log.
func (l *LogWriter) Add(batch *key.Batch, hits []uint32, unit int) error {
	if len(hits) == 0 {
		return nil
	}
	tag := uint64(l.s.pieceOf[unit])
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
func hashesOf(dst []uint64, batch *key.Batch, hits []uint32) []uint64 {
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

// addInts is add of integers.
func (l *LogWriter) addInts(batch *key.Batch, hits []uint32, tag uint64) error {
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

// Close writes what waits in buffers, and gives them back.
func (l *LogWriter) Close() error {
	err := l.w.close()
	l.share.GiveAll()
	l.ints, l.others = nil, nil
	return err
}

// negative returns 1 for integers below zero.
func negative(batch *key.Batch, i uint32) uint64 {
	if batch.Negative(int(i)) {
		return 1
	}
	return 0
}

// idWriter writes IDs to disk. One goroutine uses it.
type IDWriter struct {
	s      *Shuffle
	w      *entryWriter
	hashes []uint64
	key    []byte
	share  *budget.Share
}

// idWriter returns a writer for one goroutine, to be closed. If rows are
// wanted, there is one. The error wraps [fault.ErrMemory].
func (s *Shuffle) NewIDWriter() (*IDWriter, error) {
	w := &IDWriter{s: s, share: s.newShare("IDs on their way to disk")}
	var err error
	w.w, err = newEntryWriter(s.idKeys, s.Integers, s.size, w.share)
	return w, err
}

// Add writes the IDs of a batch at the positions in keep, ascending. Where rows
// are wanted, rec has them, whose first one has number firstRow among all ID
// rows; numbers ascend.
func (w *IDWriter) Add(rec arrow.Record, batch *key.Batch, keep []uint32, firstRow int64) error {
	if len(keep) == 0 {
		return nil
	}
	for some := range slices.Chunk(keep, hashedAtOnce) {
		w.hashes = hashesOf(w.hashes, batch, some)
		if err := w.addKeys(batch, some, firstRow); err != nil {
			return err
		}
	}
	if w.s.rows != nil {
		return w.s.rows.add(rec, batch, keep, firstRow)
	}
	return nil
}

// addKeys writes the keys, tagged with their row's number if rows are wanted.
func (w *IDWriter) addKeys(batch *key.Batch, keep []uint32, firstRow int64) error {
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

// Close writes what waits in buffers, and gives them back.
func (w *IDWriter) Close() error {
	err := w.w.close()
	w.share.GiveAll()
	if w.s.rows != nil {
		w.s.rows.done()
	}
	return err
}

// unitRange is a run of units: lo to hi, hi exclusive.
type Range struct{ Lo, Hi int }

// choose divides the stretches into ranges, each with as many stretches as have
// IDs that fit: no more than most of them.
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

// needs counts the IDs that runs of stretches need: for each ID and each stretch
// that needs it, whether, and which, the last stretch before was that does.
type needs struct {
	counts []int64 // by stretch, and by the one before it, or none, from 0
}

func newNeeds(stretches int) *needs {
	return &needs{counts: make([]int64, (stretches+1)*stretches/2)}
}

func (n *needs) bytes() int64 { return int64(8 * len(n.counts)) }

// add counts an ID that a stretch needs, and that below, or -1, needs before it.
func (n *needs) add(stretch, below int) { n.counts[stretch*(stretch+1)/2+below+1]++ }

// more returns how many IDs a stretch needs that none from lo on needs before.
func (n *needs) more(stretch, lo int) (sum int64) {
	for _, c := range n.counts[stretch*(stretch+1)/2:][:lo+1] {
		sum += c
	}
	return sum
}

func (n *needs) merge(o *needs) {
	for i, c := range o.counts {
		n.counts[i] += c
	}
}
