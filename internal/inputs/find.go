package inputs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Find lists the files that the names stand for, as [source.Open] does, describes each one and
// closes it. The caller closes the list: a long one is in a temporary file. Files that old, if not
// nil, has with the same name, size and identity are not opened; files without an identity
// always are. No names are an error unless opts.AllowEmpty is set.
func Find(ctx context.Context, names []string, opts source.Opening, old *List) (in *List, err error) {
	source.NeedContext(ctx)
	if slices.Contains(names, "-") {
		return nil, errors.New("standard input cannot be listed: name files")
	}
	if err := opts.Fill(); err != nil {
		return nil, err
	}
	known, err := old.byName(ctx)
	if err != nil {
		return nil, err
	}
	l, err := opts.Listing(ctx, names)
	if err != nil {
		return nil, err
	}
	list := newInputList(names, &opts)
	defer func() {
		if err != nil {
			err = errors.Join(err, list.close())
		}
	}()
	finding := source.Finding[Input]{Options: &opts, By: source.Opener[Input]{
		Open: func(ctx context.Context, e storage.Object) (Input, string, error) {
			return describeObject(ctx, &opts, e, known)
		},
		Close: func(Input) {},
		Least: runtime.GOMAXPROCS(0),
		Keep:  func(in Input) error { return list.add(&in, nil) },
	}}
	var all []object
	for i, name := range names {
		finding.Of = append(finding.Of, source.Found{Name: name, All: len(l.Lists[i])})
		for _, e := range l.Lists[i] {
			now, _, err := opts.Rebase(e)
			if err != nil {
				return nil, err
			}
			all = append(all, object{e, now.Rel, i})
		}
		l.Lists[i] = nil
	}
	slices.SortStableFunc(all, func(a, b object) int { return cmp.Compare(a.rel, b.rel) })
	entries := each.Slice(all, func(o object) storage.Object { return o.Object })
	if _, err := finding.Open(ctx, entries, func(i int) int { return all[i].of }); err != nil {
		return nil, err
	}
	if err := finding.End(); err != nil {
		return nil, err
	}
	return list.open(opts.Left.Sorted())
}

// object is an object that was found.
type object struct {
	storage.Object
	rel string // as the list has it
	of  int    // the name that stands for it
}

// byName returns the inputs of a list, which may be nil, by their names.
func (in *List) byName(ctx context.Context) (map[string]*Input, error) {
	if in == nil {
		return nil, nil
	}
	known := map[string]*Input{}
	for input, err := range in.Each(ctx) {
		if err != nil {
			return nil, err
		}
		known[input.Name] = &input
	}
	return known, nil
}

// describeObject returns an input for a listed object. If the object is certainly not data,
// it returns the reason.
func describeObject(ctx context.Context, o *source.Opening, e storage.Object, known map[string]*Input) (in Input, why string, err error) {
	if old := known[e.Name]; old != nil && old.Size == e.Size && old.Identity != "" && old.Identity == e.Identity && sameFormat(o, old) {
		return describeAgain(o, e, *old)
	}
	f, why, err := o.OpenFound(ctx, e)
	if f == nil || err != nil {
		return in, why, err
	}
	in, err = describedOf(f)
	return in, "", errors.Join(err, f.Close())
}

// sameFormat reports whether a file with unchanged content would be opened in the format that
// is listed.
func sameFormat(o *source.Opening, old *Input) bool {
	return !source.IsText(old.Format) || o.Text && o.TextFormat == "" && o.Encoding == "" && o.Delimiter == 0 && !o.NoHeader
}

// describeAgain returns what was known of a file that has not changed, as it would be listed
// now.
func describeAgain(o *source.Opening, e storage.Object, in Input) (_ Input, why string, err error) {
	listed := e.Rel
	e, root, err := o.Rebase(e)
	if err != nil {
		return in, "", err
	}
	in.Rel, in.Root, in.RootRel, in.Values = e.Rel, nil, source.RootRelOf(e.Rel, listed), nil
	if e.Found {
		in.Root = &root
	}
	parts, err := o.PartsOf(e)
	if err != nil || o.Layout == nil {
		return in, "", err
	}
	in.Values, err = o.ValuesOf(in.Name, parts)
	return in, "", err
}

// Since compares the list with an earlier one: it returns the Rels of inputs that are new,
// that have changed, and that are gone, each in ascending order.
func (in *List) Since(ctx context.Context, old *List) (added, changed, gone []string, err error) {
	known, err := old.byName(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	there := map[string]bool{}
	for now, err := range in.Each(ctx) {
		if err != nil {
			return nil, nil, nil, err
		}
		was := known[now.Name]
		switch {
		case was == nil || was.Rel != now.Rel:
			added = append(added, now.Rel)
			continue
		case was.Size != now.Size || !bytes.Equal(was.Print, now.Print):
			changed = append(changed, now.Rel)
		}
		there[now.Name] = true
	}
	for name, was := range known {
		if !there[name] {
			gone = append(gone, was.Rel)
		}
	}
	slices.Sort(gone)
	return added, changed, gone, nil
}
