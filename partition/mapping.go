package partition

import (
	"errors"
	"os"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// mostMapped is the maximum number of files that are mapped at the same time. Each
// needs a descriptor.
const mostMapped = 64

// mapFew is mapPages for the Parquet files of the pieces, up to mostMapped files.
func mapFew(pieces []Piece) (unmap func() error) {
	var ends []func() error
	most := min(mostMapped, descriptors()/4)
	seen := map[*File]bool{}
	for _, p := range pieces {
		if f := p.File; f.parquet() != nil && !seen[f] && len(seen) < most {
			seen[f] = true
			ends = append(ends, f.mapPages())
		}
	}
	return func() (err error) {
		for _, end := range ends {
			err = errors.Join(err, end())
		}
		return err
	}
}

// mapPages maps a Parquet file into memory, if its source supports that, so that
// pages are read in place instead of being copied. Pages are released after
// reading, so little of the file is resident at a time. unmap removes the mapping;
// its error may say that the file changed. The file must not be in use during
// either call.
func (f *File) mapPages() (unmap func() error) {
	nothing := func() error { return nil }
	m, ok := f.src.(storage.Mapper)
	if !ok {
		return nothing
	}
	b, end, err := m.Map()
	if err != nil {
		return nothing // it can still be read
	}
	page := int64(os.Getpagesize())
	file := f.parquet().File()
	file.Map(&parquet.Mapping{
		Bytes: b,
		Read:  func(n int64) { f.bytes.Add(n) },
		Passed: func(lo, hi int64) {
			if lo, hi = (lo+page-1)/page*page, hi/page*page; lo < hi {
				forget(b[lo:hi])
			}
		},
	})
	return func() error {
		file.Map(nil)
		return end()
	}
}
