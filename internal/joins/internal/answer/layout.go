package answer

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// Answer describes the rows that a join returns: their columns, and where each
// comes from. It is immutable.
type Answer struct {
	typ    Type
	opts   *Options
	wanted []wanted // columns, as the options name them; nil: all
	Counts bool     // rows are counted, not made
	// mirrored are columns of the log that the answer leaves out unless they are
	// wanted, because it is written to a directory whose paths name their values.
	mirrored []string
	Pages    bool // pairs are made of pages, not of records

	IDs     *IDColumns
	Layouts map[*source.File]*Layout // of each log file
}

// New lays out the answer for the log files.
func New(o *Options, p *Pairing, ids, logs []*source.File, counts bool, mirrored []string) (*Answer, error) {
	a := &Answer{typ: o.Type, opts: o, Counts: counts, mirrored: mirrored, Layouts: map[*source.File]*Layout{}}
	var err error
	if a.wanted, err = parseColumns(o.Columns, o.Type); err != nil {
		return nil, fmt.Errorf("columns of the answer: %w", err)
	}
	if a.IDs, err = a.newIDColumns(p, ids, logs[0]); err != nil {
		return nil, err
	}
	for _, f := range logs {
		l, err := a.newLayout(p, f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		if a.RowsOfLog() && o.Schema != dataset.UnionByName {
			kept := a.ScanOptions(f, false)
			if l.Schema, err = kept.SchemaOf(f); err != nil {
				return nil, err
			}
		}
		a.Layouts[f] = l
	}
	return a, nil
}

// RowsOfLog reports whether the answer is unchanged rows of the log. Then the scan
// itself makes it and copies pages where it can.
func (a *Answer) RowsOfLog() bool { return !a.typ.ColumnsOfIDs }

// Counting returns the answer of which rows are counted, not made.
func (a *Answer) Counting() *Answer {
	c, ids := *a, *a.IDs
	ids.Rows, c.IDs, c.Counts = false, &ids, true
	return &c
}

// OfPages returns the answer whose pairs are made of pages. The rows of the ID files, if
// it needs them, are held as leaves.
func (a *Answer) OfPages(ids []*source.File) (_ *Answer, err error) {
	c := *a
	if c.Pages = true; c.IDs.Rows {
		c.IDs, err = c.IDs.asLeaves(ids)
	}
	return &c, err
}

// Layout says how rows of one log file become rows of the answer.
type Layout struct {
	Schema  *arrow.Schema
	Columns []Column
	// Read are the positions of the columns to read of the log file: first those
	// of the answer, in its order, then those that only the key needs. Nil: all
	// are read, and in the answer.
	Read []int
	Kept int // how many of the columns read are in the answer
	// Plain: values replace the log's dictionaries. These have no entry for the
	// key of an ID without a log row, and a NULL column that has a dictionary
	// elsewhere in the answer fits in no Arrow file.
	Plain bool
}

// Column is the source of a column of the answer.
type Column struct {
	Log  int // position among the log's columns read, or -1
	Held int // position among the IDs' columns held, or -1; of a log column: the shared key's
}

// newLayout lays out the answer for a log file.
func (a *Answer) newLayout(p *Pairing, f *source.File) (*Layout, error) {
	log, ids := f.Schema(), a.IDs
	l := &Layout{Plain: a.typ.KeepsIDs}
	if a.RowsOfLog() && a.opts.Schema == dataset.UnionByName { // the columns are those of several files
		l.Schema = log
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
		if a.typ.KeepsIDs {
			if err := a.keyOnce(c, f); err != nil {
				return nil, err
			}
			f.Nullable, f.Type = true, take.PlainType(f.Type)
			if c.key >= 0 && f.Type.ID() == arrow.NULL { // a null column cannot hold the ID's key
				f.Type = ids.all.Field(c.key).Type
			}
		}
		fields[i], taken[ids.folded(f.Name)] = f, true
		l.Read = append(l.Read, c.at)
	}
	l.Kept = len(l.Read)
	for i, c := range columns {
		if c.ofIDs {
			fields[i] = a.idField(c, taken)
		}
	}
	l.place(columns, ids, all)
	if all {
		l.Read = nil
	} else if err := l.readKey(p, log); err != nil {
		return nil, err
	}
	md := log.Metadata()
	if l.Schema = arrow.NewSchema(fields, &md); !isLog(columns, f.StoredColumns()) {
		l.Schema = take.WithoutKeys(l.Schema, take.Describing...)
	}
	return l, nil
}

// keyOnce returns an error if a shared key column cannot hold the keys of both
// sides.
func (a *Answer) keyOnce(c chosen, f arrow.Field) error {
	if c.key < 0 {
		return nil
	}
	of := a.IDs.all.Field(c.key).Type
	cast := slices.ContainsFunc(a.IDs.Shared, func(s SharedKey) bool { return s.idCol == c.key && s.cast })
	if !cast && sameClass(f.Type, of) {
		return nil
	}
	return faults.Unsupported(fault.At{Column: f.Name}, "a %s join whose key column has one name, but is %s in the log and %s in the IDs, or is cast", a.typ, f.Type, of).
		WithHint("rename the ID's column and write {On %s=NAME}, so that each side keeps its own, or leave the key out with {Columns}", f.Name)
}

// idField returns the field of an ID column under a name that is not taken, and
// takes it.
func (a *Answer) idField(c chosen, taken map[string]bool) arrow.Field {
	f := a.IDs.Schema.Field(a.IDs.Held[a.IDs.of[c.at]])
	f = take.WithoutFieldKeys(f, take.FieldID)
	f.Nullable = f.Nullable || a.typ.KeepsLog
	for taken[a.IDs.folded(f.Name)] {
		f.Name += a.opts.Suffix
	}
	taken[a.IDs.folded(f.Name)] = true
	return f
}

// place determines the source of each column of the answer. all says that every column of
// the log is read.
func (l *Layout) place(columns []chosen, ids *IDColumns, all bool) {
	n := 0
	for _, c := range columns {
		col := Column{Log: -1, Held: -1}
		if c.ofIDs {
			col.Held = ids.of[c.at]
		} else {
			col.Log = n
			if n++; all {
				col.Log = c.at
			}
			if at, ok := ids.of[c.key]; ok {
				col.Held = at
			}
		}
		l.Columns = append(l.Columns, col)
	}
}

// readKey adds the columns that only the key needs to those that are read.
func (l *Layout) readKey(p *Pairing, log *arrow.Schema) error {
	for _, c := range p.Log {
		f, err := c.Resolve(log, p.IgnoreCase)
		if err != nil {
			return err
		}
		if !slices.Contains(l.Read, f.Index[0]) {
			l.Read = append(l.Read, f.Index[0])
		}
	}
	return nil
}

// LogNames returns the names of the log's columns in the answer, and with withKey
// those that only the key needs; nil: all columns. Each log file has the same; f is
// one of them.
func (a *Answer) LogNames(f *source.File, withKey bool) []string {
	names := []string{}
	switch {
	case a.RowsOfLog() && a.wanted == nil, !a.RowsOfLog() && a.Layouts[f].Read == nil:
		return nil
	case a.RowsOfLog():
		for _, w := range a.wanted {
			names = append(names, w.name)
		}
		return names
	}
	l := a.Layouts[f]
	read := l.Read
	if !withKey {
		read = read[:l.Kept]
	}
	for _, i := range read {
		names = append(names, f.Schema().Field(i).Name)
	}
	return names
}

// ScanOptions returns the options of a scan that keeps the log's columns of the
// answer, and with withKey those of the key.
func (a *Answer) ScanOptions(f *source.File, withKey bool) keyscan.Options {
	o := a.opts
	return keyscan.Options{
		ScanOptions: keyscan.ScanOptions{
			Columns:    a.LogNames(f, withKey),
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
func (a *Answer) chooser(ids *IDColumns, log *arrow.Schema) *chooser {
	return &chooser{typ: a.typ, log: log, ids: ids.all, shared: ids.Shared, suffix: a.opts.Suffix, ignoreCase: a.opts.IgnoreCase}
}

// sameClass reports whether keys of two types are of one class, before any rule is
// applied.
func sameClass(a, b arrow.DataType) bool {
	c, err := keys.ClassOf(a)
	d, err2 := keys.ClassOf(b)
	return err == nil && err2 == nil && (c == d || c == keys.Null || d == keys.Null)
}
