package join

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/key"
)

// answer describes the rows that a join returns: their columns, and where each
// comes from. It is immutable.
type answer struct {
	typ    answerType
	opts   *answerOptions
	wanted []wanted // columns, as the options name them; nil: all
	counts bool     // rows are counted, not made
	// mirrored are columns of the log that the answer leaves out unless they are
	// wanted, because it is written to a directory whose paths name their values.
	mirrored []string
	pages    bool // pairs are made of pages, not of records

	ids     *idColumns
	layouts map[*source.File]*layout // of each log file
}

// newAnswer lays out the answer for the log files.
func newAnswer(o *answerOptions, p *pairing, ids, logs []*source.File, counts bool, mirrored []string) (*answer, error) {
	a := &answer{typ: o.Type, opts: o, counts: counts, mirrored: mirrored, layouts: map[*source.File]*layout{}}
	var err error
	if a.wanted, err = parseColumns(o.Columns, o.Type); err != nil {
		return nil, fmt.Errorf("columns of the answer: %w", err)
	}
	if a.ids, err = a.newIDColumns(p, ids, logs[0]); err != nil {
		return nil, err
	}
	for _, f := range logs {
		l, err := a.newLayout(p, f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		if a.rowsOfLog() && o.Schema != dataset.Union {
			kept := a.scanOptions(f, false)
			if l.schema, err = kept.SchemaOf(f); err != nil {
				return nil, err
			}
		}
		a.layouts[f] = l
	}
	return a, nil
}

// rowsOfLog reports whether the answer is unchanged rows of the log. Then the scan
// itself makes it and copies pages where it can.
func (a *answer) rowsOfLog() bool { return !a.typ.columnsOfIDs }

// counting returns the answer of which rows are counted, not made.
func (a *answer) counting() *answer {
	c, ids := *a, *a.ids
	ids.rows, c.ids, c.counts = false, &ids, true
	return &c
}

// ofPages returns the answer whose pairs are made of pages. The rows of the ID files, if
// it needs them, are held as leaves.
func (a *answer) ofPages(ids []*source.File) (_ *answer, err error) {
	c := *a
	if c.pages = true; c.ids.rows {
		c.ids, err = c.ids.asLeaves(ids)
	}
	return &c, err
}

// layout says how rows of one log file become rows of the answer.
type layout struct {
	schema  *arrow.Schema
	columns []column
	// read are the positions of the columns to read of the log file: first those
	// of the answer, in its order, then those that only the key needs. Nil: all
	// are read, and in the answer.
	read []int
	kept int // how many of the columns read are in the answer
	// plain: values replace the log's dictionaries. These have no entry for the
	// key of an ID without a log row, and a NULL column that has a dictionary
	// elsewhere in the answer fits in no Arrow file.
	plain bool
}

// column is the source of a column of the answer.
type column struct {
	log  int // position among the log's columns read, or -1
	held int // position among the IDs' columns held, or -1; of a log column: the shared key's
}

// newLayout lays out the answer for a log file.
func (a *answer) newLayout(p *pairing, f *source.File) (*layout, error) {
	log, ids := f.Schema(), a.ids
	l := &layout{plain: a.typ.keepsIDs}
	if a.rowsOfLog() && a.opts.Schema == dataset.Union { // the columns are those of several files
		l.schema = log
		return l, nil
	}
	columns, err := a.chooser(ids, log).choose(a.wanted)
	if err != nil {
		return nil, fmt.Errorf("columns of the answer: %w", err)
	}
	taken := map[string]bool{}
	for _, name := range a.mirrored {
		taken[ids.folded(name)] = true
	}
	all := a.wanted == nil // those of the file, which another file may lack
	if all {
		columns = slices.DeleteFunc(columns, func(c chosen) bool { return !c.ofIDs && slices.Contains(a.mirrored, log.Field(c.at).Name) })
	}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		if c.ofIDs {
			continue
		}
		f := log.Field(c.at)
		if a.typ.keepsIDs {
			if err := a.keyOnce(c, f); err != nil {
				return nil, err
			}
			f.Nullable, f.Type = true, take.PlainType(f.Type)
			if c.key >= 0 && f.Type.ID() == arrow.NULL { // a null column cannot hold the ID's key
				f.Type = ids.all.Field(c.key).Type
			}
		}
		fields[i], taken[ids.folded(f.Name)] = f, true
		l.read = append(l.read, c.at)
	}
	l.kept = len(l.read)
	for i, c := range columns {
		if c.ofIDs {
			fields[i] = a.idField(c, taken)
		}
	}
	l.place(columns, ids, all)
	if all {
		l.read = nil
	} else if err := l.readKey(p, log); err != nil {
		return nil, err
	}
	md := log.Metadata()
	if l.schema = arrow.NewSchema(fields, &md); !isLog(columns, f.StoredColumns()) {
		l.schema = take.WithoutKeys(l.schema, take.Describing...)
	}
	return l, nil
}

// keyOnce returns an error if a shared key column cannot hold the keys of both
// sides.
func (a *answer) keyOnce(c chosen, f arrow.Field) error {
	if c.key < 0 {
		return nil
	}
	of := a.ids.all.Field(c.key).Type
	cast := slices.ContainsFunc(a.ids.shared, func(s sharedKey) bool { return s.idCol == c.key && s.cast })
	if !cast && sameClass(f.Type, of) {
		return nil
	}
	return fault.Unsupported(fault.At{Column: f.Name}, "a %s join whose key column has one name, but is %s in the log and %s in the IDs, or is cast", a.typ, f.Type, of).
		WithHint("rename the ID's column and write {On %s=NAME}, so that each side keeps its own, or leave the key out with {Columns}", f.Name)
}

// idField returns the field of an ID column under a name that is not taken, and
// takes it.
func (a *answer) idField(c chosen, taken map[string]bool) arrow.Field {
	f := a.ids.schema.Field(a.ids.held[a.ids.of[c.at]])
	f = take.WithoutFieldKeys(f, take.FieldID)
	f.Nullable = f.Nullable || a.typ.keepsLog
	for taken[a.ids.folded(f.Name)] {
		f.Name += a.opts.Suffix
	}
	taken[a.ids.folded(f.Name)] = true
	return f
}

// place determines the source of each column of the answer. all says that every column of
// the log is read.
func (l *layout) place(columns []chosen, ids *idColumns, all bool) {
	n := 0
	for _, c := range columns {
		col := column{log: -1, held: -1}
		if c.ofIDs {
			col.held = ids.of[c.at]
		} else {
			col.log = n
			if n++; all {
				col.log = c.at
			}
			if at, ok := ids.of[c.key]; ok {
				col.held = at
			}
		}
		l.columns = append(l.columns, col)
	}
}

// readKey adds the columns that only the key needs to those that are read.
func (l *layout) readKey(p *pairing, log *arrow.Schema) error {
	for _, c := range p.log {
		f, err := c.Resolve(log, p.ignoreCase)
		if err != nil {
			return err
		}
		if !slices.Contains(l.read, f.Index[0]) {
			l.read = append(l.read, f.Index[0])
		}
	}
	return nil
}

// logNames returns the names of the log's columns in the answer, and with withKey
// those that only the key needs; nil: all columns. Each log file has the same; f is
// one of them.
func (a *answer) logNames(f *source.File, withKey bool) []string {
	names := []string{}
	switch {
	case a.rowsOfLog() && a.wanted == nil, !a.rowsOfLog() && a.layouts[f].read == nil:
		return nil
	case a.rowsOfLog():
		for _, w := range a.wanted {
			names = append(names, w.name)
		}
		return names
	}
	l := a.layouts[f]
	read := l.read
	if !withKey {
		read = read[:l.kept]
	}
	for _, i := range read {
		names = append(names, f.Schema().Field(i).Name)
	}
	return names
}

// scanOptions returns the options of a scan that keeps the log's columns of the
// answer, and with withKey those of the key.
func (a *answer) scanOptions(f *source.File, withKey bool) keyscan.Options {
	o := a.opts
	return keyscan.Options{
		ScanOptions: keyscan.ScanOptions{
			Columns:    a.logNames(f, withKey),
			IgnoreCase: o.IgnoreCase,
			Schema:     o.Schema,
			Pinned:     o.Pinned,
			Threads:    o.Threads,
			Mem:        o.Mem,
			Progress:   o.Progress,
			Normalize:  o.Normalize,
		},
	}
}

// isLog reports whether the columns are exactly those that a log file stores.
func isLog(columns []chosen, stored int) bool {
	for i, c := range columns {
		if c.ofIDs || c.at != i {
			return false
		}
	}
	return len(columns) == stored
}

// chooser returns a chooser of columns of the log and the IDs.
func (a *answer) chooser(ids *idColumns, log *arrow.Schema) *chooser {
	return &chooser{typ: a.typ, log: log, ids: ids.all, shared: ids.shared, suffix: a.opts.Suffix, ignoreCase: a.opts.IgnoreCase}
}

// sameClass reports whether keys of two types are of one class, before any rule is
// applied.
func sameClass(a, b arrow.DataType) bool {
	c, err := key.ClassOf(a)
	d, err2 := key.ClassOf(b)
	return err == nil && err2 == nil && (c == d || c == key.Null || d == key.Null)
}
