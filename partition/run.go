package partition

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Run is what an output comes from: what was read, and what was done with it.
// Runs of equal digests write equal outputs, so a run that finds an output of its
// own digest is done. The workers of one run differ in [Output].Shard alone.
//
// The files must stay open while the Run is in use.
type Run struct {
	// Options describe what is done: the command, and the values of all options
	// that the output depends on, such as keys with their casts, columns, the
	// layout and the requested schema, and digests of filters. If there are none,
	// no output is recognised as that of the same run.
	Options []string
	// IDs are inputs other than the log.
	IDs []*File
	// Log has all files of the log that were found, whatever the shard. Their order
	// matters.
	Log []*File
	// Skipped are the files of Log that have no output because they have no key.
	Skipped []*File
}

// outputs returns the files of the log that have an output.
func (r *Run) outputs() (files []*File) {
	skipped := map[*File]bool{}
	for _, f := range r.Skipped {
		skipped[f] = true
	}
	for _, f := range r.Log {
		if !skipped[f] {
			files = append(files, f)
		}
	}
	return files
}

// inputs returns all files.
func (r *Run) inputs() []*File { return slices.Concat(r.IDs, r.Log) }

// Digest identifies the run. It is computed from the options and each file's Rel,
// size and content, see [File.Fingerprint]. It is the same on every machine that
// has the same files, wherever they are mounted and whenever they were written.
// Columns that come from paths belong to it, with their types. known is false if an
// input has no identity, such as standard input.
func (r *Run) Digest() (sum [32]byte, known bool, err error) {
	d := newRunDigest()
	for _, o := range r.Options {
		d.put([]byte(o))
	}
	files := r.inputs()
	var prints errgroup.Group // small files are read completely
	prints.SetLimit(runtime.GOMAXPROCS(0))
	for _, f := range files {
		prints.Go(func() error {
			_, err := f.Fingerprint()
			return err
		})
	}
	if err := prints.Wait(); err != nil {
		return sum, false, err
	}
	for _, f := range files {
		fp, err := f.Fingerprint()
		if err != nil {
			return sum, false, err
		}
		d.input(&Input{Rel: f.Rel, Size: f.Size, Print: fp, Values: f.Partitions()})
	}
	sum, known = d.sum()
	return sum, known, nil
}

// ChangedSince returns an error that wraps ErrExists if an input was written after
// the output, if the storage knows modification times. The digest does not cover
// all bytes of a large Parquet file, so an equal digest alone does not mean that a
// run is done.
func (r *Run) ChangedSince(ctx context.Context, store storage.Source, output string) error {
	out, err := store.Stat(ctx, output)
	if err != nil {
		return err
	}
	for _, f := range r.inputs() {
		if f.src != nil && !out.ModTime.IsZero() && f.src.Object().ModTime.After(out.ModTime) {
			return fault.Errorf("%s: %w, and its input %s was written later ({Force} replaces it)", output, ErrExists, f.Name)
		}
	}
	return nil
}

// Fingerprint identifies the content of the file, without its name. For a Parquet
// file above 1 MiB it is a digest of the footer, which has the position, size and
// statistics of every column chunk. For others it is a digest of all bytes or, over a
// network, of the identity that the storage gives the object and, of Parquet files, the
// footer. It is nil for standard input and records.
func (f *File) Fingerprint() ([]byte, error) {
	if f.src == nil {
		return nil, nil
	}
	return f.print()
}

// wholeBelow is the size up to which all bytes of a Parquet file are digested,
// because small files may well have equal footers.
const wholeBelow = 1 << 20

func (f *File) digest() ([]byte, error) {
	p, ok := f.table.(*arrowparquet.Parquet)
	if ok && f.Size > wholeBelow {
		return p.Fingerprint(), nil
	}
	h := sha256.New()
	if id := f.src.Object().Identity; id != "" && f.remote() {
		if ok {
			h.Write(p.Fingerprint())
		}
		h.Write([]byte(id))
		return h.Sum(nil), nil
	}
	_, err := io.Copy(h, io.NewSectionReader(counted{f.src, f.bytes}, 0, f.Size))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return h.Sum(nil), f.rest()
}
