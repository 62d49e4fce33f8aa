package builds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/listing"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Names returns the filter files that the names stand for: each name itself,
// the files that match a pattern, or all files in a directory, as
// package listing lists them. Files found by a pattern or in a directory are
// omitted if skip returns true for them; skip may be nil.
func Names(ctx context.Context, store storage.Source, names []string, skip func(name string) bool) ([]string, error) {
	var out []string
	var errs []error
	for _, name := range names {
		entries, _, err := listing.List(ctx, store, name)
		if err != nil {
			errs = append(errs, err)
		}
		for _, e := range entries {
			if searched := e.Name != name; searched && skip != nil && skip(e.Name) {
				continue
			}
			out = append(out, e.Name)
		}
	}
	return out, several(errs)
}

// part is one of several filters that are combined: a file whose header has
// been read and verified, or a filter in memory. The header of a file is not
// kept: registers and the chunk table of a large filter take a hundred KiB, and
// there may be thousands of parts.
type part struct {
	name   string
	src    storage.Reader // of a file; nil: the filter is in memory
	filter *filters.Filter
	about  filters.Filter // without registers, hashes of exceptions and payload
	bytes  uint64         // of the payload
	digest [32]byte       // from the header of a file; for a filter in memory only if needed
}

func (p *part) facts() *filters.Facts { return p.about.Facts() }

// partsOf returns filters in memory as parts, without digests, and holds them until
// release is called, which must happen after an error, too.
func partsOf(operands []*filters.Filter) (parts []part, release func(), err error) {
	parts, errs := make([]part, len(operands)), make([]error, len(operands))
	var releases []func()
	release = func() {
		for _, r := range releases {
			r()
		}
	}
	for i, f := range operands {
		p := &parts[i]
		p.name = fmt.Sprintf("filter %d", i+1)
		held, err := f.KeepOpen()
		if err != nil {
			errs[i] = fmt.Errorf("%s: %w", p.name, err)
			continue
		}
		releases = append(releases, held)
		if f.Bloom() == nil && f.Exact() == nil {
			errs[i] = fmt.Errorf("%s: %w: the filter has no payload", p.name, filters.ErrInvalid)
			continue
		}
		p.filter, p.about, p.bytes = f, light(f.Header()), f.Bytes()
	}
	return parts, release, several(errs)
}

// opensAtOnce limits how many files are opened concurrently. Each needs a few
// reads, which mostly wait on network storage.
const opensAtOnce = 16

// ofParts returns the result of fn for filter files, if they have not changed
// meanwhile.
func ofParts(ctx context.Context, store storage.Source, names []string, fn func([]part) (*filters.Filter, error)) (f *filters.Filter, err error) {
	parts, err := openParts(ctx, store, names)
	defer func() {
		if e := closeParts(parts); e != nil {
			f, err = nil, errors.Join(err, e)
		}
	}()
	if err != nil {
		return nil, err
	}
	return fn(parts)
}

// openParts opens filter files and reads their headers. The error names all
// files that cannot be read. After an error, call closeParts as well.
func openParts(ctx context.Context, store storage.Source, names []string) ([]part, error) {
	parts := make([]part, len(names))
	if store == nil {
		return nil, errors.New("read filter files: no storage: want a storage.Source such as storage.Local(), got nil")
	}
	err := eachPart(parts, func(i int) error {
		parts[i].name = names[i]
		return parts[i].open(ctx, store)
	})
	return parts, cmp.Or(stopped.Err(ctx), err)
}

// eachPart calls fn for all parts, some at a time. The error names all that failed.
func eachPart(parts []part, fn func(i int) error) error {
	errs := make([]error, len(parts))
	var group errgroup.Group // without its own context: a source may depend on the one it was opened with
	group.SetLimit(opensAtOnce)
	for i := range parts {
		group.Go(func() error {
			errs[i] = fn(i)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	return several(errs)
}

func (p *part) open(ctx context.Context, store storage.Source) error {
	if err := stopped.Err(ctx); err != nil {
		return err
	}
	var err error
	if p.src, err = store.Open(ctx, storage.Object{Name: p.name}); err != nil {
		return err
	}
	h, err := filters.DecodeHeader(p.src, p.src.Object().Size, p.name)
	if err != nil {
		return err
	}
	p.about, p.bytes, p.digest = light(h.Filter), h.PayloadBytes, h.Digest()
	return p.rest()
}

// header reads the header again.
func (p *part) header() (*filters.Header, error) {
	h, err := filters.DecodeHeader(p.src, p.src.Object().Size, p.name)
	if err == nil && h.Digest() != p.digest {
		err = fmt.Errorf("%s: the file changed while it was read: %w", p.name, syscall.ESTALE)
	}
	return h, err
}

// whole returns the filter itself, in memory.
func (p *part) whole(lim filters.Limits) (*filters.Filter, error) {
	if p.filter != nil {
		return p.filter, nil
	}
	h, err := p.header()
	if err != nil {
		return nil, err
	}
	lim.Counters = true
	return h.Load(lim)
}

// headers reads the headers of some parts again. Filters in memory have none.
func headers(parts []part) ([]*filters.Header, error) {
	heads := make([]*filters.Header, len(parts))
	err := eachPart(parts, func(i int) (err error) {
		if parts[i].filter == nil {
			heads[i], err = parts[i].header()
		}
		return err
	})
	return heads, err
}

// rest lets the source release what it holds, such as a file descriptor, until the
// next read.
func (p *part) rest() error { return objects.Rest(p.src) }

func restAll(parts []part) error {
	var errs []error
	for i := range parts {
		errs = append(errs, parts[i].rest())
	}
	return errors.Join(errs...)
}

func closeParts(parts []part) error {
	var errs []error
	for _, p := range parts {
		if p.src != nil {
			errs = append(errs, p.src.Close())
		}
	}
	return errors.Join(errs...)
}

// maxListed limits how many errors, files or ranges an error lists.
const maxListed = 20

// failures are the errors of several files. The text has one line for each of the
// first ones, and the number of the others.
type failures []error

// several returns the errors that are not nil as one error; nil if there are
// none.
func several(errs []error) error {
	var all failures
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

func (f failures) Error() string {
	lines := each.Slice(f[:min(len(f), maxListed)], error.Error)
	if more := len(f) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns all of the errors.
func (f failures) Unwrap() []error { return f }

// listed joins names, up to a limit.
func listed(names []string) string {
	more := ""
	if n := len(names) - maxListed; n > 0 {
		names, more = names[:maxListed], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}
