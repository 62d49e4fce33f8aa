package adapt

import (
	"strings"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// Conversion converts the pages of one file to another schema, such as a [Union]. It
// is immutable and safe for concurrent use.
type Conversion struct {
	Leaves []LeafSource // one per leaf of the target, in its order
}

// LeafSource describes how the pages of one leaf of the target are made from the
// file. It is immutable and safe for concurrent use.
type LeafSource struct {
	Leaf       int  // the file's leaf whose pages are read; -1 if Missing
	Missing    bool // no page is read: every row has the same single entry
	LevelsOnly bool // the values of the pages read are not used

	file     *parquet.File
	column   string // dotted name in the target, for errors
	identity bool

	levels  []uint8   // target's definition level, by the file's
	defined bool      // the target has definition levels
	maxRep  uint8     // entries of a higher repetition level are dropped
	repeats bool      // the target has repetition levels
	values  *widening // nil if values stay as they are
	full    int       // if noValue: the definition level of a value
	noValue bool      // the file annotates the column as always NULL
}

// Identity reports whether pages need no conversion.
func (s *LeafSource) Identity() bool { return s.identity }

// New returns the conversion of the file's rows to the schema. Columns are
// matched as in [Union], top-level ones in any order. Columns that the file lacks
// must be optional or repeated in the schema. Top-level columns that the schema
// lacks are dropped (see [parquet.File.Project]). A field of a struct that the schema lacks
// is an error, and so is a column whose values the target type cannot represent.
func New(from *parquet.File, to []meta.Element) (*Conversion, error) { return convert(from, to, false) }

// NewPicked is New, but fields of structs that the schema lacks are dropped.
func NewPicked(from *parquet.File, to []meta.Element) (*Conversion, error) {
	return convert(from, to, true)
}

func convert(from *parquet.File, to []meta.Element, drops bool) (*Conversion, error) {
	target, err := parquet.SchemaFile(to, "")
	if err != nil {
		return nil, err
	}
	a := matcher{from: from, target: target, drops: drops, leaves: make([]LeafSource, len(target.Leaves))}
	root, top := fieldsOf(target), fieldsOf(from)
	for _, dst := range root.children {
		src, err := top.named(dst.Name)
		if err != nil {
			return nil, a.inFile(err)
		}
		if err := a.node(src, dst, top, nil); err != nil {
			return nil, err
		}
	}
	return &Conversion{Leaves: a.leaves}, nil
}

// Optional returns the source of a leaf in a schema in which its top-level column is
// optional, while it is required in the file.
func Optional(f *parquet.File, leaf int) *LeafSource {
	l := &f.Leaves[leaf]
	s := &LeafSource{Leaf: leaf, file: f, column: l.Dotted, defined: true, repeats: l.MaxRep > 0, maxRep: uint8(l.MaxRep)}
	for d := range l.MaxDef + 1 {
		s.levels = append(s.levels, uint8(d+1))
	}
	return s
}

// step is a pair of matching nodes on the path to a leaf.
type step struct{ src, dst *field }

// matcher walks both schemas in parallel.
type matcher struct {
	from, target *parquet.File
	drops        bool // fields of structs
	leaves       []LeafSource
}

func (a *matcher) inFile(err error) error {
	return &fault.Error{Kind: fault.ErrUnsupported, At: fault.At{File: a.from.Name}, What: "columns are found by name", Err: err}
}

func (a *matcher) mismatch(path []step, dst *field, want, got string) error {
	var names []string
	for _, s := range path {
		names = append(names, s.dst.Name)
	}
	names = append(names, dst.Name)
	return faults.Mismatch(fault.At{File: a.from.Name, Column: strings.Join(names, ".")},
		"the file's column does not fit the output's schema", want, got).
		WithHint("write to a directory, where each file keeps its own types, or give a schema that holds both")
}

// node matches dst with src, its counterpart in the file, which is nil if it is
// missing. above is the file's node that would be src's parent.
func (a *matcher) node(src, dst, above *field, path []step) error {
	switch {
	case src == nil && dst.Repetition == format.Required:
		return a.mismatch(path, dst, "required "+dst.describe(), "no such column")
	case src == nil:
		a.missing(dst, above, false, path)
		return nil
	case src.allNull() && !dst.allNull():
		if dst.Repetition != format.Optional {
			return a.mismatch(path, dst, "an optional column", src.describe())
		}
		a.missing(dst, src, true, path)
		return nil
	case !matching(src, dst):
		return a.mismatch(path, dst, dst.describe(), src.describe())
	case src.Repetition != dst.Repetition && (src.Repetition != format.Required || dst.Repetition != format.Optional):
		return a.mismatch(path, dst, strings.ToLower(dst.Repetition.String()), strings.ToLower(src.Repetition.String()))
	}
	path = append(path[:len(path):len(path)], step{src, dst})
	if dst.form == leafForm {
		return a.present(src, dst, path)
	}
	return a.children(src, dst, path)
}

// matching reports whether two nodes agree in everything but repetition, type and
// children.
func matching(src, dst *field) bool {
	if src.form != dst.form || src.fixed != dst.fixed ||
		(src.Repetition == format.Repeated) != (dst.Repetition == format.Repeated) {
		return false
	}
	if src.form != leafForm && !sameGroup(src, dst) || src.byPosition() && len(src.children) != len(dst.children) {
		return false
	}
	return !src.fixed || src.Name == dst.Name && src.Repetition == dst.Repetition &&
		(src.form != leafForm || src.value.same(&dst.value))
}

func (a *matcher) children(src, dst *field, path []step) error {
	taken := make(map[*field]bool, len(dst.children))
	for i, d := range dst.children {
		s, err := (*field)(nil), error(nil)
		if dst.byPosition() {
			s = src.children[i]
		} else if s, err = src.named(d.Name); err != nil {
			return a.inFile(err)
		}
		taken[s] = true
		if err := a.node(s, d, src, path); err != nil {
			return err
		}
	}
	for _, s := range src.children {
		if !taken[s] && !(a.drops && dst.form == structForm) {
			return a.mismatch(path, s, "no such field in the structure", s.describe())
		}
	}
	return nil
}

// present fills in the source of a leaf that the file has.
func (a *matcher) present(src, dst *field, path []step) error {
	s := &a.leaves[dst.Leaf]
	*s = a.source(dst, src.Leaf)
	s.levels = levelTable(path)
	s.maxRep = uint8(src.maxRep)
	if src.value.same(&dst.value) {
		s.identity = src.maxDef == dst.maxDef
		return nil
	}
	t, ok := widest([]valueType{dst.value, src.value})
	if !ok || !t.same(&dst.value) {
		return a.mismatch(path[:len(path)-1], dst, dst.value.String(), src.value.String())
	}
	s.values = newWidening(&src.value, &dst.value)
	s.identity = s.values == nil && src.maxDef == dst.maxDef
	return nil
}

func (a *matcher) source(dst *field, leaf int) LeafSource {
	return LeafSource{
		Leaf: leaf, file: a.from, column: a.target.Leaves[dst.Leaf].Dotted,
		defined: dst.maxDef > 0, repeats: dst.maxRep > 0,
	}
}

// levelTable returns the target's definition level for each definition level of the
// path's last file node. A definition level counts the optional and repeated nodes
// of a path that are defined. So at level d the first d such nodes of the file are
// defined and the next one is not, and all of the target's nodes before that one
// are defined.
func levelTable(path []step) []uint8 {
	var table []uint8
	dst := uint8(0)
	for _, s := range path {
		if s.src.Repetition != format.Required {
			table = append(table, dst)
		}
		if s.dst.Repetition != format.Required {
			dst++
		}
	}
	return append(table, dst)
}

// missing fills in the sources of all leaves of dst, which is not in the file or is always NULL
// there (noValue). path leads to the group that contains dst. The levels of another leaf, the
// proxy, tell where that group is present: a leaf of below, which is the group or the column
// of NULLs. Each occurrence of the group gives one entry of dst; the proxy's entries that
// repeat within an occurrence are dropped.
func (a *matcher) missing(dst, below *field, noValue bool, path []step) {
	if dst.form != leafForm {
		for _, c := range dst.children {
			a.missing(c, below, noValue, path)
		}
		return
	}
	s := &a.leaves[dst.Leaf]
	*s = a.source(dst, -1)
	s.LevelsOnly = true
	s.levels = levelTable(path)
	if len(s.levels) == 1 && !noValue { // the group is present in every row
		s.Missing = true
		return
	}
	proxy := below.proxy(a.from)
	s.Leaf = proxy.Leaf
	for _, p := range path {
		if p.src.Repetition == format.Repeated {
			s.maxRep++
		}
	}
	for last := s.levels[len(s.levels)-1]; len(s.levels) <= proxy.maxDef; {
		s.levels = append(s.levels, last)
	}
	s.noValue, s.full = noValue, proxy.maxDef
}

// proxy returns the leaf under the node that is cheapest to read: the one with the
// lowest repetition level, and among these the smallest.
func (d *field) proxy(f *parquet.File) *field {
	var best *field
	var bestSize int64
	var walk func(*field)
	walk = func(n *field) {
		for _, c := range n.children {
			walk(c)
		}
		if n.Leaf < 0 {
			return
		}
		size := int64(0)
		for g := range f.Metadata.RowGroups {
			size += f.Metadata.RowGroups[g].Columns[n.Leaf].MetaData.TotalCompressedSize
		}
		if best == nil || n.maxRep < best.maxRep || n.maxRep == best.maxRep && size < bestSize {
			best, bestSize = n, size
		}
	}
	walk(d)
	return best
}
