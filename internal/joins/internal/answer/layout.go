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
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// Answer describes the rows that a join returns: their columns, and where each
// comes from. It is immutable.
type Answer struct {
	typ     Type
	opts    *Options
	wanted  []keys.Choice // columns, as the options name them; nil: all
	inUnion []chosen      // columns, if some are wanted of a union's, in its views; else nil
	Counts  bool          // rows are counted, not made
	// Unites says that the log's columns are those of a union of its files, as they are by default
	// if fields of structs are chosen.
	Unites bool
	// mirrored are columns of the log that the answer leaves out unless they are
	// wanted, because it is written to a directory whose paths name their values.
	mirrored []string
	Pages    bool // pairs are made of pages, not of arrays

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
	scan := a.scanOptions(ofLog(a.wanted))
	if err := scan.CheckSchema(); err != nil {
		return nil, err
	}
	log := logs[0].Schema()
	if a.Unites = scan.United(); !a.RowsOfLog() && a.Unites {
		if log, err = output.AllColumns(&scan, logs); err != nil {
			return nil, err
		}
	}
	if a.IDs, err = a.newIDColumns(p, ids, logs[0].Name(), log); err != nil {
		return nil, err
	}
	views, err := a.views(log, logs)
	if err != nil {
		return nil, err
	}
	var last *Layout
	for i, f := range logs {
		if last != nil && views[i].SharesSchema(last.Log) {
			a.Layouts[f] = last
			continue
		}
		l, err := a.newLayout(views[i])
		if err != nil {
			return nil, f.Failed(err)
		}
		if a.RowsOfLog() && !a.Unites {
			kept := a.ScanOptions(f)
			if l.Schema, err = kept.SchemaOf(f); err != nil {
				return nil, err
			}
		}
		a.Layouts[f], last = l, l
	}
	return a, nil
}

// choose returns the columns of the answer in order, and the fields of each that are chosen alone.
func (a *Answer) choose(ids *IDColumns, log *arrow.Schema) ([]chosen, map[chosen][]keys.Path, error) {
	c := &chooser{typ: a.typ, log: log, ids: ids.all, shared: ids.Shared, suffix: a.opts.Suffix, hidden: a.mirrored, ignoreCase: a.opts.IgnoreCase}
	columns, fields, err := keys.Choose(a.wanted, c.find, c.all)
	if err != nil {
		err = fmt.Errorf("columns of the answer: %w", err)
	}
	return columns, fields, err
}

// views returns the log files as pairs see them: with the columns of the union, if there is one.
// log has all columns.
func (a *Answer) views(log *arrow.Schema, logs []*source.File) ([]*source.File, error) {
	if a.RowsOfLog() || !a.Unites {
		return logs, nil
	}
	opts := a.scanOptions(nil)
	opts.Mirrored = a.mirrored != nil
	if a.wanted != nil {
		columns, fields, err := a.choose(a.IDs, log)
		if err != nil {
			return nil, err
		}
		top := 0
		for i := range columns {
			c := &columns[i]
			if c.ofIDs {
				continue
			}
			for _, below := range fields[*c] {
				opts.Columns = append(opts.Columns, append(keys.Path{log.Field(c.at).Name}, below...).String())
			}
			c.at = top
			top++
		}
		if top == 0 {
			return logs, nil // columns of the IDs alone
		}
		a.inUnion = columns
	}
	return output.United(opts, logs)
}

// RowsOfLog reports whether the answer is unchanged rows of the log. Then the scan
// itself makes it and copies pages where it can.
func (a *Answer) RowsOfLog() bool { return !a.typ.ColumnsOfIDs }

// Counting returns the answer whose rows are counted, not made.
func (a *Answer) Counting() *Answer {
	c, ids := *a, *a.IDs
	ids.Rows, ids.Held, c.IDs, c.Counts = false, nil, &ids, true
	return &c
}

// OfPages returns the answer whose pairs are made of pages.
func (a *Answer) OfPages(ids []*source.File) (_ *Answer, err error) {
	c := *a
	if c.Pages = true; c.IDs.Rows {
		c.IDs, err = c.IDs.forPages(ids)
	}
	return &c, err
}

// Layout says how rows of one log file become rows of the answer.
type Layout struct {
	Log     *source.File // the file, or a view of it with the columns of a union
	Schema  *arrow.Schema
	Columns []tables.PairColumn
}

// newLayout lays out the answer for a log file.
func (a *Answer) newLayout(f *source.File) (*Layout, error) {
	log, ids := f.Schema(), a.IDs
	l := &Layout{Log: f}
	if a.RowsOfLog() && a.Unites { // the columns are those of several files
		l.Schema = log
		return l, nil
	}
	columns := a.inUnion
	if columns == nil {
		var err error
		if columns, _, err = a.choose(ids, log); err != nil {
			return nil, err
		}
	}
	taken := map[string]bool{}
	for _, name := range a.mirrored {
		taken[ids.folded(name)] = true
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
	}
	for i, c := range columns {
		if c.ofIDs {
			fields[i] = a.idField(c, taken)
		}
	}
	for i, c := range columns {
		col := tables.PairColumn{Log: c.at, Table: -1, Name: fields[i].Name}
		if c.ofIDs {
			col.Log, col.Table = -1, ids.of[c.at]
		} else if at, ok := ids.of[c.key]; ok {
			col.Table = at
		}
		l.Columns = append(l.Columns, col)
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
	f := a.IDs.Held.Schema.Field(a.IDs.of[c.at])
	f = take.WithoutFieldKeys(f, take.FieldID)
	f.Nullable = f.Nullable || a.typ.KeepsLog
	for taken[a.IDs.folded(f.Name)] {
		f.Name += a.opts.Suffix
	}
	taken[a.IDs.folded(f.Name)] = true
	return f
}

// logNames returns the log's columns of the answer as a scan names them; nil: all. f is one of the
// log's files.
func (a *Answer) logNames(f *source.File) []string {
	if a.wanted == nil {
		return nil
	}
	if a.RowsOfLog() {
		return ofLog(a.wanted)
	}
	names, rest, l := []string{}, keys.Choice{}, a.Layouts[f]
	for i, f := range l.Log.Schema().Fields() {
		if slices.ContainsFunc(l.Columns, func(c tables.PairColumn) bool { return c.Log == i }) {
			names = append(names, keys.Path{f.Name}.String())
		} else if !slices.Contains(a.mirrored, f.Name) {
			rest.Except = append(rest.Except, keys.Choice{Path: keys.Path{f.Name}})
		}
	}
	if slices.ContainsFunc(a.wanted, func(w keys.Choice) bool { return w.Path == nil && w.Side != keys.IDsSide }) { // other files may have other columns
		return []string{rest.String()}
	}
	return names
}

// ScanOptions returns the options of a scan that keeps the log's columns of the answer.
func (a *Answer) ScanOptions(f *source.File) keyscan.Options { return a.scanOptions(a.logNames(f)) }

func (a *Answer) scanOptions(columns []string) keyscan.Options {
	o, mode := a.opts, a.opts.Schema
	if a.Unites {
		mode = dataset.UnionByName
	}
	return keyscan.Options{
		ScanOptions: keyscan.ScanOptions{
			Columns:    columns,
			IgnoreCase: o.IgnoreCase,
			Schema:     mode,
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

// sameClass reports whether keys of two types are of one class, before any rule is
// applied.
func sameClass(a, b arrow.DataType) bool {
	c, err := keys.ClassOf(a)
	d, err2 := keys.ClassOf(b)
	return err == nil && err2 == nil && (c == d || c == keys.Null || d == keys.Null)
}
