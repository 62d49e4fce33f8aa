package output

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/internal/pagecopy"
	"github.com/bloomjoin/bloomjoin/internal/parquet/adapt"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/storage"
)

// A bundle is a sequence of parts that may share files: inputs in one directory with the
// same schema and codec, in input order. Without a TargetSize each part is a bundle of
// its own.
//
// A file begins with the first row group that has rows of an input of which no earlier
// file has any, and is named after that input. It ends before the next such row group
// once it has TargetSize bytes. Since row groups are functions of inputs and options, and
// so are their sizes, files are, too.

// share reports whether two consecutive parts may share files.
func (o Destination) share(a, b Part) bool {
	if o.TargetSize == 0 || a.Piece.File == nil || b.Piece.File == nil || (a.pages == nil) != (b.pages == nil) {
		return false
	}
	if path.Dir(o.fileName(a)) != path.Dir(o.fileName(b)) || !a.Schema.Equal(b.Schema) {
		return false
	}
	codecA, errA := o.compression(a.Piece.File)
	codecB, errB := o.compression(b.Piece.File)
	if errA != nil || errB != nil || codecA != codecB {
		return false
	}
	if a.pages == nil {
		return a.Piece.File.StoredSchema() == b.Piece.File.StoredSchema()
	}
	_, same := adapt.SameSchema(a.pages.Layout.Schema(), b.pages.Layout.Schema())
	return same
}

// bundles returns the number of the bundle of each part.
func (o Destination) bundles(parts []Part) []int {
	of := make([]int, len(parts))
	for i := 1; i < len(parts); i++ {
		a, b := parts[i-1], parts[i]
		same := o.TargetSize > 0
		if a.pages != nil && b.pages != nil {
			same = same && a.pages.Layout == b.pages.Layout
		} else {
			same = same && o.share(a, b)
		}
		if of[i] = of[i-1]; !same {
			of[i]++
		}
	}
	return of
}

// bundler writes rows to the files of a directory.
type bundler struct {
	out    Destination
	files  *publish.Writer
	parts  []Part
	bundle []int // of each part
	last   int   // the last part of which a row was written; -1: none
	begun  int   // bundles before this one have their files, or need none
	past   int   // parts that empty has looked at
	open   *bundleFile
}

// bundleFile is a file that is being written.
type bundleFile struct {
	bundle int
	name   string
	file   storage.Writer
	sum    *xxh3.Hasher
	writer writer
	parts  []int // that have rows in it, ascending
}

// add writes rows and takes ownership of them.
func (b *bundler) add(ctx context.Context, r outRows) error {
	if err := b.place(ctx, r.of()); err != nil {
		r.release()
		return err
	}
	if err := b.open.writer.Write(r); err != nil {
		return fmt.Errorf("writing %s: %w", b.out.path(b.open.name), err)
	}
	return nil
}

// finish completes the last file, and writes those without rows that follow.
func (b *bundler) finish(ctx context.Context) error {
	if err := b.close(ctx); err != nil {
		return err
	}
	return b.empty(ctx, len(b.parts))
}

// place makes the open file the one that rows from some parts go to.
func (b *bundler) place(ctx context.Context, from []pagecopy.PartRows) error {
	first, fresh := from[0].Part, -1
	for _, f := range from {
		if f.Part < b.last || f.Part >= len(b.parts) || b.parts[f.Part].onlySchema() { // rows must never be lost silently
			return fmt.Errorf("%s: rows of part %d of %d came out of order", b.out.Name, f.Part, len(b.parts))
		}
		if fresh < 0 && f.Part > b.last {
			fresh = f.Part
		}
		b.last = f.Part
	}
	if f := b.open; f != nil && (b.bundle[first] != f.bundle || fresh >= 0 && b.out.TargetSize > 0 && f.writer.Size() >= b.out.TargetSize) {
		if err := b.close(ctx); err != nil {
			return err
		}
	}
	if b.open == nil {
		if err := b.empty(ctx, first); err != nil {
			return err
		}
		if err := b.begin(ctx, fresh); err != nil {
			return err
		}
	}
	for _, f := range from {
		if n := len(b.open.parts); n == 0 || b.open.parts[n-1] != f.Part {
			b.open.parts = append(b.open.parts, f.Part)
		}
	}
	return nil
}

// begin begins a file that is named after a part.
func (b *bundler) begin(ctx context.Context, part int) error {
	p := b.parts[part]
	f := &bundleFile{bundle: b.bundle[part], name: b.out.fileName(p), sum: xxh3.New()}
	var err error
	if f.file, err = b.files.Create(ctx, f.name); err != nil {
		return err
	}
	if f.writer, err = b.out.newWriter(io.MultiWriter(f.file, f.sum), p, b.shared(part)); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", b.out.path(f.name), err), f.file.Abort())
	}
	b.open, b.begun = f, f.bundle+1
	return nil
}

// shared reports whether the part is in a bundle with others.
func (b *bundler) shared(part int) bool {
	of := b.bundle[part]
	return part > 0 && b.bundle[part-1] == of || part+1 < len(b.bundle) && b.bundle[part+1] == of
}

// close completes the open file, if there is one.
func (b *bundler) close(ctx context.Context) error {
	f := b.open
	if f == nil {
		return nil
	}
	n, size, err := f.writer.Close()
	if err != nil {
		return fmt.Errorf("writing %s: %w", b.out.path(f.name), err)
	}
	done := publish.File{Name: f.name, Rows: n, Bytes: size, Sum: publish.Sum(f.sum), Values: b.out.valuesIn(f.name)}
	for _, p := range f.parts {
		done.Inputs = append(done.Inputs, b.out.target(b.parts[p]).Input)
	}
	b.open = nil
	return b.files.Add(ctx, f.file, done)
}

// abort drops the open file.
func (b *bundler) abort() error {
	if b.open == nil {
		return nil
	}
	b.open.writer.Abort()
	return b.open.file.Abort()
}

// empty writes a file without rows for each bundle before that of a part, which may be
// len(parts), if none of its parts had a row.
func (b *bundler) empty(ctx context.Context, before int) error {
	if !b.out.WriteEmpty {
		return nil
	}
	for ; b.past < before; b.past++ {
		switch of := b.bundle[b.past]; {
		case before < len(b.parts) && of == b.bundle[before]:
			return nil
		case of < b.begun || b.parts[b.past].onlySchema():
			continue
		}
		if err := b.begin(ctx, b.past); err != nil {
			return err
		}
		b.open.parts = []int{b.past}
		if err := b.close(ctx); err != nil {
			return err
		}
	}
	return nil
}
