package adapt

import (
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// Union returns the schema that can hold the rows of all files without loss.
//
// Columns are matched by name, at the top level and within structs. The first
// file's columns come first, in its order, then new ones in order of appearance.
// Elements of lists and keys and values of maps are matched by position, so writers
// may name the groups in between differently; the result has the first file's
// names. A list in the three-level form does not match one in an older form. Groups
// with other annotations (VARIANT) must be equal in all files.
//
// A column is optional if some file declares it optional, or if a file lacks it
// while having the group that contains it. A missing column under a repeated field
// without annotation becomes an empty list, because the format has no NULL for it.
//
// Types are widened only where every value stays what it is:
//
//	integers        to more bits; unsigned ones with signed ones to signed
//	                ones of more bits; of 16 bits with FLOAT to FLOAT, of 32
//	                with FLOAT or DOUBLE to DOUBLE
//	FLOAT           to DOUBLE
//	DECIMAL(p,s)    to the larger p, with equal s, in INT32, INT64,
//	                FIXED_LEN_BYTE_ARRAY or BYTE_ARRAY, whichever of theirs
//	                comes last
//	TIME, TIMESTAMP to the finer unit, both being instants or both not; a value
//	                that then overflows is an error when it is read
//	NULL            to any type: a column whose writer saw only NULLs
//
// Nothing else is widened: text does not match bytes, ENUM and JSON do not match
// STRING, INT96 does not match TIMESTAMP, 64-bit integers do not match DOUBLE.
//
// Field ids are kept if all files agree on them: every column has the same id in
// all files, no id belongs to two columns (unless it already does within one file),
// and either all files have ids or none has. Otherwise all are dropped, because
// readers that match by id take a column without one as missing if others have one.
//
// Schemas without a union are an error that wraps fault.ErrMismatch and names the
// column, both types and both files.
//
// If columns is not nil, the result is the union of the top-level columns with
// these names only, in this order. Each must be in some file and be named once.
func Union(files []*parquet.File, columns []string) ([]meta.Element, error) {
	if len(files) == 0 {
		return nil, faults.Mismatch(fault.At{}, "files", "one at the least", "none")
	}
	u := unifier{ids: true}
	root := &column{first: fieldsOf(files[0]), file: files[0].Name}
	for i, f := range files {
		u.file, u.number = f.Name, i+1
		from := fieldsOf(f)
		if columns != nil {
			from.children = slices.DeleteFunc(from.children, func(c *field) bool { return !slices.Contains(columns, c.Name) })
		}
		root.groups++
		if err := u.children(root, from); err != nil {
			return nil, err
		}
		u.countIDs(from)
	}
	if columns != nil {
		if err := root.order(columns); err != nil {
			return nil, err
		}
	}
	u.ids = u.ids && u.idsHold(root)
	schema, err := u.elements(nil, root, nil)
	if err != nil {
		return nil, err
	}
	if _, err := parquet.SchemaFile(schema, ""); err != nil {
		return nil, err
	}
	return schema, nil
}

// order sorts the children by the given names, which must cover all of them.
func (c *column) order(names []string) error {
	c.children = c.children[:0]
	for _, name := range names {
		child := c.childName[name]
		if child == nil {
			e := faults.Mismatch(fault.At{Column: name}, "columns", "names of some file's", "one that no file has")
			e.Err = quiet.Error{Err: fault.ErrNoColumn}
			return e
		}
		c.children = append(c.children, child)
	}
	return nil
}

// Covers returns nil if a file's rows can be converted to the schema without
// dropping a column other than those named. Otherwise the error wraps fault.ErrMismatch and names the
// first column that the schema lacks or that does not fit. See [New] for
// schemas that may drop columns.
func Covers(schema []meta.Element, f *parquet.File, droppable []string) error {
	to, err := parquet.SchemaFile(schema, "")
	if err != nil {
		return err
	}
	root := fieldsOf(to)
	for _, c := range fieldsOf(f).children {
		if slices.Contains(droppable, c.Name) {
			continue
		}
		if have, err := root.named(c.Name); err != nil {
			return err
		} else if have == nil {
			return faults.Of(cause.Schemas, faults.Mismatch(fault.At{File: f.Name, Column: c.Name}, "the given schema has no such column",
				"one of "+root.names(), c.describe())).
				WithHint("give a schema that has it, or name the columns to keep")
		}
		if err := known(c, f.Name, []string{c.Name}); err != nil {
			return err
		}
	}
	_, err = New(f, schema)
	return err
}

// known refuses annotations that cannot be compared.
func known(d *field, file string, path []string) error {
	if d.unknown() {
		return faults.Unsupported(fault.At{File: file, Column: strings.Join(path, ".")},
			"an unknown annotation, which cannot be compared with another file's").
			WithHint("write to a directory, where each file keeps its own types, or leave the column out")
	}
	for _, c := range d.children {
		if err := known(c, file, append(path, c.Name)); err != nil {
			return err
		}
	}
	return nil
}

// column is a node of the union under construction.
type column struct {
	first    *field // gives the name and form; nil while the column has only NULLs
	null     *field // the first version with only NULLs
	file     string // file of first
	nullFile string // file of null

	count    int  // files that have the column
	groups   int  // files in which it is a group
	last     int  // number of the last file that has it
	optional bool // in some file

	types     []valueType // of a leaf: all distinct types
	files     []string    // the first file with each of types
	children  []*column
	childName map[string]*column
}

// unifier adds files to a union one at a time.
type unifier struct {
	file   string // the file being added
	number int    // its number, from 1
	path   []string

	ids            bool // field ids agree so far
	with, without  bool // some file has field ids; some file has none
	repeatsInInput bool // some file uses an id twice
}

func (u *unifier) at() fault.At {
	return fault.At{File: u.file, Column: strings.Join(u.path, ".")}
}

// conflict returns the error for a column whose versions cannot be united.
func (u *unifier) conflict(what, file, want, got string) error {
	return faults.Of(cause.Schemas, faults.Mismatch(u.at(), what, want+" as in "+file, got)).
		WithHint("write to a directory, where each file keeps its own types, or leave the column out")
}

// add adds one file's version of the column.
func (u *unifier) add(c *column, n *field) error {
	if c.last == u.number {
		return faults.Unsupported(u.at(), "two columns with the same name").
			WithHint("rename one of them")
	}
	c.last = u.number
	c.count++
	if before := c.sample(); before != nil {
		u.ids = u.ids && before.FieldID == n.FieldID
		if before.unknown() && n.unknown() {
			return known(n, u.file, u.path)
		}
	}
	c.optional = c.optional || n.Repetition == format.Optional
	if n.allNull() {
		if c.null == nil {
			c.null, c.nullFile = n, u.file
		}
		return u.nullable(c)
	}
	if c.first == nil {
		c.first, c.file = n, u.file
	}
	if err := u.alike(c, n); err != nil {
		return err
	}
	if n.form != leafForm {
		c.groups++
		return u.children(c, n)
	}
	if !slices.ContainsFunc(c.types, func(t valueType) bool { return t.same(&n.value) }) {
		return u.widen(c, n)
	}
	return nil
}

// sample returns some file's version of the column, nil if there is none yet.
func (c *column) sample() *field {
	if c.first != nil {
		return c.first
	}
	return c.null
}

// nullable refuses NULLs where the format cannot represent them.
func (u *unifier) nullable(c *column) error {
	if c.null != nil && c.first != nil && c.first.Repetition == format.Repeated {
		return u.conflict("the column's type", c.nullFile, c.null.describe(), c.first.describe())
	}
	return nil
}

// alike compares everything but the types of leaves and the children.
func (u *unifier) alike(c *column, n *field) error {
	f := c.first
	same := f.form == n.form && (f.Repetition == format.Repeated) == (n.Repetition == format.Repeated) &&
		(n.form == leafForm || sameGroup(f, n))
	if same && n.byPosition() {
		same = len(f.children) == len(n.children)
	}
	if same && n.fixed {
		same = f.Name == n.Name && f.Repetition == n.Repetition && (n.form != leafForm || f.value.same(&n.value))
	}
	if !same {
		want, got := f.describe(), n.describe()
		if want == got && f.form != n.form {
			want, got = want+f.form.remark(), got+n.form.remark()
		}
		return u.conflict("the column's type", c.file, want, got)
	}
	return u.nullable(c)
}

// remark distinguishes lists and maps that have the same annotation.
func (f form) remark() string {
	switch f {
	case listForm:
		return " in three levels"
	case bareForm:
		return " in the older form of two levels"
	case fixedForm:
		return " in a form of its own"
	}
	return ""
}

// widen adds a type to those of a leaf.
func (u *unifier) widen(c *column, n *field) error {
	for i := range c.types {
		if _, ok := widest([]valueType{c.types[i], n.value}); !ok {
			return u.conflict("the column's type", c.files[i], c.types[i].String(), n.value.String())
		}
	}
	c.types = append(c.types, n.value)
	c.files = append(c.files, u.file)
	return nil
}

// children adds the children of one file's version of a group.
func (u *unifier) children(c *column, n *field) error {
	depth := len(u.path)
	for i, child := range n.children {
		u.path = append(u.path[:depth], child.Name)
		if err := u.add(c.child(n, i), child); err != nil {
			return err
		}
	}
	u.path = u.path[:depth]
	return nil
}

// child returns the column that child i of n is a version of.
func (c *column) child(n *field, i int) *column {
	if n.byPosition() {
		if i == len(c.children) {
			c.children = append(c.children, new(column))
		}
		return c.children[i]
	}
	name := n.children[i].Name
	if c.childName == nil {
		c.childName = make(map[string]*column)
	}
	known := c.childName[name]
	if known == nil {
		known = new(column)
		c.childName[name] = known
		c.children = append(c.children, known)
	}
	return known
}

// countIDs records the field ids of a file's schema.
func (u *unifier) countIDs(root *field) {
	seen := map[int32]bool{}
	var walk func(*field)
	walk = func(d *field) {
		for _, c := range d.children {
			if c.FieldID >= 0 {
				u.repeatsInInput = u.repeatsInInput || seen[c.FieldID]
				seen[c.FieldID] = true
			}
			walk(c)
		}
	}
	walk(root)
	if len(root.children) > 0 {
		u.with = u.with || len(seen) > 0
		u.without = u.without || len(seen) == 0
	}
}

// idsHold reports whether the union may have field ids. Some writers number the
// fields of each struct from 1; that does not count as repetition.
func (u *unifier) idsHold(root *column) bool {
	if u.with && u.without {
		return false
	}
	hold := true
	seen := map[int32]bool{}
	var walk func(*column)
	walk = func(c *column) {
		if u.repeatsInInput {
			seen = map[int32]bool{}
		}
		for _, child := range c.children {
			if id := child.sample().FieldID; id >= 0 {
				hold = hold && !seen[id]
				seen[id] = true
			}
		}
		for _, child := range c.children {
			walk(child)
		}
	}
	walk(root)
	return hold
}

// elements appends the union's schema elements, starting with c. parent is nil for
// the root.
func (u *unifier) elements(out []meta.Element, c, parent *column) ([]meta.Element, error) {
	e := *c.sample().elem
	if len(c.types) > 0 {
		t, ok := widest(c.types)
		if !ok { // cannot happen: each pair of types has a common type, and therefore all do
			return nil, faults.Of(cause.Schemas, faults.Mismatch(fault.At{Column: e.Name}, "the column's type", "a common type with "+c.types[0].String(), "none"))
		}
		from := t.elem
		e.Type, e.TypeLength = from.Type, from.TypeLength
		e.ConvertedType, e.LogicalType = from.ConvertedType, from.LogicalType
		e.Scale, e.Precision = from.Scale, from.Precision
	}
	if parent != nil && e.RepetitionType.V != format.Repeated &&
		(c.optional || c.count < parent.groups) {
		e.RepetitionType = thrift.New(format.Optional)
	}
	if !u.ids {
		e.FieldID = thrift.Null[int32]{}
	}
	if c.first != nil && c.first.form != leafForm {
		e.NumChildren = thrift.New(int32(len(c.children)))
	}
	out = append(out, e)
	for _, child := range c.children {
		var err error
		if out, err = u.elements(out, child, c); err != nil {
			return nil, err
		}
	}
	return out, nil
}
