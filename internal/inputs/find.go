package inputs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"io"
	"iter"
	"reflect"
	"runtime"
	"slices"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/spill"
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
	s := search{opts: &opts, old: old, known: map[[2]string]*earlier{}}
	defer func() { err = errors.Join(err, s.objects.Close()) }()
	var w *gob.Encoder
	err = opts.Each(ctx, names, func() {
		if s.objects != nil {
			_ = s.objects.Close()
		}
		s.objects, s.all = spill.NewBytes(waitingList), make([]source.Found, len(names))
		w = gob.NewEncoder(s.objects)
	}, func(of int, rel string, e source.Entry) error {
		s.all[of].Name, s.all[of].All = names[of], s.all[of].All+1
		return w.Encode(s.objectOf(of, rel, e))
	})
	if err != nil {
		return nil, err
	}
	s.list = newInputList(names, &opts, s.tables)
	if err = errors.Join(s.objects.Flush(), s.run(ctx)); err == nil {
		in, err = s.list.open(opts.Left.Sorted())
	}
	if err != nil {
		return nil, errors.Join(err, s.list.close())
	}
	in.changes = s.changes
	return in, nil
}

// Changes are the Rels of inputs that are new, that have changed, or that are gone since an earlier
// list.
type Changes struct{ New, Changed, Gone []string }

// Changes returns what has changed since the earlier list with which Find has made this one.
func (in *List) Changes() *Changes { return &in.changes }

// search makes a list of the objects that were found.
type search struct {
	opts    *source.Opening
	objects *spill.Bytes
	tables  []*source.TableVersion
	all     []source.Found
	list    *inputList
	old     *List
	known   map[[2]string]*earlier // by Name and Rel: lines of old with Rels as the objects that are described
	changes Changes
}

// earlier is the line of an input of an earlier list.
type earlier struct {
	name, rel string
	line      []byte
	kept      bool // the input is there
}

// object is an object that was found.
type object struct {
	Object storage.Object
	Of     int    // the name that stands for it
	Rel    string // of its input

	Table   int // of the search's, from 1; 0: it is in none
	Parts   []hive.Part
	Values  []hive.Part
	Deleted *lake.Deleted
}

// objectOf returns an entry as it waits.
func (s *search) objectOf(of int, rel string, e source.Entry) object {
	o := object{Object: e.Object, Of: of, Rel: rel}
	if e.Of != nil {
		o.Table, o.Parts, o.Values, o.Deleted = 1+slices.Index(s.tables, e.Of.Table), e.Of.Parts, e.Of.Values, e.Of.Deleted
		if o.Table == 0 {
			s.tables = append(s.tables, e.Of.Table)
			o.Table = len(s.tables)
		}
	}
	return o
}

// entry returns an object as it was found.
func (s *search) entry(o object) source.Entry {
	e := source.Entry{Object: o.Object}
	if o.Table > 0 {
		e.Of = &source.OfTable{Table: s.tables[o.Table-1], Parts: o.Parts, Values: o.Values, Deleted: o.Deleted}
	}
	return e
}

// described is an input, with its line if that is as it was.
type described struct {
	Input
	line    []byte
	was     *earlier // nil: it is new
	changed bool
}

// portion is the number of objects that are described one after the other.
const portion = 8 << 10

// run describes all objects, and compares them with the earlier list.
func (s *search) run(ctx context.Context) error {
	next, stop := iter.Pull2(s.old.named(ctx))
	defer stop()
	finding := source.Finding[described]{Options: s.opts, Of: s.all, By: source.Opener[described]{
		Open: s.describe, Close: func(described) {}, Least: runtime.GOMAXPROCS(0), Keep: s.keep,
	}}
	r := gob.NewDecoder(bufio.NewReaderSize(io.NewSectionReader(s.objects, 0, s.objects.Size()), 256<<10))
	var ahead *earlier
	more, old := true, true
	for more {
		var some []object
		for more && len(some) < portion {
			var one object
			if err := r.Decode(&one); errors.Is(err, io.EOF) {
				more = false
			} else if err != nil {
				return err
			} else {
				some = append(some, one)
			}
		}
		for old && (ahead == nil || !more || ahead.rel <= some[len(some)-1].Rel) {
			if ahead != nil {
				s.known[[2]string{ahead.name, ahead.rel}] = ahead
			}
			var err error
			if ahead, err, old = next(); err != nil {
				return err
			}
		}
		entries := each.Slice(some, s.entry)
		if _, err := finding.Open(ctx, entries, func(i int) int { return some[i].Of }); err != nil {
			return err
		}
		for key, e := range s.known {
			if more && e.rel >= some[len(some)-1].Rel {
				continue
			}
			if delete(s.known, key); !e.kept {
				s.changes.Gone = append(s.changes.Gone, e.rel)
			}
		}
	}
	slices.Sort(s.changes.Gone)
	return finding.End()
}

// keep adds an input to the list.
func (s *search) keep(d described) error {
	was := d.was
	if was != nil {
		was.kept = true
	}
	switch {
	case s.old == nil:
	case was == nil:
		s.changes.New = append(s.changes.New, d.Rel)
	case d.changed:
		s.changes.Changed = append(s.changes.Changed, d.Rel)
	}
	return s.list.add(&d.Input, d.line)
}

// describe returns an input for a listed object. If it is certainly not data, it returns the reason.
func (s *search) describe(ctx context.Context, _ int, e source.Entry) (d described, why string, err error) {
	var was Input
	now, root, err := s.opts.Rebase(e)
	if err != nil {
		return d, "", err
	}
	if d.was = s.known[[2]string{e.Name, now.Rel}]; d.was != nil {
		if was, err = s.old.file().input(d.was.line); err != nil {
			return d, "", s.old.file().corrupt("the line of %s: %v", e.Name, err)
		}
		if s.sameContent(&was, &e) && sameFormat(s.opts, &was) && was.RootRel == source.RootRelOf(now.Rel, e.Rel) && was.FoundIn() == root && (was.Root != nil) == e.Found {
			parts, err := s.opts.PartsOf(e)
			if err == nil && s.opts.Layout != nil {
				d.Values, err = s.opts.ValuesOf(e.Name, parts)
			}
			if err != nil {
				return d, "", err
			}
			same := func(a, b dataset.PartitionValue) bool {
				return a.Name == b.Name && a.Text == b.Text && a.Null == b.Null
			}
			if slices.EqualFunc(d.Values, was.Values, same) { // their types may be others
				was.Values = d.Values
				d.Input, d.line = was, d.was.line
				return d, "", nil
			}
		}
	}
	f, why, err := s.opts.OpenFound(ctx, e)
	if f == nil || err != nil {
		return d, why, err
	}
	d.Input, err = describedOf(f)
	if e.Of != nil {
		d.Table, d.Fixed, d.Deleted = 1+slices.Index(s.tables, e.Of.Table), e.Of.Values, f.Deleted()
	}
	d.changed = was.Size != d.Size || !bytes.Equal(was.Print, d.Print)
	return d, "", errors.Join(err, f.Close())
}

// sameContent reports whether an object is certainly the one that is listed. Files of tables never
// change; what the table says of them may.
func (s *search) sameContent(was *Input, e *source.Entry) bool {
	if e.Of == nil || was.Table == 0 {
		return e.Of == nil && was.Table == 0 && was.Size == e.Size && was.Identity != "" && was.Identity == e.Identity
	}
	table := s.old.file().tables[was.Table-1]
	return was.Size == e.Size && was.Deleted.Same(e.Of.Deleted) && slices.Equal(was.Fixed, e.Of.Values) && table.Location == e.Of.Table.Location && table.Kind == e.Of.Table.Kind &&
		reflect.DeepEqual(table.Columns, e.Of.Table.Columns) && slices.Equal(table.Partitions, e.Of.Table.Partitions) && was.Table == 1+slices.Index(s.tables, e.Of.Table)
}

// sameFormat reports whether a file with unchanged content would be opened in the format that
// is listed.
func sameFormat(o *source.Opening, old *Input) bool {
	return !source.IsText(old.Format) || o.Text && o.TextFormat == "" && o.Encoding == "" && o.Delimiter == 0 && !o.NoHeader
}

// named yields the lines of all inputs.
func (in *List) named(ctx context.Context) iter.Seq2[*earlier, error] {
	return func(yield func(*earlier, error) bool) {
		for x, err := range in.texts(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			for line := range bytes.Lines(bytes.Clone(x.text)) {
				name, rel, err := in.file().namesOf(line)
				if !yield(&earlier{name: name, rel: rel, line: line}, err) || err != nil {
					return
				}
			}
		}
	}
}
