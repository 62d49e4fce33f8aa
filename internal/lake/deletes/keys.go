package deletes

import (
	"context"
	"errors"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
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
	most    int64        // what it may take with others: 1/most of the budget
	held    atomic.Int64 // bytes

	expected uint64 // number of keys of which no column is NULL, if no two are equal

	filter *bloom.Filter
	mu     sync.Mutex   // of the rest, while files are read
	newest *newest      // nil: there are no keys but NULL
	bounds *keys.Bounds // nil: they are not known, or keys have NULLs
	null   uint32       // of a key of one column that is NULL; NULL equals NULL here
	nulls  bool         // keys of several columns have NULLs
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

// ShareOfAll says that all keys, with those that are released soon, may take an eighth of the budget.
const ShareOfAll = 8

// ErrFull means that the keys of deleted rows take more memory than there is for them.
var ErrFull = errors.New("keys of deleted rows")

const (
	setShare     = 16 // sets that are held may take 1/16 of the budget, so that there is room for shares of others
	filterFPR    = .01
	mostKeys     = 1 << 40
	mostColumns  = 32
	mostExpected = 1 << 28 // keys for which memory is taken before they are read
	mostAtOnce   = 1 << 30 // bytes of a table before that
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
	k, err := ReadKeys(ctx, src, room, setShare, of, set, Share{0, 1})
	if errors.Is(err, ErrFull) {
		s.full = err
	}
	s.keys = k
	return k, err
}

// ReadKeys reads a share of the keys of a set, which with others may take 1/most of the budget. The error wraps [ErrFull]
// if they would take more.
func ReadKeys(ctx context.Context, src storage.Source, room *parquet.PageBudget, most int64, of *lake.Table, set int, share Share) (*Keys, error) {
	k := &Keys{set: &of.Keys[set], share: share, room: room, most: most}
	switch n := len(k.set.Columns); {
	case n > mostColumns:
		return nil, faults.Unsupported(fault.At{File: of.Location}, "rows that are deleted by the values of %d columns (want at most %d)", n, mostColumns).
			WithHint("compact the table's delete files")
	case n == 0 || len(k.set.Files) == 0:
		return nil, faults.Corrupt(fault.At{File: of.Location}, "keys of %d columns in %d delete files", n, len(k.set.Files))
	}
	table, columns, err := of.Only(k.set.Columns)
	if err != nil {
		return nil, err
	}
	k.columns = columns
	rows, size := int64(0), int64(0)
	for _, f := range k.set.Files {
		k.numbers = append(k.numbers, f.Seq)
		size += max(min(f.Size, mostExpected), 0)
		if rows += f.Rows; f.Rows < 0 || rows > mostKeys {
			return nil, faults.Corrupt(fault.At{File: f.Place}, "a file of %d keys of deleted rows", f.Rows)
		}
	}
	slices.Sort(k.numbers)
	k.numbers = slices.Compact(k.numbers)
	k.expected = uint64(min(rows, 8*size, mostExpected))/share.Of + 1 // no more than files may have, whatever a table says
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
	var err error
	if k.filter, err = bloom.New(params); err != nil {
		return err
	}
	shared := bloom.NewShared(k.filter, filterBuffer)
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
			l := &keyFile{keys: k, when: uint32(at + 1), filter: shared.Adder()}
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
	if err := k.room.Reserve(ErrFull, bytes, k.most); err != nil {
		return err
	}
	k.held.Add(bytes)
	return nil
}

// Release returns the memory of the keys, which are not used any more.
func (k *Keys) Release() { _ = k.room.Reserve(ErrFull, -k.held.Swap(0), k.most) }

// nullsEqual are the options for keys of deleted rows.
var nullsEqual = keys.Options{NullsEqual: true}

// keyFile reads the keys of one delete file.
type keyFile struct {
	keys   *Keys
	when   uint32
	filter *bloom.Adder

	enc    *keys.Encoder // nil before the first record
	batch  keys.Batch
	bounds *keys.Bounds

	hashes, mine []uint64
	parts        [mostParts][]entry
}

func (l *keyFile) read(ctx context.Context, p *arrowparquet.Parquet) error {
	for g := range p.NumGroups() {
		for rec, err := range p.ReadKeys(ctx, g, nil, nil) {
			if err == nil {
				err = l.add(rec)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds the keys of a record.
func (l *keyFile) add(rec arrow.Record) (err error) {
	if l.enc == nil {
		if l.enc, err = keys.NewEncoder(rec.Schema(), l.keys.columns, nullsEqual); err != nil {
			return err
		}
		l.bounds = keys.NewBounds(l.enc.Classes())
	}
	b := &l.batch
	if err = l.enc.Encode(rec, b); err == nil {
		err = l.begin(b)
	}
	if err != nil {
		return err
	}
	if !b.NullParts() {
		l.bounds.Add(b)
	}
	return l.divide(b)
}

// begin notes NULLs, and makes the table.
func (l *keyFile) begin(b *keys.Batch) error {
	k := l.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.nulls = k.nulls || b.NullParts(); b.Nulls() > 0 {
		k.null = max(k.null, l.when)
	}
	if k.newest != nil || len(b.Rows) == 0 {
		return nil
	}
	_, ints := b.Ints()
	k.newest = newNewest(ints, k.expected, k.charge)
	return k.newest.expect(k.expected, k.room.Part(2*k.most, mostAtOnce))
}

// end adds what waits.
func (l *keyFile) end() {
	l.filter.Flush()
	k := l.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bounds == nil {
		k.bounds = l.bounds
	} else {
		k.bounds.Merge(l.bounds)
	}
}

// divide adds keys of the share to the parts of the table.
func (l *keyFile) divide(b *keys.Batch) error {
	ints, _ := b.Ints()
	l.hashes, l.mine = b.Hash(hash, l.hashes), l.mine[:0]
	for i, h := range l.hashes {
		if l.keys.share.has(h) {
			e := l.keys.newest.entry(ints, l.hashes, uint32(i))
			part := l.keys.newest.part(e)
			l.parts[part] = append(l.parts[part], e)
			l.mine = append(l.mine, h)
		}
	}
	l.filter.Add(l.mine)
	for i, part := range l.parts {
		if len(part) == 0 {
			continue
		}
		if err := l.keys.newest.add(b, part, l.when); err != nil {
			return err
		}
		l.parts[i] = part[:0]
	}
	return nil
}
