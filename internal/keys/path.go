package keys

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Path names a column: the names of its enclosing structs, outermost first, and its
// own.
type Path []string

// String returns the path in the syntax of ParsePaths, with names quoted where
// needed.
func (p Path) String() string {
	parts := make([]string, len(p))
	for i, s := range p {
		if s == "" || s[0] == '*' || strings.ContainsAny(s, `.,="|`) || strings.Contains(s, castMark) {
			s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
		}
		parts[i] = s
	}
	return strings.Join(parts, ".")
}

// Name returns the name of the column itself.
func (p Path) Name() string {
	if len(p) == 0 {
		return ""
	}
	return p[len(p)-1]
}

// Flat returns the name of the column where paths into structs are columns, too.
func (p Path) Flat() string {
	if len(p) > 1 {
		return p.String()
	}
	return p.Name()
}

// Column is a key column and, if it is cast, the type.
type Column struct {
	Path
	Cast   arrow.DataType // a type from [ParseType]; nil: no cast
	others []string       // names that it may have instead
}

// castMark separates a column from the type it is cast to.
const castMark = "::"

// String returns the column in the syntax of [ParseColumns].
func (c Column) String() string {
	if c.Cast == nil {
		return c.Path.String()
	}
	return c.Path.String() + castMark + TypeName(c.Cast)
}

// ParsePaths parses comma-separated column paths. a.b is field b of the struct a;
// "a.b" in double quotes is a column with that exact name, in which a quote is
// doubled.
func ParsePaths(s string) ([]Path, error) {
	columns, err := ParseColumns(s)
	if err != nil {
		return nil, err
	}
	paths := make([]Path, len(columns))
	for i, c := range columns {
		if c.Cast != nil {
			return nil, fmt.Errorf("columns %q: %s is cast, which only a key can be", s, c.Path)
		}
		paths[i] = c.Path
	}
	return paths, nil
}

// ParseColumns parses comma-separated key columns: paths in the syntax of
// [ParsePaths], each with an optional cast, PATH::TYPE, in the syntax of
// [ParseType].
func ParseColumns(s string) ([]Column, error) {
	pairs, err := parse(s, false)
	if err != nil {
		return nil, err
	}
	return each.Slice(pairs, func(p []Column) Column { return p[0] }), nil
}

// ParsePairs parses comma-separated pairs of key columns, LEFT=RIGHT. LEFT alone
// means LEFT=LEFT.
func ParsePairs(s string) (left, right []Column, err error) {
	pairs, err := parse(s, true)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range pairs {
		if p[0].others != nil || p[len(p)-1].others != nil {
			return nil, nil, faults.Errorf("columns %q: want one name for each column (open the files with {OtherNames})", s)
		}
		left = append(left, p[0])
		right = append(right, p[len(p)-1])
	}
	return left, right, nil
}

// names returns the column with its other names, as in NAME|OTHER.
func (c Column) names() string {
	names := each.Slice(append(slices.Clip(c.Path), c.others...), func(name string) string { return Path{name}.String() })
	return strings.Join(names, "|")
}

// SplitNames takes other names, NAME|OTHER, out of pairs of key columns.
func SplitNames(s string) (pairs string, left, right []string, err error) {
	all, err := parse(s, true)
	if err != nil {
		return "", nil, nil, err
	}
	var plain []string
	for _, p := range all {
		plain = append(plain, strings.Join(each.Slice(p, Column.String), "="))
		if p[0].others != nil {
			left = append(left, p[0].names())
		}
		if c := p[len(p)-1]; c.others != nil {
			right = append(right, c.names())
		}
	}
	if left == nil && right == nil {
		return s, nil, nil, nil
	}
	return strings.Join(plain, ","), left, right, nil
}

// ParseNames parses the names of a column.
func ParseNames(s string) ([]string, error) {
	all, err := parse(s, true)
	if err != nil {
		return nil, err
	}
	c := all[0][0]
	if c.names() != s {
		return nil, faults.Errorf("{OtherNames} %q: want names such as %s", s, c.names())
	}
	return append(slices.Clip(c.Path), c.others...), nil
}

// parse parses comma-separated items, each one column or, if pairs is set, one or
// two with an equals sign between them.
func parse(s string, pairs bool) (out [][]Column, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("columns %q: %w", s, err)
		}
	}()
	var item []Column
	var c Column
	rest := s
	for {
		name, tail, err := parseName(rest, pairs)
		c.Path = append(c.Path, name)
		for err == nil && pairs && strings.HasPrefix(tail, "|") {
			name, tail, err = parseName(tail[1:], pairs)
			c.others = append(c.others, name)
		}
		if err == nil && c.others != nil && (len(c.Path) > 1 || strings.HasPrefix(tail, ".")) {
			err = faults.Unsupported(fault.At{}, "other names of a field of a struct").WithHint(`name whole columns; quote a name that has a |, as '"a|b"'`)
		}
		if err == nil && strings.HasPrefix(tail, castMark) {
			c.Cast, tail, err = parseCast(tail[len(castMark):], pairs)
		}
		if err != nil {
			return nil, err
		}
		if tail == "" || tail[0] != '.' {
			item = append(item, c)
			c = Column{}
		}
		switch {
		case tail == "":
			return append(out, item), nil
		case tail[0] == ',':
			out, item = append(out, item), nil
		case tail[0] == '=' && len(item) > 1:
			return nil, errors.New("two equals signs: want LOGCOL=IDCOL, and a comma before the next pair")
		}
		rest = tail[1:]
	}
}

// parseCast parses a type that ends at a comma or, if pairs is set, an equals sign
// outside parentheses. tail starts with the separator.
func parseCast(s string, pairs bool) (t arrow.DataType, tail string, err error) {
	depth, end := 0, 0
	for ; end < len(s); end++ {
		c := s[end]
		if c == '(' {
			depth++
		} else if c == ')' {
			depth--
		} else if depth == 0 && (c == ',' || pairs && c == '=') {
			break
		}
	}
	t, err = ParseType(s[:end])
	return t, s[end:], err
}

// parseName parses one name up to a separator. tail starts with the separator.
func parseName(s string, pairs bool) (name, tail string, err error) {
	stops := ".,"
	if pairs {
		stops = ".,=|"
	}
	if !strings.HasPrefix(s, `"`) {
		n := strings.IndexAny(s, stops)
		if n < 0 {
			n = len(s)
		}
		if cast := strings.Index(s[:n], castMark); cast >= 0 {
			n = cast
		}
		if n == 0 {
			return "", "", fmt.Errorf("a column name is empty")
		}
		return s[:n], s[n:], nil
	}
	var b strings.Builder
	for s = s[1:]; ; {
		n := strings.IndexByte(s, '"')
		if n < 0 {
			return "", "", fmt.Errorf("a quote is not closed: want two, as '\"a.b\"'")
		}
		b.WriteString(s[:n])
		s = s[n+1:]
		if !strings.HasPrefix(s, `"`) {
			break
		}
		b.WriteByte('"')
		s = s[1:]
	}
	if s != "" && !strings.ContainsRune(stops, rune(s[0])) && !strings.HasPrefix(s, castMark) {
		return "", "", fmt.Errorf("something follows a closing quote")
	}
	return b.String(), s, nil
}

// Field is a column found in a schema.
type Field struct {
	Index []int          // field numbers, from the top of the schema down
	Names Path           // names of these fields, as the schema spells them
	Type  arrow.DataType // type of the column itself
}

// Resolve finds the column in the schema, ignoring the case of names if ignoreCase
// is set. A missing column is a [NotFoundError], which has the columns to choose
// from; a path into a repeated field wraps fault.ErrUnsupported.
func (p Path) Resolve(schema *arrow.Schema, ignoreCase bool) (Field, error) {
	if len(p) == 0 {
		return Field{}, errors.New("a column without a name: want its path")
	}
	if schema == nil {
		return Field{}, fmt.Errorf("column %s: no schema to find it in: got nil", p)
	}
	if at := schema.FieldIndices(p[0]); len(at) == 1 && len(p) == 1 && !ignoreCase { // a copy of all fields would be quadratic
		return Field{Index: slices.Clone(at), Names: Path{p[0]}, Type: schema.Field(at[0]).Type}, nil
	}
	if schema.Metadata().FindKey(HasNested+p.Flat()) >= 0 && len(p) > 1 {
		if at := schema.FieldIndices(p.Flat()); len(at) > 0 {
			at = at[len(at)-1:] // after a key of that very name
			return Field{Index: slices.Clone(at), Names: Path{schema.Field(at[0]).Name}, Type: schema.Field(at[0]).Type}, nil
		}
	}
	fields := schema.Fields()
	var out Field
	for depth, name := range p {
		i, err := find(fields, name, ignoreCase)
		if err != nil {
			return Field{}, p.notFound(schema, depth, fields, err)
		}
		out.Index, out.Names = append(out.Index, i), append(out.Names, fields[i].Name)
		out.Type = fields[i].Type
		if depth == len(p)-1 {
			break
		}
		st, ok := storage(out.Type).(*arrow.StructType)
		if !ok {
			if arrow.IsNested(out.Type.ID()) {
				return Field{}, faults.Unsupported(fault.At{Column: p.String()}, "a key below %s, which is repeated (%s)", p[:depth+1], out.Type)
			}
			return Field{}, p.notFound(schema, depth+1, nil, fmt.Errorf("%s is of type %s, not a struct (name the column itself, or a field of a struct)", p[:depth+1], out.Type))
		}
		fields = st.Fields()
	}
	return out, nil
}

// storage returns the type inside extensions.
func storage(t arrow.DataType) arrow.DataType {
	for {
		e, ok := t.(arrow.ExtensionType)
		if !ok {
			return t
		}
		t = e.StorageType()
	}
}

// find returns the position of the only field with a name.
func find(fields []arrow.Field, name string, ignoreCase bool) (int, error) {
	at := -1
	for i, f := range fields {
		if f.Name != name && !(ignoreCase && strings.EqualFold(f.Name, name)) {
			continue
		}
		if at >= 0 && ignoreCase {
			return 0, &collision{fields[at].Name, f.Name, name}
		}
		if at >= 0 {
			return 0, errTwoColumns{name}
		}
		at = i
	}
	if at < 0 {
		return 0, errNoColumn{name}
	}
	return at, nil
}

// errNoColumn reports that no field has the name.
type errNoColumn struct{ name string }

func (e errNoColumn) Error() string { return fmt.Sprintf("no column %q", e.name) }

// errTwoColumns reports that several fields have the name.
type errTwoColumns struct{ name string }

func (e errTwoColumns) Error() string { return fmt.Sprintf("two columns are called %q", e.name) }

// collision reports that two fields have the same name if case is ignored.
type collision struct{ first, second, name string }

func (e *collision) Error() string {
	return fmt.Sprintf("columns %q and %q are both %q if case is ignored", e.first, e.second, e.name)
}

// notFound returns the error for a path whose part at depth is not among fields.
func (p Path) notFound(schema *arrow.Schema, depth int, fields []arrow.Field, cause error) error {
	if errors.As(cause, new(*collision)) {
		return &NotFoundError{Path: p, Err: faults.WithHint(cause, "leave {IgnoreCase} out, and name one of them as it is spelled")}
	}
	if errors.As(cause, new(errTwoColumns)) {
		return &NotFoundError{Path: p, Err: faults.WithHint(cause, "rename one of them: a column that is named must be the only one of its name")}
	}
	dotted := strings.Join(p, ".")
	if len(p) > 1 && len(schema.FieldIndices(dotted)) == 1 {
		return &NotFoundError{Path: p, Err: faults.WithHint(cause, `the column of that very name is written '"%s"'`, dotted)}
	}
	if col, typ, ok := strings.Cut(p[len(p)-1], ":"); ok && len(p) == 1 && len(schema.FieldIndices(col)) == 1 {
		return &NotFoundError{Path: p, Err: faults.WithHint(cause, "a cast has two colons: %s::%s", col, typ)}
	}
	if err := aboutHeader(schema, cause); err != nil {
		return &NotFoundError{Path: p, Err: err}
	}
	e := &NotFoundError{Path: p, Name: p[min(depth, len(p)-1)], Err: cause}
	for i, f := range fields {
		if slices.ContainsFunc(fields[:i], func(g arrow.Field) bool { return f.Name == g.Name }) {
			continue
		}
		e.Have = append(e.Have, append(slices.Clone(p[:depth]), f.Name))
	}
	return e
}

// HasNested is the prefix of a key in the metadata of a schema in which a path into structs is
// a column; the rest is the column's name, see [Path.Flat].
const HasNested = "bloomjoin.nested "

// IsNested reports whether a column is that of a path into another one. It is the last of its name.
func IsNested(schema *arrow.Schema, at int) bool {
	name := schema.Field(at).Name
	same := schema.FieldIndices(name)
	return schema.Metadata().FindKey(HasNested+name) >= 0 && same[len(same)-1] == at
}

// NestedPaths returns the paths of columns that are in structs.
func NestedPaths(columns []Column) (paths [][]string) {
	for _, c := range columns {
		if len(c.Path) > 1 && !slices.ContainsFunc(paths, func(p []string) bool { return slices.Equal(p, c.Path) }) {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// HasHeader is a key in the schema's metadata of text whose first row has the names.
const HasHeader = "bloomjoin.header"

// aboutHeader returns an error about a missing column if the header was probably misread,
// else nil. A first row without names holds keys and is not shown.
func aboutHeader(schema *arrow.Schema, cause error) error {
	if schema.Metadata().FindKey(HasHeader) < 0 || !errors.As(cause, new(errNoColumn)) {
		return nil
	}
	if schema.NumFields() == 1 {
		for _, by := range []string{";", "\t", "|", ","} {
			if !strings.Contains(schema.Field(0).Name, by) {
				continue
			}
			if by == "\t" {
				return faults.WithHint(cause, "the first line is one field, with a tab in it: is it {Delimiter tab}?")
			}
			return faults.WithHint(cause, "the first line is one field, with %q in it: is it {Delimiter '%s'}?", by, by)
		}
	}
	if slices.ContainsFunc(schema.Fields(), func(f arrow.Field) bool { return !likeName(f.Name) }) {
		return faults.WithHint(cause, "the first line does not look like column names; is there no header? {NoHeader} names the columns 1, 2, …")
	}
	return nil
}

// likeName reports whether a text looks like the name of a column rather than a value.
func likeName(s string) bool {
	letters := 0
	for _, r := range s {
		switch {
		case r == '@':
			return false
		case unicode.IsLetter(r):
			letters++
		}
	}
	digits := strings.Count(s, "") - 1 - letters
	return letters > 0 && len(s) <= 64 && (digits < 8 || letters > digits)
}

// NotFoundError reports that a column cannot be found in a schema.
type NotFoundError struct {
	Path  Path   // what was asked for
	Name  string // the part of it that was not found, if Have is set
	Err   error  // why it cannot be found
	Have  []Path // the columns to choose from; nil: Err has a hint already
	Meant Path   // the one of Have that is known to be meant; nil: unknown
}

// Error returns the text of Err, and the columns to choose from in parentheses.
func (e *NotFoundError) Error() string {
	if len(e.Have) == 0 {
		return e.Err.Error()
	}
	return e.Err.Error() + " (" + e.choice() + ")"
}

// choice lists the columns to choose from, at most 20.
func (e *NotFoundError) choice() string {
	const most = 20
	if len(e.Have) == 1 {
		return fmt.Sprintf("there is only %q", e.Have[0].String())
	}
	names := each.Slice(e.Have[:min(len(e.Have), most)], Path.String)
	if len(e.Have) > most {
		names = append(names, "…")
	}
	return "there are " + strings.Join(names, ", ")
}

// Unwrap returns Err.
func (e *NotFoundError) Unwrap() error { return e.Err }

// Is reports whether target is [fault.ErrNoColumn].
func (e *NotFoundError) Is(target error) bool { return target == fault.ErrNoColumn }

// Cause returns the code of its cause.
func (*NotFoundError) Cause() cause.Code { return cause.NoColumn }

// Missing reports whether the schema has no column of that name, as opposed to
// several, or a path through something other than a struct.
func (e *NotFoundError) Missing() bool {
	return errors.As(e.Err, new(errNoColumn))
}

// ColumnsString returns columns in the syntax of [ParseColumns].
func ColumnsString(columns []Column) string {
	return strings.Join(each.Slice(columns, Column.String), ",")
}
