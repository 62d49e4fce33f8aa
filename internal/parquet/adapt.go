package parquet

import (
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/parquet-go/parquet-go/format"
)

// Adapter turns the pages of one file into those of another schema, such as
// [Union] makes. It is immutable and safe for concurrent use.
type Adapter struct {
	Leaves []LeafSource // one per leaf of the target, in its order
}

// LeafSource says how the pages of one leaf of the target are made from the
// file. It is immutable and safe for concurrent use.
type LeafSource struct {
	Leaf       int  // of the file, whose pages are read; -1 when none need be
	Missing    bool // no page need be read: every row is one and the same entry
	LevelsOnly bool // of the pages read, the values are not used

	file     *File
	column   string // of the target, dotted, for errors
	identity bool

	levels  []uint8   // by the file's definition level: the target's
	defined bool      // the target has definition levels
	maxRep  uint8     // entries of a higher repetition level are left out
	repeats bool      // the target has repetition levels
	values  *widening // nil when values stay as they are
	full    int       // with noValue: the definition level of a value
	noValue bool      // the file says that there are no values
}

// Identity reports whether pages pass as they are.
func (s *LeafSource) Identity() bool { return s.identity }

// NewAdapter finds out how rows of the file become rows of the schema: columns
// are matched as [Union] matches them, top-level ones in any order. Columns
// that the file lacks must be optional or repeated. Top-level columns that the
// schema lacks are left out (see [File.Project]); in structs they are an error, and
// so is every column whose values the target cannot hold as they are.
func NewAdapter(from *File, to []SchemaElement) (*Adapter, error) {
	target, err := schemaFile(to, "")
	if err != nil {
		return nil, err
	}
	a := matcher{from: from, target: target, leaves: make([]LeafSource, len(target.Leaves))}
	root, top := target.fields(), from.fields()
	for _, dst := range root.children {
		src, err := top.named(dst.Name)
		if err != nil {
			return nil, a.inFile(err)
		}
		if err := a.node(src, dst, top, nil); err != nil {
			return nil, err
		}
	}
	return &Adapter{Leaves: a.leaves}, nil
}

// step is a pair of nodes that match, on the way down to a leaf.
type step struct{ src, dst *field }

// matcher walks both schemas.
type matcher struct {
	from, target *File
	leaves       []LeafSource
}

func (a *matcher) inFile(err error) error {
	return &fault.Error{Kind: fault.ErrUnsupported, At: fault.At{File: a.from.Name}, What: "columns are found by name", Err: err}
}

func (a *matcher) mismatch(path []step, src, dst *field, want, got string) error {
	var names []string
	for _, s := range path {
		names = append(names, s.dst.Name)
	}
	names = append(names, dst.Name)
	return fault.Mismatch(fault.At{File: a.from.Name, Column: strings.Join(names, ".")},
		"the file's column does not fit the output's schema", want, got).
		WithHint("write to a directory, where each file keeps its own types, or give a schema that holds both")
}

// node matches dst, whose counterpart in the file is src, nil when it is
// missing. above is the node of the file that src would be a child of.
func (a *matcher) node(src, dst, above *field, path []step) error {
	switch {
	case src == nil && dst.Repetition == format.Required:
		return a.mismatch(path, src, dst, "required "+dst.describe(), "no such column")
	case src == nil:
		a.missing(dst, above, false, path)
		return nil
	case src.allNull() && !dst.allNull():
		if dst.Repetition != format.Optional {
			return a.mismatch(path, src, dst, "an optional column", src.describe())
		}
		a.missing(dst, src, true, path)
		return nil
	case !matching(src, dst):
		return a.mismatch(path, src, dst, dst.describe(), src.describe())
	case src.Repetition != dst.Repetition && (src.Repetition != format.Required || dst.Repetition != format.Optional):
		return a.mismatch(path, src, dst, strings.ToLower(dst.Repetition.String()), strings.ToLower(src.Repetition.String()))
	}
	path = append(path[:len(path):len(path)], step{src, dst})
	if dst.form == leafForm {
		return a.present(src, dst, path)
	}
	return a.children(src, dst, path)
}

// matching tells whether two nodes that are there differ in nothing but
// repetition, type and children.
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
		if !taken[s] {
			return a.mismatch(path, s, s, "no such field in the structure", s.describe())
		}
	}
	return nil
}

// present fills the source of a leaf that the file has.
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
		return a.mismatch(path[:len(path)-1], src, dst, dst.value.String(), src.value.String())
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

// levelTable says, for each definition level of the file's last node, the
// target's. A level counts the nodes on the way, required ones left out, that
// are defined: so level d is that the next one after d of the file's is not,
// and all of the target's before that one are.
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

// missing fills the sources of all leaves below dst, which the file lacks, or
// has as a column without values. path leads to the group that it is missing
// from. Where that group is there, is said by the levels of a leaf below it, or
// of the column without values itself (below is either's node): an entry of dst
// for each of it, and none for what that leaf repeats within.
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
	if len(s.levels) == 1 && !noValue { // no level in the file tells rows apart
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

// proxy returns the leaf below the node that costs the least to read: of the
// least repetition, and of these the smallest.
func (d *field) proxy(f *File) *field {
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
