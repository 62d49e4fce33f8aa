package join

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/take"
	"github.com/bloomjoin/bloomjoin/join/internal/table"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
)

// The columns of an answer are those that Options.Columns names, in that order.
// By default they are the log's, in order, and then, unless the join is semi or
// anti, the ID set's. A key column that has one name on both sides stands there
// once, with the log's type, or the ID's if the log's is null; for an ID without
// a log row it holds the ID's key. Another ID column whose name a log column of
// the answer has gets Options.Suffix.

// defaultSuffix is that of Options.Suffix.
const defaultSuffix = "_ids"

// idColumns are the columns of the ID files that a join reads, and those that it
// keeps with the IDs. Their dictionaries, which differ from file to file, give
// way to their values.
type idColumns struct {
	rows   bool          // the answer needs the IDs' rows, not only their keys
	names  []string      // of the columns to read where rows are needed; nil: all
	schema *arrow.Schema // of these
	held   []int         // of these, the ones that the answer has
	shared []sharedKey   // key columns of one name on both sides
	all    *arrow.Schema // of the first file
	of     map[int]int   // by position in all: in held

	ignoreCase bool // of names
}

// sharedKey is a key column of one name on both sides.
type sharedKey struct {
	name  string
	idCol int  // in the ID files
	cast  bool // on one side or both
}

// newIDColumns finds out what is needed of the ID files, in a join with a log of
// the given schema.
func (j *Join) newIDColumns(log *arrow.Schema) (*idColumns, error) {
	t := j.opts.Type
	c := &idColumns{all: take.PlainSchema(j.ids[0].Schema()), of: map[int]int{}, ignoreCase: j.opts.IgnoreCase}
	if !t.columnsOfIDs() {
		return c, nil
	}
	for i, p := range j.right {
		if len(p.Path) == 1 && slices.Equal(p.Path, j.left[i].Path) {
			f, err := p.Resolve(c.all, j.opts.IgnoreCase)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", j.ids[0].Name, err)
			}
			c.shared = append(c.shared, sharedKey{p.Name(), f.Index[0], p.Cast != nil || j.left[i].Cast != nil})
		}
	}
	columns, err := j.chooser(c, log).choose(j.wanted)
	if err != nil {
		return nil, fmt.Errorf("%s: columns of the answer: %w", j.logs[0].Name, err)
	}
	var held []int // positions in all
	for _, col := range columns {
		switch {
		case col.ofIDs:
			held = append(held, col.at)
		case col.key >= 0 && t.keepsIDs():
			held = append(held, col.key)
		}
	}
	slices.Sort(held)
	if c.rows = !j.counts && (t.keepsIDs() || len(held) > 0); !c.rows {
		return c, nil
	}
	return c, j.readRows(c, held)
}

// readRows settles which columns of the ID files are read, where their rows are
// needed: those to hold, at positions in c.all, and the key.
func (j *Join) readRows(c *idColumns, held []int) error {
	read := slices.Clone(held)
	for _, p := range j.right {
		f, err := p.Resolve(c.all, j.opts.IgnoreCase)
		if err != nil {
			return fmt.Errorf("%s: %w", j.ids[0].Name, err)
		}
		read = append(read, f.Index[0])
	}
	slices.Sort(read)
	read = slices.Compact(read)
	if j.wanted == nil {
		read = nil
		for i := range c.all.Fields() {
			read = append(read, i)
		}
	} else {
		c.names = []string{}
		for _, i := range read {
			c.names = append(c.names, c.all.Field(i).Name)
		}
	}
	c.held = []int{}
	for i, at := range read {
		if slices.Contains(held, at) {
			c.of[at] = len(c.held)
			c.held = append(c.held, i)
		}
	}
	return j.alike(c)
}

// alike sets the schema of what is read of the ID files, which must be the same
// for all of them.
func (j *Join) alike(c *idColumns) error {
	var fields []arrow.Field
	for i, f := range j.ids {
		got := take.PlainSchema(f.Schema()).Fields()
		at, err := c.read(f)
		if err != nil {
			return err
		}
		if at != nil {
			got = table.FieldsAt(got, at)
		}
		if i == 0 {
			fields = slices.Clone(got)
			continue
		}
		if !slices.EqualFunc(fields, got, c.sameColumn) {
			return fault.Mismatch(fault.At{File: f.Name}, "columns of the ID files",
				fmt.Sprintf("%v as in %s", fields, j.ids[0].Name), fmt.Sprint(got)).
				WithHint("give the files the same columns, or choose those that are alike; a semi or anti join needs only the key")
		}
		for k, g := range got {
			fields[k].Nullable = fields[k].Nullable || g.Nullable
		}
	}
	md := c.all.Metadata()
	c.schema = arrow.NewSchema(fields, &md)
	return nil
}

// sameColumn compares names and types, not metadata.
func (c *idColumns) sameColumn(x, y arrow.Field) bool {
	return c.folded(x.Name) == c.folded(y.Name) && arrow.TypeEqual(x.Type, y.Type)
}

// read returns the positions of the columns to read of an ID file; nil: all.
func (c *idColumns) read(f *partition.File) ([]int, error) {
	if c.names == nil {
		return nil, nil
	}
	at := []int{}
	for _, name := range c.names {
		field, err := key.Path{name}.Resolve(f.Schema(), c.ignoreCase)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		at = append(at, field.Index[0])
	}
	return at, nil
}

// kept returns the positions of the columns to hold of an ID file.
func (c *idColumns) kept(f *partition.File) ([]int, error) {
	read, err := c.read(f)
	if read == nil {
		return c.held, err
	}
	at := make([]int, len(c.held))
	for i, h := range c.held {
		at[i] = read[h]
	}
	return at, nil
}

// layout is how the rows of one log file become rows of the answer.
type layout struct {
	schema  *arrow.Schema
	columns []column
	// read are the positions of the columns to read of the log file: first
	// those of the answer, in its order, then those that only the key needs;
	// nil: all are read, and in the answer.
	read []int
	kept int // how many of the columns that are read the answer has
	// plain: the log's dictionaries give way to their values. They have no
	// entry for the key of an ID without a row, and a NULL column that another
	// part of the answer has in a dictionary fits in no Arrow file.
	plain bool
}

// column is where a column of the answer comes from.
type column struct {
	log  int // column of the log as it is read, or -1
	held int // column of the IDs' rows as they are held, or -1; of a log column: the shared key's
}

// newLayout lays out the answer for a log file.
func (j *Join) newLayout(f *partition.File) (*layout, error) {
	log, ids, t := f.Schema(), j.idCols, j.opts.Type
	l := &layout{plain: t.keepsIDs()}
	if j.rowsOfLog() && j.opts.Schema == partition.Union { // whose columns are those of some file
		l.schema = log
		return l, nil
	}
	columns, err := j.chooser(ids, log).choose(j.wanted)
	if err != nil {
		return nil, fmt.Errorf("columns of the answer: %w", err)
	}
	fields := make([]arrow.Field, len(columns))
	taken := map[string]bool{}
	for i, c := range columns {
		if c.ofIDs {
			continue
		}
		f := log.Field(c.at)
		if t.keepsIDs() {
			if err := j.keyOnce(c, f); err != nil {
				return nil, err
			}
			f.Nullable, f.Type = true, take.PlainType(f.Type)
			if c.key >= 0 && f.Type.ID() == arrow.NULL { // which could not hold the ID's key
				f.Type = ids.all.Field(c.key).Type
			}
		}
		fields[i], taken[ids.folded(f.Name)] = f, true
		l.read = append(l.read, c.at)
	}
	l.kept = len(l.read)
	for i, c := range columns {
		if c.ofIDs {
			fields[i] = j.idField(c, taken)
		}
	}
	l.place(columns, ids)
	if j.wanted == nil {
		l.read = nil
	} else if err := j.readKey(l, log); err != nil {
		return nil, err
	}
	md := log.Metadata()
	if l.schema = arrow.NewSchema(fields, &md); !isLog(columns, log) {
		l.schema = partition.Reshaped(l.schema)
	}
	return l, nil
}

// keyOnce returns an error if a key column of one name on both sides cannot hold
// the keys of both.
func (j *Join) keyOnce(c chosen, f arrow.Field) error {
	if c.key < 0 {
		return nil
	}
	of := j.idCols.all.Field(c.key).Type
	cast := slices.ContainsFunc(j.idCols.shared, func(s sharedKey) bool { return s.idCol == c.key && s.cast })
	if !cast && sameClass(f.Type, of) {
		return nil
	}
	return fault.Unsupported(fault.At{Column: f.Name}, "a %s join whose key column has one name, but is %s in the log and %s in the IDs, or is cast", j.opts.Type, f.Type, of).
		WithHint("rename the ID's column and write {On %s=NAME}, so that each side keeps its own, or leave the key out with {Columns}", f.Name)
}

// idField returns the field of an ID column under a name that is not taken, and
// takes it.
func (j *Join) idField(c chosen, taken map[string]bool) arrow.Field {
	f := j.idCols.schema.Field(j.idCols.held[j.idCols.of[c.at]])
	f.Metadata = withoutFieldID(f.Metadata)
	f.Nullable = f.Nullable || j.opts.Type == Left || j.opts.Type == Full
	for taken[j.idCols.folded(f.Name)] {
		f.Name += j.opts.Suffix
	}
	taken[j.idCols.folded(f.Name)] = true
	return f
}

// folded returns a name in the form in which equal names are the same.
func (c *idColumns) folded(name string) string {
	if c.ignoreCase {
		return strings.ToLower(name)
	}
	return name
}

// place says where each column of the answer comes from.
func (l *layout) place(columns []chosen, ids *idColumns) {
	n := 0
	for _, c := range columns {
		col := column{log: -1, held: -1}
		if c.ofIDs {
			col.held = ids.of[c.at]
		} else {
			col.log = n
			n++
			if at, ok := ids.of[c.key]; ok {
				col.held = at
			}
		}
		l.columns = append(l.columns, col)
	}
}

// readKey adds the columns that only the key needs to those that are read.
func (j *Join) readKey(l *layout, log *arrow.Schema) error {
	for _, c := range j.left {
		f, err := c.Resolve(log, j.opts.IgnoreCase)
		if err != nil {
			return err
		}
		if !slices.Contains(l.read, f.Index[0]) {
			l.read = append(l.read, f.Index[0])
		}
	}
	return nil
}

// logNames returns the names of the log's columns that the answer has, and of
// those that only the key needs, if these are wanted; nil: all columns.
func (j *Join) logNames(withKey bool) []string {
	if j.wanted == nil {
		return nil
	}
	names := []string{}
	if j.rowsOfLog() {
		for _, w := range j.wanted {
			names = append(names, w.name)
		}
		return names
	}
	f := j.logs[0] // each file has the same
	l := j.layouts[f]
	read := l.read
	if !withKey {
		read = read[:l.kept]
	}
	for _, i := range read {
		names = append(names, f.Schema().Field(i).Name)
	}
	return names
}

// isLog reports whether the columns are the log's, as they stand there.
func isLog(columns []chosen, log *arrow.Schema) bool {
	for i, c := range columns {
		if c.ofIDs || c.at != i {
			return false
		}
	}
	return len(columns) == len(log.Fields())
}

// chooser returns what finds the columns of the answer in the log and the IDs.
func (j *Join) chooser(ids *idColumns, log *arrow.Schema) *chooser {
	return &chooser{typ: j.opts.Type, log: log, ids: ids.all, shared: ids.shared, suffix: j.opts.Suffix, ignoreCase: j.opts.IgnoreCase}
}

// sameClass reports whether keys of two types are of one class as they are
// stored: under a rule, those of others may be equal, too.
func sameClass(a, b arrow.DataType) bool {
	c, err := key.ClassOf(a)
	d, err2 := key.ClassOf(b)
	return err == nil && err2 == nil && (c == d || c == key.Null || d == key.Null)
}

// withoutFieldID drops the number by which Parquet knows a column, which is
// unique within one schema only.
func withoutFieldID(md arrow.Metadata) arrow.Metadata {
	var ks, vs []string
	for i, k := range md.Keys() {
		if k != "PARQUET:field_id" {
			ks, vs = append(ks, k), append(vs, md.Values()[i])
		}
	}
	return arrow.NewMetadata(ks, vs)
}
