package parquet

import (
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Union returns the schema that holds the rows of all files without loss.
//
// Columns are found by name, top-level ones and those of structs; the first
// file's come first, in its order, then new ones as they appear. The elements
// of lists and the keys and values of maps are found by their place, so that
// writers may differ in how they call the groups between; the names are then
// the first file's. A list in the three-level form is not a list in an older
// one. Groups of other annotations (VARIANT) must be the same throughout.
//
// A column is optional when it is so in some file, or when some file lacks it
// while it has the group around it. A column under a repeated field without
// annotation is an empty list where it is missing: the format has no NULL for
// it.
//
// Types are widened only where each value stays what it is:
//
//	integers        to more bits; unsigned ones beside signed ones to signed
//	                ones of more bits; of 16 bits beside FLOAT to FLOAT, of 32
//	                beside FLOAT or DOUBLE to DOUBLE
//	FLOAT           to DOUBLE
//	DECIMAL(p,s)    to the larger p, s being the same, in INT32, INT64,
//	                FIXED_LEN_BYTE_ARRAY or BYTE_ARRAY, whichever of theirs
//	                comes last
//	TIME, TIMESTAMP to the finer unit, both being instants or both not; a value
//	                that does not fit then is an error when it is met
//	NULL            to any type: a column of which its writer saw NULLs only
//
// Nothing else is widened: text is not bytes, ENUM and JSON are not STRING,
// INT96 is not TIMESTAMP, 64-bit integers are not DOUBLE.
//
// Field ids stay when all files agree on them: every column has the same one
// wherever it is, no id is of two columns unless it is in one file already, and
// either all files have ids or none has. Otherwise all are dropped, as readers
// that go by ids take a column without one for missing when others have one.
//
// Schemas that have no union are a mismatch, whose error names the column,
// both types and both files.
//
// With columns, not nil, it is the union of the top-level columns of those
// names alone, in their order, whatever the others are. Each is in some file,
// and named once.
func Union(files []*File, columns []string) ([]SchemaElement, error) {
	if len(files) == 0 {
		return nil, fault.Mismatch(fault.At{}, "files", "one at the least", "none")
	}
	u := unifier{ids: true}
	root := &column{first: files[0].fields(), file: files[0].Name}
	for i, f := range files {
		u.file, u.number = f.Name, i+1
		from := f.fields()
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
	if _, err := schemaFile(schema, ""); err != nil {
		return nil, err
	}
	return schema, nil
}

// order puts the children into the order of the names, which are all that
// there are.
func (c *column) order(names []string) error {
	c.children = c.children[:0]
	for _, name := range names {
		child := c.childName[name]
		if child == nil {
			return fault.Mismatch(fault.At{Column: name}, "columns", "names of some file's", "one that no file has")
		}
		c.children = append(c.children, child)
	}
	return nil
}

// Covers tells whether a file's rows can be brought to the schema without
// leaving out a column: the error is a mismatch that names the first column
// that the schema lacks, or that does not fit. See [NewAdapter] for schemas
// that are meant to leave out columns.
func Covers(schema []SchemaElement, f *File) error {
	to, err := schemaFile(schema, "")
	if err != nil {
		return err
	}
	root := to.fields()
	for _, c := range f.fields().children {
		if have, err := root.named(c.Name); err != nil {
			return err
		} else if have == nil {
			return fault.Mismatch(fault.At{File: f.Name, Column: c.Name}, "the given schema has no such column",
				"one of "+root.names(), c.describe()).
				WithHint("give a schema that has it, or name the columns to keep")
		}
		if err := known(c, f.Name, []string{c.Name}); err != nil {
			return err
		}
	}
	_, err = NewAdapter(f, schema)
	return err
}

// known refuses annotations that cannot be compared.
func known(d *field, file string, path []string) error {
	if d.unknown() {
		return fault.Unsupported(fault.At{File: file, Column: strings.Join(path, ".")},
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

// column is a node of the union while it is made.
type column struct {
	first    *field // what gave it its name and form; nil while all was NULL
	null     *field // the first that was all NULL
	file     string // of first
	nullFile string // of null

	count    int  // files that have it
	groups   int  // of them, those where it is a group
	last     int  // the number of the last of them
	optional bool // in one of them

	types     []valueType // of a leaf: all that there are
	files     []string    // of types: where each was seen first
	children  []*column
	childName map[string]*column
}

// unifier adds files to a union, one after the other.
type unifier struct {
	file   string // the one that is added
	number int    // of it, from 1
	path   []string

	ids            bool // field ids agree so far
	with, without  bool // some file has field ids; has none
	repeatsInInput bool // one file has an id twice
}

func (u *unifier) at() fault.At {
	return fault.At{File: u.file, Column: strings.Join(u.path, ".")}
}

// conflict is the error for a column that differs beyond repair.
func (u *unifier) conflict(what, file, want, got string) error {
	return fault.Mismatch(u.at(), what, want+" as in "+file, got).
		WithHint("write to a directory, where each file keeps its own types, or leave the column out")
}

// add takes in one file's version of the column.
func (u *unifier) add(c *column, n *field) error {
	if c.last == u.number {
		return fault.Unsupported(u.at(), "two columns with the same name").
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

// sample is one file's version of the column, nil when there is none yet.
func (c *column) sample() *field {
	if c.first != nil {
		return c.first
	}
	return c.null
}

// nullable refuses a NULL where the format has none.
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

// remark tells lists and maps apart that are annotated alike.
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

// children takes in those of one file's version of a group.
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

// child returns what child i of n is a version of.
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

// countIDs looks at the field ids of a file's schema.
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

// idsHold tells whether the union may carry field ids. Some writers number
// the fields of each struct from 1; that is no repetition.
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

// elements appends the union's elements from c on. parent is nil for the root.
func (u *unifier) elements(out []SchemaElement, c, parent *column) ([]SchemaElement, error) {
	e := *c.sample().elem
	if len(c.types) > 0 {
		t, ok := widest(c.types)
		if !ok { // each two of them have a common type, so all have
			return nil, fault.Mismatch(fault.At{Column: e.Name}, "the column's type", "a common type with "+c.types[0].String(), "none")
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
