package rowfilter

import (
	"context"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// sampler finds the rows whose key is in the sample of a file: its hash is below the share of all
// hashes. So a key is in each sample that is larger, of every file.
type sampler struct {
	file   *source.File
	read   []int // top-level columns with the key
	failed error // the file has no such key

	enc    *keys.Encoder // of records of these columns; nil before the first one
	below  uint64
	batch  keys.Batch
	hashes []uint64
}

// sampleHash has a seed that no filter has, so that a sample of candidates has as many false
// positives as all.
var sampleHash = bloom.Hash{ID: bloom.XXH3, Seed: 0x73616d706c65}

// newSampler returns the sampler of a file; nil: it has the rows of all keys.
func newSampler(f *source.File) *sampler {
	of := f.Sample()
	if of == nil {
		return nil
	}
	s := &sampler{file: f, below: math.MaxUint64}
	if of.Share < 1 {
		s.below = uint64(of.Share * (1 << 64))
	}
	enc, err := keys.NewEncoder(keySchema(f), of.Columns, of.Options)
	if s.read = enc.Columns(); err != nil {
		s.failed = f.Failed(err)
	}
	return s
}

// keySchema returns the schema of records of keys.
func keySchema(f *source.File) *arrow.Schema {
	if p := f.Parquet(); p != nil {
		return p.KeySchema()
	}
	return f.Schema()
}

// rows appends to dst the rows of a record of the columns read whose key is in the sample, plus first.
func (s *sampler) rows(dst []int, rec arrow.Record, first int) (_ []int, err error) {
	if s.enc == nil {
		if s.enc, err = keys.NewEncoder(rec.Schema(), s.file.Sample().Columns, s.file.Sample().Options); err != nil {
			return nil, s.file.Failed(err)
		}
	}
	if err := s.enc.EncodeKeys(s.file.Name(), rec, &s.batch); err != nil {
		return nil, err
	}
	s.hashes = s.batch.Hash(sampleHash, s.hashes)
	for i, h := range s.hashes {
		if h <= s.below {
			dst = append(dst, first+int(s.batch.Rows[i]))
		}
	}
	return dst, nil
}

// sampled reduces maybe to rows whose key is in the sample.
func (w *Filter) sampled(ctx context.Context, group int) (err error) {
	s := w.sample
	if s.failed != nil {
		return s.failed
	}
	var positions []int
	first := 0
	for rec, err := range w.file.Parquet().ReadKeys(parquet.WithTurn(ctx, nil), group, s.read, w.maybe) {
		if err != nil {
			return err
		}
		if positions, err = s.rows(positions, rec, first); err != nil {
			return source.InGroup(err, w.file, group)
		}
		first += int(rec.NumRows())
	}
	for i, at := range positions {
		w.maybe[i] = w.maybe[at]
	}
	w.maybe = w.maybe[:len(positions)]
	return nil
}

// sampled reduces rows, of a record, to those whose key is in the sample.
func (w *Records) sampled(rec arrow.Record) error {
	if w.sample.failed != nil {
		return w.sample.failed
	}
	own := array.NewRecord(source.Project(rec.Schema(), w.sampleAt), each.Slice(w.sampleAt, rec.Column), rec.NumRows())
	defer own.Release()
	kept, err := w.sample.rows(nil, own, 0)
	if err != nil {
		return err
	}
	w.rows = slices.DeleteFunc(w.rows, func(row int) bool {
		_, found := slices.BinarySearch(kept, row)
		return !found
	})
	return nil
}
