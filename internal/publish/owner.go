package publish

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/storage"
)

var (
	// ErrExists means that an output of another run is in the place of this one.
	ErrExists = cause.Mark(cause.Exists, fmt.Errorf("the output exists%w", quiet.Error{Err: fs.ErrExist}))
	// ErrDone means that the same run has finished before and its output is whole.
	ErrDone = errors.New("already done")
)

// Owner is the worker of a run that writes an output.
type Owner struct {
	Store storage.Storage
	// Run is the digest of the run without the shard; for a directory, of its recipe. Zero:
	// the run cannot be told from others, so no existing output counts as its own.
	Run   [32]byte
	InDir bool // the outputs are files of a directory, whose bytes do not depend on the worker
	Shard uint32
	Of    uint32   // workers that write into the directory; 0 or 1: one
	Hive  []string // columns that come from the inputs' paths, as "dt:date", or "dt:" if the type is not used
	Force bool     // replace what other runs have written
	// Marker returns the mark of the run that wrote a file, see [Owner.Mark]. It is empty for
	// files that are not outputs. table is false if the file cannot be read as a table. The
	// only errors are an ended context and storage that cannot be read for now.
	Marker func(ctx context.Context, name string) (marker string, table bool, err error)
}

// Known reports whether the run can be distinguished from others.
func (o *Owner) Known() bool { return o.Run != [32]byte{} }

// digest is the run's digest as manifests have it.
func (o *Owner) digest() string { return hex.EncodeToString(o.Run[:]) }

// Mark returns the text that marks the files of this run and worker, or of this recipe.
func (o *Owner) Mark() string {
	if o.Of > 1 && !o.InDir {
		return fmt.Sprintf("%s %d/%d", o.digest(), o.Shard, o.Of)
	}
	return o.digest()
}

// Compare looks at an existing file. It returns nil if there is none, ErrDone if
// this worker of this run has written it, and an error that wraps ErrExists if
// not.
func (o *Owner) Compare(ctx context.Context, name string) error {
	src, err := o.Store.Open(ctx, storage.Object{Name: name})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := src.Close(); err != nil {
		return err
	}
	marker, _, err := o.Marker(ctx, name)
	if err != nil {
		return err
	}
	if o.Known() && marker == o.Mark() {
		return ErrDone
	}
	if o.Known() && o.Of > 1 && strings.HasPrefix(marker, o.digest()+" ") {
		return faults.Errorf("%s: %w, with the rows of another shard (name a file for each shard, or a directory/ for all)", name, ErrExists)
	}
	return faults.Errorf("%s: %w, but does not come from these inputs and options ({Force} replaces it)", name, ErrExists)
}

// Commit makes a file visible, or drops it. If another file has appeared
// meanwhile, it is replaced if replace is true; otherwise Commit succeeds if the same run and
// worker wrote that file.
func (o *Owner) Commit(ctx context.Context, name string, file storage.Writer, replace bool) (err error) {
	defer faults.Join(&err, file.Abort)
	if err = file.Commit(replace); errors.Is(err, fs.ErrExist) {
		switch rival := o.Compare(ctx, name); {
		case errors.Is(rival, ErrDone):
			return nil
		case rival != nil:
			return rival
		}
	}
	return err
}

// CheckTypes returns an error that wraps ErrExists if the existing output has another type
// for a column taken from the inputs' paths. was is the Hive of the run that wrote it.
func (o *Owner) CheckTypes(name string, was []string) error {
	for _, now := range o.Hive {
		at := strings.LastIndexByte(now, ':')
		for _, before := range was {
			if i := strings.LastIndexByte(before, ':'); i < 0 || before[:i] != now[:at] || before == now || now[at:] == ":" {
				continue
			}
			e := faults.Of(cause.Schemas, faults.Mismatch(fault.At{File: name, Column: now[:at]}, "type of name=value directories", before[at+1:]+", with which the output was written", now[at+1:])).
				WithHint("give {HiveTypes %s}, or write elsewhere", before)
			e.Err = ErrExists
			return e
		}
	}
	return nil
}
