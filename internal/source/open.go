package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/listing"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/text"
	"github.com/bloomjoin/bloomjoin/internal/where"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Open opens all files that the names match, in ascending order of Rel, which is
// the same in every process. A name is a file, a glob, a directory, an object's URL
// or "-". The caller closes the files; see [Close]. The error for no names, or for
// names without data, wraps [storage.ErrNoFiles], unless opts.AllowEmpty is set.
func Open(ctx context.Context, names []string, opts Opening) (files []*File, err error) {
	NeedContext(ctx)
	if err := opts.Fill(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, Close(files))
			files = nil
		}
	}()
	l, err := opts.Listing(ctx, names)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if name == "-" {
			f, err := openStdin(opts)
			if err != nil {
				return files, err
			}
			files = append(files, f)
			continue
		}
		f := Finding[*File]{Options: &opts, By: opts.files(), Of: []Found{{Name: name, All: len(l.Lists[i]), Excluded: l.excluded[i]}}}
		found, err := f.Open(ctx, l.Lists[i], func(int) int { return 0 })
		files = append(files, found...)
		if err = cmp.Or(err, f.End()); err != nil {
			return files, err
		}
	}
	if slices.Contains(l.excluded, true) && l.bound != nil {
		for _, f := range files {
			if err := f.CheckStored(opts.Layout, l.bound, opts.IgnoreCase); err != nil {
				return files, err
			}
		}
	}
	sort.SliceStable(files, func(i, j int) bool { return files[i].rel < files[j].rel })
	return files, nil
}

// errNoInputs is the error of an empty list of names.
var errNoInputs = fmt.Errorf("no inputs were named: want a file, a directory or a pattern%w", quiet.Error{Err: storage.ErrNoFiles})

// inputs are what names stand for.
type inputs struct {
	Lists    [][]Entry    // of each name
	excluded []bool       // the condition has excluded some of these
	bound    *where.Bound // the condition on the columns of paths; nil: none
}

// Listing lists what the names stand for, leaves out what is not chosen or is listed again,
// finds the columns of paths, and leaves out what the condition excludes.
func (o *Opening) Listing(ctx context.Context, names []string) (l inputs, err error) {
	if len(names) == 0 && !o.AllowEmpty {
		return l, errNoInputs
	}
	var manifests [][]string
	if l.Lists, manifests, err = o.list(ctx, names); err != nil && !errors.Is(err, storage.ErrNoFiles) {
		return l, err
	}
	empty := err
	if l.Lists, err = o.choose(names, l.Lists); err != nil {
		return l, err
	}
	if err = cmp.Or(o.finished(ctx, names, l.Lists, manifests), empty); err != nil {
		return l, err
	}
	if o.Layout, err = o.layout(ctx, names, l.Lists); err != nil {
		return l, err
	}
	l.bound = o.OfPartitions()
	l.Lists, l.excluded, err = o.satisfying(l.bound, l.Lists)
	return l, err
}

// Each calls begin, and then yield with the objects that Listing returns, in ascending order of the
// Rels that inputs have. of is the index of their name, rel that Rel. If there are several names, patterns or
// links, it keeps all of them in memory. It may begin again.
func (o *Opening) Each(ctx context.Context, names []string, begin func(), yield func(of int, rel string, e Entry) error) error {
	if len(names) == 1 && names[0] != "-" && !glob.Is(names[0]) && !lake.IsName(names[0]) && o.Condition == nil {
		begin()
		if err := o.stream(ctx, names, yield); !errors.Is(err, errUnordered) {
			return err
		}
	}
	begin()
	l, err := o.Listing(ctx, names)
	if err != nil {
		return err
	}
	type object struct {
		entry *Entry
		rel   string
		of    int
	}
	var all []object
	for i, list := range l.Lists {
		for k := range list {
			e, _, err := o.Rebase(list[k])
			if err != nil {
				return err
			}
			all = append(all, object{&list[k], e.Rel, i})
		}
	}
	slices.SortStableFunc(all, func(a, b object) int { return cmp.Compare(a.rel, b.rel) })
	for _, e := range all {
		if err := yield(e.of, e.rel, *e.entry); err != nil {
			return err
		}
	}
	return nil
}

// errUnordered means that objects do not come in order, or may be listed twice.
var errUnordered = errors.New("objects that are to be sorted")

// stream is Each of one directory. Of each of its directories it keeps one object.
func (o *Opening) stream(ctx context.Context, names []string, yield func(of int, rel string, e Entry) error) error {
	var some []Entry
	last, found, used := "", false, make([]bool, len(o.exclude))
	s := sightings{options: o, stamps: map[stamp]*Entry{}}
	manifests, err := listing.Each(hive.Looking(ctx, false), o.Store, names[0], func(object storage.Object) error {
		e := Entry{Object: object}
		found = true
		list, _ := o.chooseOf(names[0], []Entry{e}, used)
		if e.Type != 0 {
			return errUnordered
		}
		if len(list) == 0 {
			return nil
		}
		s.linkedTo(&e)
		now, _, err := o.Rebase(e)
		if err == nil && now.Rel < last {
			err = errUnordered
		}
		if n := len(some); n == 0 || address.Parent(some[n-1].Name) != address.Parent(e.Name) || o.maybeNone(some[n-1]) != o.maybeNone(e) {
			some = append(some, e)
		}
		last = now.Rel
		return cmp.Or(err, yield(0, now.Rel, e))
	})
	switch {
	case errors.Is(err, storage.ErrNoFiles) && o.AllowEmpty:
		err = nil
	case err != nil && !errors.Is(err, storage.ErrNoFiles):
		return err
	case found && some == nil && !o.AllowEmpty:
		return errUnordered // its error names several
	}
	lists := [][]Entry{some}
	o.noteUnused(names, lists, used)
	s.tell()
	if err := cmp.Or(o.finished(ctx, names, lists, [][]string{manifests}), err); err != nil {
		return err
	}
	o.Layout, err = o.layout(ctx, names, lists)
	return err
}

// list returns the objects that each name stands for; nil for standard input and,
// with AllowEmpty, directories without data. manifests are the directories of manifests
// that were seen below each. The error may wrap [storage.ErrNoFiles]; then the rest is valid.
func (o *Opening) list(ctx context.Context, names []string) (lists [][]Entry, manifests [][]string, err error) {
	ctx = hive.Looking(ctx, false)
	lists, manifests = make([][]Entry, len(names)), make([][]string, len(names))
	var empty error
	for i, name := range names {
		if name == "-" {
			continue
		}
		var err error
		if lake.IsName(name) {
			lists[i], err = o.tableFiles(ctx, name)
		} else {
			var found []storage.Object
			found, manifests[i], err = listing.List(ctx, o.Store, name)
			lists[i] = Entries(found)
		}
		switch {
		case errors.Is(err, storage.ErrNoFiles) && o.AllowEmpty:
		case errors.Is(err, storage.ErrNoFiles):
			empty = cmp.Or(empty, err)
		case err != nil:
			return nil, nil, err
		}
	}
	return lists, manifests, empty
}

// Close closes the files; see [File.Close].
func Close(files []*File) error {
	return errors.Join(each.Slice(files, (*File).Close)...)
}

// Known is standard input whose content the program that writes it has identified.
type Known struct {
	io.Reader
	Digest []byte
}

// openStdin opens standard input as an ID set or an Arrow stream.
func openStdin(opts Opening) (*File, error) {
	if opts.Stdin == nil {
		return nil, errors.New(`standard input ("-") cannot be read here: name a file`)
	}
	f := &File{name: "standard input", rel: "-", size: -1, once: true, bytes: new(atomic.Int64), doubts: new(doubts)}
	if known, ok := opts.Stdin.(Known); ok {
		f.KnownAs(known.Digest)
	}
	r := &counted64{opts.Stdin, f.bytes, opts.Reading}
	head := make([]byte, 8)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	whole := io.NopCloser(io.MultiReader(strings.NewReader(string(head[:n])), r))
	open := func() (io.ReadCloser, error) { return whole, nil }
	switch f.format = byMagic(head[:n]); f.format {
	case dataset.ArrowStream:
		f.table, err = arrowipc.OpenStream(open, f.name, opts.Mem, arrowipc.StreamOptions{Once: true, Memory: opts.Memory})
		return f.streamed(&opts, err)
	case dataset.Parquet, dataset.ArrowFile:
		return nil, faults.Of(cause.NotData, faults.Unsupported(fault.At{File: f.name}, "a file of format %s, which is read from its end", f.format)).
			WithHint("name the file instead")
	}
	if err := notRows(f.name, head[:n]); err != nil {
		return nil, err
	}
	if !opts.Text {
		if n == 0 {
			return nil, faults.Of(cause.NotData, faults.Mismatch(fault.At{File: f.name}, "the log", "an Arrow IPC stream", "nothing")).
				WithHint("check that the program that writes it has not failed")
		}
		e := faults.Of(cause.NotData, faults.Mismatch(fault.At{File: f.name}, "the log", "an Arrow IPC stream", "something else"))
		return nil, e.WithHint("name a Parquet or Arrow file, or write one with DuckDB or pyarrow: see " + stdinGuide)
	}
	if f.format = opts.TextFormat; f.format == "" {
		f.format = dataset.Lines
	}
	f.table, err = text.Open(open, f.name, text.Options{
		Format: TextFormats[f.format], Guessed: opts.TextFormat == "", Size: -1, Once: true, Column: opts.Column, Mem: opts.Mem, Memory: opts.Memory, Encoding: opts.Encoding,
		Delimiter: opts.Delimiter, NoHeader: opts.NoHeader, Nested: opts.Nested, SkipBad: opts.SkipBad,
	})
	return f.streamed(&opts, err)
}

// streamed returns the file, whose table was opened with an error or nil, ready to be read.
func (f *File) streamed(opts *Opening, err error) (*File, error) {
	if err == nil {
		err = f.complete(opts, nil)
	}
	if err == nil {
		f.setReaders()
		err = f.setWhere(opts)
	}
	return f, err
}
