package output

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// formats are those that are written.
var formats = []dataset.Format{dataset.Parquet, dataset.ArrowFile, dataset.ArrowStream, dataset.CSV, dataset.TSV, dataset.NDJSON}

// check returns an error if a field of the output has a value that no output can have. It
// opens nothing. Without a context it panics here, where the caller sees who made the call,
// and not on a goroutine later.
func (o *Destination) check(ctx context.Context) error {
	source.NeedContext(ctx)
	switch {
	case o.Name == "":
		return errors.New("Output.Name is empty (name a file, a directory with a slash at its end, or - for a stream on Stdout)")
	case o.Name == "-" && o.Stdout == nil:
		return errors.New("Output.Stdout is nil, and Output.Name is - (set Stdout, as to os.Stdout, or name a file or a directory)")
	case o.TargetSize < 0:
		return fmt.Errorf("Output.TargetSize: want at least 0 bytes, got %d (0 writes a file for each input)", o.TargetSize)
	case o.Memory < 0:
		return fmt.Errorf("Output.Memory: want at least 0 bytes, got %d (0 means no limit)", o.Memory)
	}
	if o.Format != "" && !slices.Contains(formats, o.Format) {
		return faults.Unsupported(fault.At{File: o.Name}, "writing %s files", o.Format).
			WithHint("set Output.Format to Parquet, ArrowFile, CSV, TSV or NDJSON, or leave it empty")
	}
	if !slices.Contains([]string{"", source.ResultCandidates, source.ResultExact, source.ResultFiltered}, o.Result) {
		return fmt.Errorf("Output.Result %q: want ResultCandidates, ResultExact or ResultFiltered", o.Result)
	}
	if !slices.Contains([]publish.IDsChange{"", publish.IDsRerun, publish.IDsKeep}, o.IDsChanged) {
		return fmt.Errorf("Output.IDsChanged %q: want IDsRerun or IDsKeep, or leave it empty", o.IDsChanged)
	}
	if err := source.CheckShard(o.Shard); err != nil {
		return fmt.Errorf("Output.Shard: %w", err)
	}
	return o.Run.check()
}

// checkDir is check for an output that is used as a directory.
func (o *Destination) checkDir(ctx context.Context) error {
	if o.Name == "-" {
		source.NeedContext(ctx)
		return errors.New("Output.Name is -: want a directory (name the one that the workers have written)")
	}
	return o.check(ctx)
}

// checkGiven returns an error if one of the parts cannot be written.
func checkGiven(parts []Part) error {
	for i, p := range parts {
		if p.Schema == nil {
			return fmt.Errorf("part %d of %d: its Schema is nil", i+1, len(parts))
		}
		if p.Piece.File == nil {
			continue
		}
		if err := p.Piece.Check(); err != nil {
			return fmt.Errorf("part %d of %d: its Piece: %w", i+1, len(parts), err)
		}
	}
	return nil
}
