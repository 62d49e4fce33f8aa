package adapt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// form is how a node's children are matched with those in another schema.
type form uint8

const (
	leafForm   form = iota
	structForm      // a group without annotation: children by name
	listForm        // LIST in three levels, with any names: by position
	bareForm        // LIST whose repeated child is the element: by position
	mapForm         // MAP with keys and values: by position
	entryForm       // the repeated group of a listForm or mapForm: by position
	fixedForm       // any other annotated group with its contents: must be equal
)

// field is a schema node with everything that is compared.
type field struct {
	*meta.Node
	form     form
	fixed    bool // the node or a group that contains it is a fixedForm
	elem     *meta.Element
	value    valueType // of a leaf
	maxDef   int       // of a leaf
	maxRep   int       // of a leaf
	children []*field
}

// fieldsOf returns the root of the file's schema.
func fieldsOf(f *parquet.File) *field {
	next := 0
	return fieldOf(f, f.Root, nil, &next)
}

// fieldOf returns the field of n, the schema element at *next, with everything under
// it.
func fieldOf(f *parquet.File, n *meta.Node, parent *field, next *int) *field {
	out := &field{Node: n, elem: &f.Metadata.Schema[*next]}
	*next++
	if out.form = formOf(n, parent); out.form == fixedForm || parent != nil && parent.fixed {
		out.fixed = true
	}
	if n.Leaf >= 0 {
		l := &f.Leaves[n.Leaf]
		out.value = valueTypeOf(l, out.elem)
		out.maxDef, out.maxRep = l.MaxDef, l.MaxRep
	}
	out.children = make([]*field, len(n.Children))
	for i, c := range n.Children {
		out.children[i] = fieldOf(f, c, out, next)
	}
	return out
}

// formOf applies the format's rules for lists and maps of old writers
// (LogicalTypes.md, "Nested Types").
func formOf(n *meta.Node, parent *field) form {
	switch {
	case n.Leaf >= 0:
		return leafForm
	case parent != nil && parent.fixed:
		return fixedForm
	case parent != nil && (parent.form == listForm || parent.form == mapForm):
		return entryForm
	case n.Logical.Kind == meta.None:
		return structForm
	case n.Repetition == format.Repeated || len(n.Children) != 1 || n.Children[0].Repetition != format.Repeated:
		return fixedForm
	}
	inner := n.Children[0]
	switch n.Logical.Kind {
	case meta.List:
		if inner.Logical.Kind != meta.None && inner.Leaf < 0 {
			return fixedForm
		}
		if len(inner.Children) == 1 && inner.Children[0].Repetition != format.Repeated &&
			inner.Name != "array" && inner.Name != n.Name+"_tuple" {
			return listForm
		}
		return bareForm
	case meta.Map:
		if len(inner.Children) == 2 && inner.Logical.Kind == meta.None &&
			inner.Children[0].Repetition != format.Repeated && inner.Children[1].Repetition != format.Repeated {
			return mapForm
		}
	}
	return fixedForm
}

// byPosition reports whether the node's children are matched by position rather
// than name.
func (d *field) byPosition() bool { return d.form != structForm && d.form != leafForm }

// allNull reports whether the node is a column whose writer saw only NULLs, so that
// it had no type.
func (d *field) allNull() bool {
	return d.value.logical.Kind == meta.Null && d.Leaf >= 0 && d.Repetition == format.Optional && !d.fixed
}

// unknown reports whether the node cannot be compared because its annotation is not
// known.
func (d *field) unknown() bool { return d.Logical.Kind == meta.Unknown }

// sameGroup reports whether two groups have the same annotation.
func sameGroup(a, b *field) bool {
	return a.Logical.Kind == b.Logical.Kind && sameParameters(a.elem, b.elem)
}

// describe returns a short description of the node for messages.
func (d *field) describe() string {
	var parts []string
	if d.Repetition == format.Repeated {
		parts = append(parts, "repeated")
	}
	switch {
	case d.Leaf >= 0:
		parts = append(parts, d.value.String())
	case d.elem.LogicalType.Valid && d.elem.LogicalType.V.Value != nil:
		parts = append(parts, "group "+d.elem.LogicalType.V.String())
	case d.Logical.Kind == meta.List:
		parts = append(parts, "group LIST")
	case d.Logical.Kind == meta.Map:
		parts = append(parts, "group MAP")
	case d.Logical.Kind == meta.Unknown:
		parts = append(parts, "group of unknown annotation")
	default:
		parts = append(parts, "group")
	}
	return strings.Join(parts, " ")
}

// SameSchema reports whether rows of two schemas can be in one file without
// conversion: the same columns in the same order, with the same repetition, types,
// annotations and field ids. A converted type equals the logical type it stands
// for, and an annotated signed integer of full width equals an unannotated one. The
// root's name does not matter. Unknown annotations are never equal, unless a and b
// are the same slice. diff describes the first difference.
func SameSchema(a, b []meta.Element) (diff string, same bool) {
	if len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] || slices.EqualFunc(a, b, func(a, b meta.Element) bool { return a.Alike(&b) }) {
		return "", true
	}
	fa, err := parquet.SchemaFile(a, "")
	if err != nil {
		return "no valid schema: " + err.Error(), false
	}
	fb, err := parquet.SchemaFile(b, "")
	if err != nil {
		return "no valid schema: " + err.Error(), false
	}
	diff = difference(fieldsOf(fa), fieldsOf(fb), nil)
	return diff, diff == ""
}

// difference describes the first difference between two nodes, or returns "".
func difference(a, b *field, path []string) string {
	if len(path) > 0 {
		if d := differentNode(a, b); d != "" {
			return "column " + strings.Join(path, ".") + ": " + d
		}
	}
	for i := range max(len(a.children), len(b.children)) {
		switch {
		case i >= len(a.children):
			return "column " + join(path, b.children[i].Name) + " is in the second only"
		case i >= len(b.children):
			return "column " + join(path, a.children[i].Name) + " is in the first only"
		}
		ca, cb := a.children[i], b.children[i]
		if ca.Name != cb.Name {
			return "column " + join(path, ca.Name) + " stands where the second has " + join(path, cb.Name)
		}
		if d := difference(ca, cb, append(path, ca.Name)); d != "" {
			return d
		}
	}
	return ""
}

func differentNode(a, b *field) string {
	switch {
	case (a.Leaf >= 0) != (b.Leaf >= 0),
		a.Leaf >= 0 && !a.value.same(&b.value),
		a.Leaf < 0 && !sameGroup(a, b):
		return a.describe() + " and " + b.describe()
	case a.unknown():
		return "annotated with logical types that are not known here"
	case a.Repetition != b.Repetition:
		return strings.ToLower(fmt.Sprintf("%v and %v", a.Repetition, b.Repetition))
	case a.FieldID != b.FieldID:
		return fmt.Sprintf("field id %s and %s", idText(a.elem), idText(b.elem))
	}
	return ""
}

func idText(e *meta.Element) string {
	if !e.FieldID.Valid {
		return "none"
	}
	return fmt.Sprint(e.FieldID.V)
}

func join(path []string, name string) string {
	return strings.Join(append(path[:len(path):len(path)], name), ".")
}

// named returns the child with a name, nil if there is none. Two children with the
// name are an error.
func (d *field) named(name string) (*field, error) {
	var found *field
	for _, c := range d.children {
		if c.Name != name {
			continue
		}
		if found != nil {
			return nil, faults.Unsupported(fault.At{Column: name}, "two columns with the same name").WithHint("rename one of them")
		}
		found = c
	}
	return found, nil
}

// names lists the children, up to a limit.
func (d *field) names() string {
	const most = 20
	var list []string
	for i, c := range d.children {
		if i == most {
			list = append(list, fmt.Sprintf("and %d more", len(d.children)-most))
			break
		}
		list = append(list, c.Name)
	}
	return strings.Join(list, ", ")
}
