package inputs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/listing"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/internal/where"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Open opens the files of pieces of the list, which must be in ascending order. A file that has
// changed since it was listed is an error that wraps [storage.ErrChanged]. Options that select
// files or concern columns of paths must be empty: the list has them. The caller closes the
// files; see [source.Close].
func (in *List) Open(ctx context.Context, pieces []Piece, opts source.Opening) (files []*source.File, of []source.Piece, err error) {
	if err := opts.Fill(); err != nil {
		return nil, nil, err
	}
	source.NeedContext(ctx)
	for i, p := range pieces {
		if n := len(p.Input.Groups); p.Lo < 0 || p.Lo > p.Hi || p.Hi > n {
			return nil, nil, fmt.Errorf("%s: piece %d of %d: row groups from %d up to %d: want a range within 0 to %d", p.Input.Name, i+1, len(pieces), p.Lo, p.Hi, n)
		}
	}
	if err := notInTables(ctx, opts.Store, pieces); err != nil {
		return nil, nil, err
	}
	if err := in.permit(ctx, opts.Store); err != nil {
		return nil, nil, err
	}
	opts.Layout = in.layout()
	bound := opts.OfPartitions()
	files = make([]*source.File, len(pieces))
	var work errgroup.Group // without its own context: files depend on the one they were opened with
	if len(pieces) > 0 {
		work.SetLimit(objects.Concurrency(opts.Store, pieces[0].Input.Name))
	}
	for i := range pieces {
		work.Go(func() (err error) {
			if err := stopped.Err(ctx); err != nil {
				return err
			}
			files[i], err = in.open(ctx, &pieces[i].Input, opts, bound)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		for _, f := range files {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
		return nil, nil, err
	}
	for i, p := range pieces {
		of = append(of, source.Piece{File: files[i], Lo: p.Lo, Hi: p.Hi})
	}
	return files, of, nil
}

// notInTables refuses files that belong to a table: it may be younger than the list.
func notInTables(ctx context.Context, src storage.Source, pieces []Piece) error {
	ctx, last := hive.Looking(ctx, false), "none"
	for _, p := range pieces {
		if p.Input.Table > 0 {
			continue
		}
		dir, _, _ := hive.Cut(path.Dir(filepath.ToSlash(p.Input.Name)) + "/")
		if dir == last {
			continue
		}
		last = dir
		if err := listing.NotInTable(ctx, src, p.Input.Name); errors.Is(err, fault.ErrUnsupported) {
			return err
		}
	}
	return nil
}

// open opens one file.
func (in *List) open(ctx context.Context, of *Input, opts source.Opening, bound *where.Bound) (*source.File, error) {
	f, err := in.bytes(ctx, of, &opts)
	if err != nil {
		return nil, err
	}
	if err := f.Begin(ctx, partsOfValues(of.Values), opts); err != nil {
		if errors.Is(err, storage.ErrChanged) {
			err = in.changed(of, "it was removed or written again", nil)
		}
		return nil, errors.Join(err, f.Reader().Close())
	}
	err = in.sameContent(f, of)
	if err == nil && bound != nil {
		err = f.CheckStored(opts.Layout, bound, opts.IgnoreCase)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.KnownAs(of.Print)
	return f, f.Rest()
}

// bytes opens the source of a file, whose table is not read yet.
func (in *List) bytes(ctx context.Context, of *Input, opts *source.Opening) (*source.File, error) {
	e := storage.Object{Name: of.Name, Rel: of.Rel}
	if of.stored() && of.Size > 0 { // so that it is opened without a request; what is empty is never asked for
		e.Size, e.ModTime, e.Identity = of.Size, of.ModTime, of.Identity
	}
	src, err := opts.Store.Open(ctx, e)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, in.changed(of, "it is there no longer", err)
	}
	if err != nil {
		return nil, err
	}
	f := source.NewFile(src, e, opts)
	if of.Table > 0 {
		f.InTable(in.file().ofTable(of))
	}
	f.Listed(of.Format, source.Origin{Root: of.FoundIn(), Found: of.Root != nil, RootRel: of.RootRel})
	if err := in.sameObject(f, of); err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return f, nil
}

// Differ returns why the files of some inputs are no longer those that were listed; nil: size and
// fingerprint are the same. If timed is set, files above 1 MiB must have the listed time, too:
// their fingerprints do not cover all bytes. Objects of stores are not opened, their identity
// decides.
func (in *List) Differ(ctx context.Context, some []Input, opts source.Opening, timed bool) (why []error, err error) {
	if err := opts.Fill(); err != nil || len(some) == 0 {
		return nil, err
	}
	if err := in.permit(ctx, opts.Store); err != nil {
		return nil, err
	}
	opts.Layout = in.layout()
	why = make([]error, len(some))
	var work errgroup.Group
	work.SetLimit(max(objects.Concurrency(opts.Store, some[0].Name), runtime.GOMAXPROCS(0)))
	for i := range some {
		work.Go(func() error {
			why[i] = in.differs(ctx, &some[i], opts, timed)
			return stopped.Err(ctx)
		})
	}
	return why, work.Wait()
}

// permit makes a store read the files of tables with what catalogs grant.
func (in *List) permit(ctx context.Context, src storage.Source) (err error) {
	for _, t := range in.file().tables {
		err = errors.Join(err, t.Permit(ctx, src))
	}
	return err
}

// stored reports whether the input is in an object store.
func (in *Input) stored() bool {
	_, local, _ := address.FilePath(in.Name)
	return address.IsURL(in.Name) && !local
}

// differs is Differ of one file.
func (in *List) differs(ctx context.Context, of *Input, opts source.Opening, timed bool) error {
	if of.stored() {
		got, err := opts.Store.Stat(ctx, of.Name)
		if err == nil && (got.Size != of.Size || of.Identity == "" || got.Identity != of.Identity) {
			err = in.changed(of, "it was written again", nil)
		}
		return err
	}
	if of.Size > source.WholeBelow {
		f, err := in.open(ctx, of, opts, nil)
		if err != nil {
			return err
		}
		if timed && f.Reader().Object().Identity != of.Identity {
			err = in.changed(of, "it was written again", nil)
		}
		return errors.Join(err, f.Close())
	}
	f, err := in.bytes(ctx, of, &opts)
	if err != nil {
		return err
	}
	content, err := f.Digest()
	if err == nil && !bytes.Equal(content, of.Print) {
		err = in.changed(of, "its content is another one", nil)
	}
	return errors.Join(err, f.Reader().Close())
}

// sameObject compares what is known of a file before it is read.
func (in *List) sameObject(f *source.File, of *Input) error {
	got := f.Reader().Object()
	switch {
	case got.Size != of.Size:
		return in.changed(of, fmt.Sprintf("want %d bytes, got %d", of.Size, got.Size), nil)
	case f.Remote() && of.Identity != "" && got.Identity != "" && got.Identity != of.Identity:
		return in.changed(of, fmt.Sprintf("want the identity %s, got %s", of.Identity, got.Identity), nil)
	}
	return nil
}

// sameContent compares row groups. It also compares the fingerprint, which costs nothing for a
// large Parquet file, unless the identity (or size and time, on the machine that listed the
// file) shows that the file is the same.
func (in *List) sameContent(f *source.File, of *Input) error {
	same := f.NumGroups() == len(of.Groups)
	for g := 0; same && g < f.NumGroups(); g++ {
		same = f.GroupBytes(g) == of.Groups[g][1]
	}
	if !same {
		return in.changed(of, "it has other row groups", nil)
	}
	free := f.Format() == dataset.Parquet && f.Size() > source.WholeBelow && !f.Remote()
	if !free && of.Identity != "" && f.Reader().Object().Identity == of.Identity {
		return nil
	}
	got, err := f.Digest()
	if err != nil {
		return err
	}
	if !bytes.Equal(got, of.Print) {
		return in.changed(of, "its content is another one", nil)
	}
	return nil
}

// ErrOutdated is wrapped by the error of a file that is not the one that a list of inputs
// describes.
var ErrOutdated = cause.New(cause.Listed, "the list of inputs is out of date")

// changed returns the error for a file that is not the one that was listed.
func (in *List) changed(of *Input, how string, err error) error {
	where := ""
	if err == nil {
		err = storage.ErrChanged
	} else {
		if errors.Is(err, fs.ErrNotExist) && !address.IsURL(of.Name) && !filepath.IsAbs(of.Name) {
			where = ", or work in the directory in which they were listed"
		}
		err = fmt.Errorf("%w: %w", storage.ErrChanged, err)
	}
	return faults.Errorf("%s: %w after it was listed in %s: %s (list the inputs again%s)%w", of.Name, err, in.file().name, how, where, quiet.Error{Err: ErrOutdated})
}

// ofTable returns what a table says of an input.
func (l *inputFile) ofTable(of *Input) *source.OfTable {
	t := &source.OfTable{Table: l.tables[of.Table-1], Values: of.Fixed, Deleted: of.Deleted}
	for _, c := range t.Table.Hive {
		for _, v := range of.Values {
			if v.Name == c.Name {
				t.Parts = append(t.Parts, hive.Part{Name: v.Name, Text: v.Text, Null: v.Null})
			}
		}
	}
	return t
}
