package keyindex

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/spill"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/internal/tasks"
)

// Options say which keys an index has, and how it is built.
type Options struct {
	Key       string    // columns, without casts
	Rule      keys.Rule // for strings
	FPR       float64   // of each filter
	RowGroups bool      // filters of row groups, too
	Threads   int       // 0: GOMAXPROCS
	Memory    int64     // bytes for keys and filters that are being made; 0: no bound
	// Old and OldList, if not nil, are an earlier index and its list: filters of files that
	// have not changed are taken from there.
	Old     *Index
	OldList *inputs.List
}

// Filters are the filters of an index that is being made. The caller closes them.
type Filters struct {
	Facts
	Reused  int // filters of files that were taken from the old index
	entries []entry

	mu    sync.Mutex
	spool *spill.Bytes // the filters, each in one piece, in any order
}

// spooled describes the spool in errors.
const spooled fault.Text = "the index that waits on disk (let TMPDIR name a directory with room)"

// Close frees the disk space that the filters take.
func (f *Filters) Close() error { return f.spool.Close() }

// Build reads the keys of the files of a list. open has the budgets for opening them. All
// files must have the key, of one class. The index depends on the list and on what the
// options say of it, not on the rest.
func Build(ctx context.Context, list *inputs.List, open source.Opening, o Options) (_ *Filters, err error) {
	stopped.Needs(ctx, "keyindex.Build")
	columns, err := keys.ParseColumns(o.Key)
	if err != nil {
		return nil, err
	}
	digest := list.Digest()
	f := &Filters{spool: spill.NewBytes(spooled), entries: make([]entry, list.Len()), Facts: Facts{
		Key: keys.ColumnsString(columns), NormalForm: o.Rule.NormalForm(), FPR: o.FPR, RowGroups: o.RowGroups,
		Hash: hash.String(), Geometry: bloom.Split256.String(), List: hex.EncodeToString(digest[:]), Inputs: list.Len(),
	}}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if f.Classes, err = classesOf(ctx, list, open, columns, o.Rule); err != nil {
		return nil, err
	}
	known, err := f.reusable(ctx, &o)
	if err != nil {
		return nil, err
	}
	b := &building{Filters: f, options: o, list: list, columns: columns, known: known}
	b.files = min(tasks.Processors(o.Threads), max(list.Len(), 1))
	b.options.Threads = max(tasks.Processors(o.Threads)/b.files, 1)
	b.open = open
	b.open.InFlight /= int64(b.files)
	return f, errors.Join(b.all(ctx), f.spool.Flush())
}

// classesOf returns the classes of the key columns, which all files of the list must have.
func classesOf(ctx context.Context, list *inputs.List, open source.Opening, columns []keys.Column, rule keys.Rule) ([]string, error) {
	classes := slices.Repeat([]keys.Class{keys.Null}, len(columns))
	like := make([]string, len(columns))
	first, err := list.Schemas(ctx)
	if err != nil {
		return nil, err
	}
	for _, in := range first {
		files, _, err := list.Open(ctx, []inputs.Piece{{Input: in}}, open)
		if err != nil {
			return nil, err
		}
		enc, err := keys.NewEncoder(files[0].Schema(), columns, keys.Options{Rule: rule})
		if err = errors.Join(err, source.Close(files)); err != nil {
			return nil, fmt.Errorf("%s: %w", in.Name, err)
		}
		for i, c := range enc.Classes() {
			if c == keys.Null || c == classes[i] {
				continue
			}
			if classes[i] != keys.Null {
				err := keys.Same(fault.At{File: in.Name}, columns[i], like[i], classes[i], c)
				if f := (*fault.Error)(nil); errors.As(err, &f) {
					f.Hint = "index those of one class: choose files with {Include} and {Exclude}"
				}
				return nil, err
			}
			classes[i], like[i] = c, in.Name
		}
	}
	return each.Slice(classes, func(c keys.Class) string { return string(c) }), nil
}

// reusable returns the inputs of the old list by name, if its index has filters such as these.
func (f *Filters) reusable(ctx context.Context, o *Options) (map[string]*inputs.Input, error) {
	x := o.Old
	if x == nil || o.OldList == nil || x.Of(o.OldList) != nil || !x.Same(&f.Facts) {
		return nil, nil
	}
	known := map[string]*inputs.Input{}
	for in, err := range o.OldList.Each(ctx) {
		if err != nil {
			return nil, err
		}
		if err := x.Agrees(&in); err != nil {
			return nil, err
		}
		known[in.Name] = &in
	}
	return known, nil
}

// building is the work of Build.
type building struct {
	*Filters
	options Options // Threads: of each file
	list    *inputs.List
	columns []keys.Column
	open    source.Opening
	known   map[string]*inputs.Input // of the old list
	files   int                      // that are read at once
}

// all makes the filters of all files.
func (b *building) all(ctx context.Context) error {
	work, inner := errgroup.WithContext(ctx)
	work.SetLimit(b.files)
	var unread error
	for in, err := range b.list.Each(ctx) {
		if unread = err; err != nil || inner.Err() != nil {
			break
		}
		work.Go(func() error {
			// Files depend on the context that they were opened with.
			e, err := b.input(inner, &in)
			b.entries[in.Number()] = e
			return err
		})
	}
	return cmp.Or(work.Wait(), unread, stopped.Err(ctx))
}

// input makes the filters of a file, or takes those that the old index has.
func (b *building) input(ctx context.Context, in *inputs.Input) (e entry, err error) {
	if old := b.known[in.Name]; old != nil && unchanged(old, in) {
		b.mu.Lock()
		b.Reused++
		b.mu.Unlock()
		return b.reuse(ctx, &b.options.Old.entries[old.Number()])
	}
	files, _, err := b.list.Open(ctx, []inputs.Piece{{Input: *in}}, b.open)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, source.Close(files)) }()
	return b.read(ctx, files[0])
}

// unchanged reports whether a file is as it was, according to its storage and its content.
func unchanged(old, now *inputs.Input) bool {
	return old.Size == now.Size && old.Identity != "" && old.Identity == now.Identity && slices.Equal(old.Print, now.Print) && slices.Equal(old.Groups, now.Groups) && old.Schema == now.Schema && slices.Equal(old.Values, now.Values)
}

// reuse copies filters of the old index.
func (b *building) reuse(ctx context.Context, old *entry) (e entry, err error) {
	e.nulls = old.nulls
	if e.all, err = b.copied(ctx, old.all); err != nil {
		return e, err
	}
	for _, u := range old.groups {
		if u, err = b.copied(ctx, u); err != nil {
			return e, err
		}
		e.groups = append(e.groups, u)
	}
	return e, nil
}

// copied copies a filter of the old index into the spool.
func (b *building) copied(ctx context.Context, u Unit) (Unit, error) {
	var bits []byte
	err := b.options.Old.blocks(ctx, u, func(blocks []byte) error {
		bits = append(bits, blocks...)
		return nil
	})
	if err != nil {
		return u, err
	}
	return b.put(bits)
}

// put writes a filter into the spool. Its Unit says where it is there.
func (f *Filters) put(bits []byte) (Unit, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := Unit{f.spool.Size(), uint32(len(bits) / blockBytes)}
	_, err := f.spool.Write(bits)
	return u, err
}

// read makes the filters of an open file.
func (b *building) read(ctx context.Context, f *source.File) (e entry, err error) {
	whole := b.collector(f.Name())
	for g := range f.NumGroups() {
		into := []*collector{whole}
		if b.RowGroups && f.NumGroups() > 1 {
			into = append(into, b.collector(f.Name()))
		}
		nulls, err := b.group(ctx, f, g, into)
		if err != nil {
			return e, err
		}
		e.nulls = append(e.nulls, nulls)
		for _, own := range into[1:] {
			u, err := b.finish(own)
			if err != nil {
				return e, err
			}
			e.groups = append(e.groups, u)
		}
	}
	e.all, err = b.finish(whole)
	return e, err
}

// group collects the keys of a row group, and returns how many rows have none.
func (b *building) group(ctx context.Context, f *source.File, g int, into []*collector) (nulls int64, err error) {
	o := keyscan.ReadOptions{Key: b.Key, Options: keys.Options{Rule: b.options.Rule}, Distinct: true, Threads: b.options.Threads}
	var mu sync.Mutex
	_, nulls, err = keyscan.Read(ctx, []source.Piece{{File: f, Lo: g, Hi: g + 1}}, o, func() (func(*keyscan.Keys) error, error) {
		var hashes []uint64
		return func(k *keyscan.Keys) error {
			hashes = k.Batch.Hash(hash, hashes)
			mu.Lock()
			defer mu.Unlock()
			for _, c := range into {
				if err := c.add(hashes); err != nil {
					return err
				}
			}
			return nil
		}, nil
	})
	return nulls, err
}

// finish makes the filter of the keys that were collected.
func (b *building) finish(c *collector) (Unit, error) {
	f, err := c.filter()
	if err != nil || f == nil {
		return Unit{}, err
	}
	return b.put(f.AppendBlocks(nil, 0, f.Params().Blocks))
}
