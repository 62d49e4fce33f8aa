package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow/memory"
	arrow "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	classic "github.com/bits-and-blooms/bloom/v3"
	"github.com/cespare/xxhash/v2"
	"github.com/parquet-go/parquet-go/bloom"
	"golang.org/x/sync/errgroup"
)

// The Go modules whose filters are built, and the rate they are asked for.
const (
	parquetGo     = "github.com/parquet-go/parquet-go"
	arrowGo       = "github.com/apache/arrow-go/v18"
	bitsAndBlooms = "github.com/bits-and-blooms/bloom/v3"
	rate          = 0.01
)

// keys are some keys of a file: integers, or strings that are valid until the next ones
// are read.
type keys struct {
	ints    []int64
	strings []arrow.ByteArray
}

// each calls do with the bytes of each key.
func (k keys) each(do func(key []byte)) {
	var x [8]byte
	for _, v := range k.ints {
		do(littleEndian(&x, v))
	}
	for _, v := range k.strings {
		do(v)
	}
}

// hashes returns XXH64 of each key, which the filters for Parquet files hold.
func (k keys) hashes() []uint64 {
	all := make([]uint64, 0, batchRows)
	k.each(func(key []byte) { all = append(all, xxhash.Sum64(key)) })
	return all
}

// goBloom is a Bloom filter, or a part of one that a goroutine fills.
type goBloom struct {
	add   func(keys)
	has   func(key []byte) bool
	bits  any // what is merged
	merge func(bits any) error
}

// misses returns how many keys are not found.
func (f goBloom) misses(k keys) (n int) {
	k.each(func(key []byte) {
		if !f.has(key) {
			n++
		}
	})
	return n
}

// goBlooms make the parts for n keys.
var goBlooms = map[string]func(n uint64) func() goBloom{
	"parquet-go": newParquetGo, "bits-and-blooms": newBitsAndBlooms, "arrow-go": newArrowGo,
}

func newParquetGo(n uint64) func() goBloom {
	const bitsPerKey = 10 // the documentation's for about 1 %
	return func() goBloom {
		f := make(bloom.SplitBlockFilter, bloom.NumSplitBlocksOf(int64(n), bitsPerKey))
		return goBloom{
			add: func(k keys) { f.InsertBulk(k.hashes()) },
			has: func(key []byte) bool { return f.Check(xxhash.Sum64(key)) }, bits: f,
			merge: func(bits any) error { // it has no union
				for i, block := range bits.(bloom.SplitBlockFilter) {
					for lane := range block {
						f[i][lane] |= block[lane]
					}
				}
				return nil
			},
		}
	}
}

func newBitsAndBlooms(n uint64) func() goBloom {
	return func() goBloom {
		f := classic.NewWithEstimates(uint(n), rate)
		return goBloom{
			add: func(k keys) { k.each(func(key []byte) { f.Add(key) }) },
			has: f.Test, bits: f,
			merge: func(bits any) error { return f.Merge(bits.(*classic.BloomFilter)) },
		}
	}
}

// newArrowGo makes one filter, in which goroutines insert their hashes in turn: its bits
// cannot be reached to be merged.
func newArrowGo(n uint64) func() goBloom {
	const most = 128 << 20 // no filter of it is larger
	var mu sync.Mutex
	f := metadata.NewBloomFilterFromNDVAndFPP(uint32(n), rate, most, memory.DefaultAllocator)
	return func() goBloom {
		return goBloom{
			add: func(k keys) {
				hashes := k.hashes()
				mu.Lock()
				defer mu.Unlock()
				f.InsertBulk(hashes)
			},
			has:   func(key []byte) bool { return f.(metadata.BloomFilter).CheckHash(xxhash.Sum64(key)) },
			merge: func(any) error { return nil },
		}
	}
}

// runFilter builds a Bloom filter from Parquet files as a user of these modules would:
// each goroutine takes row groups and fills a filter, and the filters are merged. It fails
// if a key of the first row group is not found: NAME THREADS FILE|DIRECTORY.
func runFilter(args []string) error {
	threads, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	pieces, rows, err := piecesOf(args[2])
	if err != nil {
		return err
	}
	fresh := goBlooms[args[0]](rows)
	var next, added atomic.Int64
	var group errgroup.Group
	filters := make([]goBloom, threads)
	for i := range filters {
		filters[i] = fresh()
		group.Go(func() error {
			for at := int(next.Add(1)) - 1; at < len(pieces); at = int(next.Add(1)) - 1 {
				if err := pieces[at].read(func(k keys) bool {
					filters[i].add(k)
					added.Add(int64(len(k.ints) + len(k.strings)))
					return true
				}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, f := range filters[1:] {
		if err := filters[0].merge(f.bits); err != nil {
			return err
		}
	}
	if uint64(added.Load()) != rows {
		return fmt.Errorf("%d keys of %d rows", added.Load(), rows)
	}
	var misses int
	err = pieces[0].read(func(k keys) bool {
		misses = filters[0].misses(k)
		return false
	})
	if err == nil && misses > 0 {
		err = fmt.Errorf("%d keys are not found", misses)
	}
	return err
}

// piece is a row group.
type piece struct {
	path  string
	group int
}

// piecesOf returns the row groups of a file, or of the files of a directory.
func piecesOf(root string) (pieces []piece, rows uint64, err error) {
	paths, err := filepath.Glob(filepath.Join(root, "*.parquet"))
	if err != nil {
		return nil, 0, err
	}
	if len(paths) == 0 {
		paths = []string{root}
	}
	for _, path := range paths {
		meta, err := metadataOf(path)
		if err != nil {
			return nil, 0, err
		}
		for i := range meta.RowGroups {
			pieces = append(pieces, piece{path, i})
		}
		rows += uint64(meta.NumRows)
	}
	if rows == 0 {
		return nil, 0, fmt.Errorf("%s: no rows", root)
	}
	return pieces, rows, nil
}

// read reads the first column, until use returns false.
func (p piece) read(use func(keys) bool) (err error) {
	r, err := file.OpenParquetFile(p.path, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	column, err := r.RowGroup(p.group).Column(0)
	if err != nil {
		return err
	}
	levels := make([]int16, batchRows)
	switch c := column.(type) {
	case *file.Int64ColumnChunkReader:
		values := make([]int64, batchRows)
		for c.HasNext() {
			_, n, err := c.ReadBatch(batchRows, values, levels, nil)
			if err != nil || !use(keys{ints: values[:n]}) {
				return err
			}
		}
	case *file.ByteArrayColumnChunkReader:
		values := make([]arrow.ByteArray, batchRows)
		for c.HasNext() {
			_, n, err := c.ReadBatch(batchRows, values, levels, nil)
			if err != nil || !use(keys{strings: values[:n]}) {
				return err
			}
		}
	default:
		return fmt.Errorf("%s: a column of %s", p.path, column.Type())
	}
	return column.Err()
}

// moduleVersion returns the version of a module in this program.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}
