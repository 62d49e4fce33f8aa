package adapt

import (
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// SameLayout reports whether pages of the first schema's leaves are pages of the
// second's, leaf by leaf: the same tree, apart from names and field ids, with the same
// types and annotations. A top-level column may be required in the first schema and
// optional in the second; then its definition levels grow by one. Unknown annotations
// are never equal.
func SameLayout(from, to []meta.Element) bool {
	a, err := parquet.SchemaFile(from, "")
	if err != nil {
		return false
	}
	b, err := parquet.SchemaFile(to, "")
	if err != nil {
		return false
	}
	src, dst := fieldsOf(a).children, fieldsOf(b).children
	if len(src) != len(dst) {
		return false
	}
	for i, d := range dst {
		s := src[i]
		grows := s.Repetition == format.Required && d.Repetition == format.Optional
		if s.Repetition != d.Repetition && !grows || !sameTree(s, d) {
			return false
		}
	}
	return true
}

// sameTree compares two nodes apart from their repetition, and all below them.
func sameTree(a, b *field) bool {
	switch {
	case a.form != b.form, a.unknown(), len(a.children) != len(b.children):
		return false
	case a.form == leafForm:
		return a.value.same(&b.value)
	case !sameGroup(a, b):
		return false
	}
	for i, c := range a.children {
		if c.Repetition != b.children[i].Repetition || !sameTree(c, b.children[i]) {
			return false
		}
	}
	return true
}
