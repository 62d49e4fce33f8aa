package source

import (
	"context"
	"encoding/json"
	"errors"
	"path"

	"github.com/bloomjoin/bloomjoin/storage"
)

// Metadata keys of outputs. They distinguish candidates from results, and let a run
// recognise its own outputs.
const (
	MetaResult = "bloomjoin.result" // ResultCandidates, ResultExact or ResultFiltered
	MetaFilter = "bloomjoin.filter" // digest of the filter, hexadecimal
	MetaRun    = "bloomjoin.run"    // digest of the run, hexadecimal, and the shard; in a directory, of the recipe
	MetaHive   = "bloomjoin.hive"   // types of the log's partition columns, in JSON
)

// Values of MetaResult.
const (
	ResultCandidates = "candidates" // the rows may include false positives
	ResultExact      = "exact"
	ResultFiltered   = "filtered" // all rows that satisfy a condition
)

// MarkerOf returns the digest of the run that has written a file, if it is a table.
func MarkerOf(ctx context.Context, store storage.Source, name string) (marker string, table bool, err error) {
	opts := Opening{OpenOptions: OpenOptions{Store: store}}
	if err := opts.Fill(); err != nil {
		return "", false, err
	}
	object := storage.Object{Name: name, Rel: path.Base(name)}
	f, err := OpenObject(ctx, object, nil, opts)
	for n := 0; n < 100 && errors.Is(err, storage.ErrChanged); n++ { // another attempt at the run has just written it
		f, err = OpenObject(ctx, object, nil, opts)
	}
	switch {
	case errors.Is(err, storage.ErrChanged), errors.Is(err, storage.ErrAgain):
		return "", false, err
	case err != nil:
		return "", false, ctx.Err() // whatever it is, it is not an output
	}
	md := f.Schema().Metadata()
	run, _ := md.GetValue(MetaRun)
	if _, ok := md.GetValue(MetaResult); ok && run == "" {
		run = "unknown"
	}
	return run, true, f.Close()
}

// StoredHive returns the types of the log's partition columns that a file has recorded, as
// far as it can be read.
func StoredHive(ctx context.Context, store storage.Source, name string) (types []string) {
	opts := Opening{OpenOptions: OpenOptions{Store: store}}
	if opts.Fill() != nil {
		return nil
	}
	f, err := OpenObject(ctx, storage.Object{Name: name, Rel: path.Base(name)}, nil, opts)
	if err != nil {
		return nil
	}
	md := f.Schema().Metadata()
	value, _ := md.GetValue(MetaHive)
	if json.Unmarshal([]byte(value), &types) != nil || f.Close() != nil {
		return nil
	}
	return types
}
