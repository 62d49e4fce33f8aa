package inputs

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"io"
	"iter"
	"runtime"
	"slices"

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
	s := search{opts: &opts, old: old}
	defer func() { err = errors.Join(err, s.objects.Close()) }()
	var w *gob.Encoder
	err = opts.Each(ctx, names, func() {
		if s.objects != nil {
			_ = s.objects.Close()
		}
		s.objects, s.all = spill.NewBytes(waitingList), make([]source.Found, len(names))
		w = gob.NewEncoder(s.objects)
	}, func(of int, e storage.Object) error {
		s.all[of].Name, s.all[of].All = names[of], s.all[of].All+1
		return w.Encode(object{e, of})
	})
	if err != nil {
		return nil, err
	}
	s.list = newInputList(names, &opts)
	if err = errors.Join(s.objects.Flush(), s.run(ctx)); err == nil {
		in, err = s.list.open(opts.Left.Sorted())
	}
	if err != nil {
		return nil, errors.Join(err, s.list.close())
	}
	in.Changes = s.changes
	return in, nil
}

// Changes are the Rels of inputs that are new, that have changed, or that are gone since an earlier
// list.
type Changes struct{ New, Changed, Gone []string }

// search makes a list of the objects that were found.
type search struct {
	opts    *source.Opening
	objects *spill.Bytes
	all     []source.Found
	list    *inputList
	old     *List
	changes Changes
}

// object is an object that was found.
type object struct {
	Object storage.Object
	Of     int // the name that stands for it
}

// described is an input, with its line if that is as it was.
type described struct {
	Input
	line []byte
	was  *Input
}

// portion is the number of objects that are described one after the other.
const portion = 8 << 10

// run describes all objects.
func (s *search) run(ctx context.Context) error {
	earlier := s.earlier(ctx)
	defer earlier.stop()
	finding := source.Finding[described]{Options: s.opts, Of: s.all, By: source.Opener[described]{
		Close: func(described) {}, Least: runtime.GOMAXPROCS(0), Keep: s.keep,
	}}
	r := gob.NewDecoder(bufio.NewReaderSize(io.NewSectionReader(s.objects, 0, s.objects.Size()), 256<<10))
	for more := true; more; {
		var entries []storage.Object
		var of []int
		var lines [][]byte
		for len(entries) < portion {
			var one object
			if err := r.Decode(&one); errors.Is(err, io.EOF) {
				more = false
				break
			} else if err != nil {
				return err
			}
			line, err := earlier.line(one.Object)
			if err != nil {
				return err
			}
			entries, of, lines = append(entries, one.Object), append(of, one.Of), append(lines, line)
		}
		finding.By.Open = func(ctx context.Context, i int, e storage.Object) (described, string, error) {
			d, why, err := s.describe(ctx, e, lines[i])
			if why == "" {
				lines[i] = nil
			}
			return d, why, err
		}
		if _, err := finding.Open(ctx, entries, func(i int) int { return of[i] }); err != nil {
			return err
		}
		for _, line := range lines { // those of what is no input any more
			if line == nil {
				continue
			}
			_, rel, err := s.old.file().namesOf(line)
			if err != nil {
				return err
			}
			s.changes.Gone = append(s.changes.Gone, rel)
		}
	}
	err := cmp.Or(earlier.upTo("", true), finding.End())
	slices.Sort(s.changes.Gone)
	return err
}

// keep adds an input to the list.
func (s *search) keep(d described) error {
	switch was := d.was; {
	case s.old == nil:
	case was == nil:
		s.changes.New = append(s.changes.New, d.Rel)
	case was.Size != d.Size || !bytes.Equal(was.Print, d.Print):
		s.changes.Changed = append(s.changes.Changed, d.Rel)
	}
	return s.list.add(&d.Input, d.line)
}

// describe returns an input for a listed object, of which the earlier list may have the line. If
// the object is certainly not data, it returns the reason.
func (s *search) describe(ctx context.Context, e storage.Object, line []byte) (d described, why string, err error) {
	if line != nil {
		was, err := s.old.file().input(line)
		if err != nil {
			return d, "", s.old.file().corrupt("the line of %s: %v", e.Name, err)
		}
		if d.was = &was; was.Size == e.Size && was.Identity != "" && was.Identity == e.Identity && sameFormat(s.opts, &was) {
			d.Input, err = describeAgain(s.opts, e, was)
			if d.RootRel == was.RootRel && d.FoundIn() == was.FoundIn() && (d.Root == nil) == (was.Root == nil) && slices.Equal(d.Values, was.Values) {
				d.line = line
			}
			return d, "", err
		}
	}
	f, why, err := s.opts.OpenFound(ctx, e)
	if f == nil || err != nil {
		return d, why, err
	}
	d.Input, err = describedOf(f)
	return d, "", errors.Join(err, f.Close())
}

// sameFormat reports whether a file with unchanged content would be opened in the format that
// is listed.
func sameFormat(o *source.Opening, old *Input) bool {
	return !source.IsText(old.Format) || o.Text && o.TextFormat == "" && o.Encoding == "" && o.Delimiter == 0 && !o.NoHeader
}

// describeAgain returns what was known of a file that has not changed, as it would be listed
// now.
func describeAgain(o *source.Opening, e storage.Object, in Input) (Input, error) {
	listed := e.Rel
	e, root, err := o.Rebase(e)
	if err != nil {
		return in, err
	}
	in.Rel, in.Root, in.RootRel, in.Values = e.Rel, nil, source.RootRelOf(e.Rel, listed), nil
	if e.Found {
		in.Root = &root
	}
	parts, err := o.PartsOf(e)
	if err != nil || o.Layout == nil {
		return in, err
	}
	in.Values, err = o.ValuesOf(in.Name, parts)
	return in, err
}

// earlier reads the lines of an earlier list beside objects, both in ascending order of Rel.
type earlier struct {
	s     *search
	next  func() (earlierLine, error, bool)
	stop  func()
	ahead *earlierLine  // nil: there are no more
	like  []earlierLine // with the Rel of the last object, and no object yet
}

// earlierLine is the line of an input.
type earlierLine struct {
	name, rel string
	line      []byte
}

func (s *search) earlier(ctx context.Context) *earlier {
	e := &earlier{s: s, ahead: new(earlierLine)}
	e.next, e.stop = iter.Pull2(s.old.namedLines(ctx))
	return e
}

// namedLines yields the lines of all inputs.
func (in *List) namedLines(ctx context.Context) iter.Seq2[earlierLine, error] {
	return func(yield func(earlierLine, error) bool) {
		for x, err := range in.texts(ctx) {
			if err != nil {
				yield(earlierLine{}, err)
				return
			}
			for line := range bytes.Lines(bytes.Clone(x.text)) {
				l := earlierLine{line: line}
				if l.name, l.rel, err = in.file().namesOf(line); !yield(l, err) || err != nil {
					return
				}
			}
		}
	}
}

// upTo reads the lines before those of a Rel, whose inputs are gone, and those of it.
func (e *earlier) upTo(rel string, all bool) error {
	if len(e.like) > 0 && (all || e.like[0].rel < rel) {
		for _, l := range e.like {
			e.s.changes.Gone = append(e.s.changes.Gone, l.rel)
		}
		e.like = nil
	}
	for e.ahead != nil && (all || e.ahead.rel <= rel) {
		switch {
		case e.ahead.line == nil: // the first call
		case e.ahead.rel == rel && !all:
			e.like = append(e.like, *e.ahead)
		default:
			e.s.changes.Gone = append(e.s.changes.Gone, e.ahead.rel)
		}
		l, err, ok := e.next()
		if err != nil {
			return err
		}
		if e.ahead = &l; !ok {
			e.ahead = nil
		}
	}
	return nil
}

// line returns the line of an object; nil: it has none.
func (e *earlier) line(o storage.Object) ([]byte, error) {
	now, _, err := e.s.opts.Rebase(o)
	if err == nil {
		err = e.upTo(now.Rel, false)
	}
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(e.like, func(l earlierLine) bool { return l.name == o.Name })
	if i < 0 {
		return nil, nil
	}
	line := e.like[i].line
	e.like = slices.Delete(e.like, i, i+1)
	return line, nil
}
