package deletes

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Keys has the keys of a set of delete files, or a share of them. It is immutable.
type Keys struct {
	set     *lake.Keys
	columns []keys.Column
	numbers []int64 // sequence numbers, ascending; tables have positions in them, from 1
	share   Share
	room    *parquet.PageBudget
	held    atomic.Int64 // bytes

	expected uint64 // number of keys of which no column is NULL, if no two are equal

	mu      sync.Mutex            // of the rest, while files are read
	byNulls map[uint64]*sameNulls // bit i: column i is NULL
	bounds  *keys.Bounds          // of keys without NULLs; nil: there are none
}

// sameNulls has keys of which the same columns are NULL, by the others. NULL equals NULL here.
type sameNulls struct {
	filter *bloom.Filter // nil: it lets all through
	newest *newest
	when   uint32 // if all columns are NULL: the number of the only key
}

// Share is one of equal shares of all keys, by their hashes.
type Share struct{ Number, Of uint64 }

// Half returns the first half of a share. The second has the next number.
func (s Share) Half() Share { return Share{2 * s.Number, 2 * s.Of} }

// has reports whether keys with a hash are in the share.
func (s Share) has(h uint64) bool {
	at, _ := bits.Mul64(h, s.Of)
	return at == s.Number
}

// ErrFull means that the keys of deleted rows take more memory than there is for them: 1/keyShare of the budget.
var ErrFull = errors.New("keys of deleted rows")

const (
	keyShare    = 8
	filterFPR   = .01
	mostKeys    = 1 << 40
	mostColumns = 32
)

// keySet is a set of a table that is read once.
type keySet struct {
	mu   sync.Mutex
	keys *Keys
	full error // wraps ErrFull
}

// Keys returns the keys of a set of a table, which it reads once. The error wraps [ErrFull] if memory does not hold
// them; a share may fit.
func (r *Reader) Keys(ctx context.Context, src storage.Source, room *parquet.PageBudget, of *lake.Table, set int) (*Keys, error) {
	kept, _ := r.sets.LoadOrStore(set, new(keySet))
	s := kept.(*keySet)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys != nil || s.full != nil {
		return s.keys, s.full
	}
	k, err := ReadKeys(ctx, src, room, of, set, Share{0, 1})
	if errors.Is(err, ErrFull) {
		s.full = err
	}
	s.keys = k
	return k, err
}

// ReadKeys reads a share of the keys of a set. The error wraps [ErrFull] if memory does not hold them.
func ReadKeys(ctx context.Context, src storage.Source, room *parquet.PageBudget, of *lake.Table, set int, share Share) (*Keys, error) {
	k := &Keys{set: &of.Keys[set], share: share, room: room}
	if n := len(k.set.Columns); n == 0 || n > mostColumns || len(k.set.Files) == 0 {
		return nil, faults.Corrupt(fault.At{File: of.Location}, "keys of %d columns in %d delete files", n, len(k.set.Files))
	}
	table, columns, err := of.Only(k.set.Columns)
	if err != nil {
		return nil, err
	}
	k.columns = columns
	rows := int64(0)
	for _, f := range k.set.Files {
		k.numbers = append(k.numbers, f.Seq)
		if rows += f.Rows; f.Rows < 0 || rows > mostKeys {
			return nil, faults.Corrupt(fault.At{File: f.Place}, "a file of %d keys of deleted rows", f.Rows)
		}
	}
	slices.Sort(k.numbers)
	k.numbers = slices.Compact(k.numbers)
	k.expected = uint64(rows)/share.Of + 1
	if err = k.fill(ctx, src, table); err != nil {
		k.Release()
		return nil, err
	}
	return k, nil
}

// fill reads the files of the set, several at once.
func (k *Keys) fill(ctx context.Context, src storage.Source, table *lake.Table) error {
	g := bloom.GeometryFor(filterFPR)
	params := bloom.Params{Geometry: g, Hash: hash, Blocks: g.BlocksFor(k.expected, filterFPR)}
	if err := k.charge(int64(params.Bytes())); err != nil {
		return err
	}
	filter, err := bloom.New(params)
	if err != nil {
		return err
	}
	k.byNulls = map[uint64]*sameNulls{0: {filter: filter}}
	shared := bloom.NewShared(filter, filterBuffer)
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(max(objects.Concurrency(src, k.set.Files[0].Place), runtime.GOMAXPROCS(0)))
	for i := range k.set.Files {
		f := &k.set.Files[i]
		work.Go(func() (err error) {
			defer panics.Recover(fault.At{File: f.Place}, &err)
			if err := ctx.Err(); err != nil {
				return err
			}
			at, _ := slices.BinarySearch(k.numbers, f.Seq)
			l := &keyFile{keys: k, when: uint32(at + 1), filter: shared.Adder(), coder: coder{columns: k.columns, nulls: true}}
			defer l.end()
			return readFile(ctx, src, k.room, f, func(p *parquet.File) (*parquet.View, error) {
				v, err := table.View(p, nil)
				if err == nil && slices.Contains(v.Leaves, -1) {
					err = faults.Corrupt(fault.At{File: p.Name, Column: keys.ColumnsString(k.columns)}, "a file of keys of deleted rows, which lacks a column")
				}
				return v, err
			}, func(p *arrowparquet.Parquet) error { return l.read(ctx, p) })
		})
	}
	return work.Wait()
}

// filterBuffer is the memory of one file's buffer before the filter.
const filterBuffer = 64 << 10

// charge takes memory for the keys.
func (k *Keys) charge(bytes int64) error {
	if err := k.room.Reserve(ErrFull, bytes, keyShare); err != nil {
		return err
	}
	k.held.Add(bytes)
	return nil
}

// Release returns the memory of the keys, which are not used any more.
func (k *Keys) Release() { _ = k.room.Reserve(ErrFull, -k.held.Swap(0), keyShare) }

// with returns the keys of which the given columns are NULL, for files that are being read.
func (k *Keys) with(nulls uint64) *sameNulls {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byNulls[nulls] == nil {
		k.byNulls[nulls] = new(sameNulls)
	}
	return k.byNulls[nulls]
}

// keyFile reads the keys of one delete file.
type keyFile struct {
	keys   *Keys
	when   uint32
	filter *bloom.Adder
	coder  coder
	bounds *keys.Bounds

	hashes, mine []uint64
	parts        [numParts][]entry
}

func (l *keyFile) read(ctx context.Context, p *arrowparquet.Parquet) error {
	for g := range p.NumGroups() {
		for rec, err := range p.ReadKeys(ctx, g, nil, nil) {
			if err == nil {
				err = l.coder.each(rec, l.add)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// end adds what waits.
func (l *keyFile) end() {
	l.filter.Flush()
	l.keys.mu.Lock()
	defer l.keys.mu.Unlock()
	if l.keys.bounds == nil {
		l.keys.bounds = l.bounds
	} else {
		l.keys.bounds.Merge(l.bounds)
	}
}

// add adds keys whose given columns are NULL.
func (l *keyFile) add(nulls uint64, b *keys.Batch, some []uint32) (err error) {
	k := l.keys
	s := k.with(nulls)
	if b == nil {
		k.mu.Lock()
		s.when = max(s.when, l.when)
		k.mu.Unlock()
		return nil
	}
	_, ints := b.Ints()
	k.mu.Lock()
	if s.newest == nil {
		s.newest = newNewest(ints, k.charge)
		if nulls == 0 {
			err = s.newest.expect(k.expected, k.room.Part(2*keyShare, math.MaxInt64))
		}
	}
	k.mu.Unlock()
	if err != nil {
		return err
	}
	if nulls == 0 {
		if l.bounds == nil {
			l.bounds = keys.NewBounds(l.coder.encoders[0].Classes())
		}
		l.bounds.Add(b)
	}
	return l.divide(s, b, some)
}

// divide adds keys to the parts of a table.
func (l *keyFile) divide(s *sameNulls, b *keys.Batch, some []uint32) error {
	ints, _ := b.Ints()
	l.hashes, l.mine = b.Hash(hash, l.hashes), l.mine[:0]
	for i, h := range l.hashes {
		if some != nil && (len(some) == 0 || some[0] != uint32(i)) {
			continue
		}
		if some != nil {
			some = some[1:]
		}
		if l.keys.share.has(h) {
			e := s.newest.entry(ints, l.hashes, uint32(i))
			l.parts[e.hash%numParts] = append(l.parts[e.hash%numParts], e)
			l.mine = append(l.mine, h)
		}
	}
	if s.filter != nil {
		l.filter.Add(l.mine)
	}
	for i, part := range l.parts {
		if len(part) == 0 {
			continue
		}
		if err := s.newest.add(b, part, l.when); err != nil {
			return err
		}
		l.parts[i] = part[:0]
	}
	return nil
}
