package rowfilter

import (
	"context"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/rows"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// sampler finds the rows whose key is in the sample of a file: its hash is in the first part of all.
// So a key is in each larger sample, too.
type sampler struct {
	file   *source.File
	of     *source.Sample
	read   []int         // top-level columns with the key
	enc    *keys.Encoder // of records of these columns; nil before the first one
	batch  keys.Batch
	hashes []uint64
}

// sampleHash has a seed that no filter has, so that a sample of the keys that a filter lets through has
// its share of false positives. Samples of later versions are the same.
var sampleHash = bloom.Hash{ID: bloom.XXH3, Seed: 0x73616d706c65}

// newSampler returns the sampler of a file; nil: it has the rows of all keys.
func newSampler(f *source.File) *sampler {
	of, schema := f.Sample(), f.Schema()
	if of == nil {
		return nil
	}
	if p := f.Parquet(); p != nil {
		schema = p.KeySchema()
	}
	enc, _ := keys.NewEncoder(schema, of.Columns, of.Options) // a column that is missing is an error of rows
	return &sampler{file: f, of: of, read: enc.Columns()}
}

// rows returns the rows of a record of the columns read whose key is in the sample, until the next call;
// also those whose key matches nothing, which may be an error of IDs.
func (s *sampler) rows(rec arrow.Record) (_ []uint32, err error) {
	if s.enc == nil {
		if s.enc, err = keys.NewEncoder(rec.Schema(), s.of.Columns, s.of.Options); err != nil {
			return nil, s.file.Failed(err)
		}
	}
	if err := s.enc.EncodeKeys(s.file.Name(), rec, &s.batch); err != nil {
		return nil, err
	}
	s.hashes = s.batch.Hash(sampleHash, s.hashes)
	n := 0
	for i, h := range s.hashes {
		if float64(h>>11) < s.of.Share*(1<<53) {
			s.batch.Rows[n] = s.batch.Rows[i]
			n++
		}
	}
	if void := s.batch.Void(); len(void) > 0 {
		return rows.Merged(nil, s.batch.Rows[:n], void), nil
	}
	return s.batch.Rows[:n], nil
}

// sampled reduces maybe to rows whose key is in the sample.
func (w *Filter) sampled(ctx context.Context, group int) error {
	n, first := 0, 0
	for rec, err := range w.file.Parquet().ReadKeys(parquet.WithTurn(ctx, nil), group, w.sample.read, w.maybe) {
		if err != nil {
			return err
		}
		found, err := w.sample.rows(rec)
		if err != nil {
			return source.InGroup(err, w.file, group)
		}
		for _, row := range found {
			w.maybe[n] = w.maybe[first+int(row)]
			n++
		}
		first += int(rec.NumRows())
	}
	w.maybe = w.maybe[:n]
	return nil
}

// sampled reduces rows, of a record, to those whose key is in the sample.
func (w *Records) sampled(rec arrow.Record) error {
	own := array.NewRecord(source.Project(rec.Schema(), w.sampleAt), each.Slice(w.sampleAt, rec.Column), rec.NumRows())
	defer own.Release()
	kept, err := w.sample.rows(own)
	w.rows = slices.DeleteFunc(w.rows, func(row int) bool {
		_, found := slices.BinarySearch(kept, uint32(row))
		return !found
	})
	return err
}
