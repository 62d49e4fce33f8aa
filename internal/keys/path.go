package keys

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/fault"
)

// Path names a column: the names of the structs that it stands in and its own.
type Path []string

// String returns the path as ParsePaths reads it, names quoted where needed.
func (p Path) String() string {
	parts := make([]string, len(p))
	for i, s := range p {
		if s == "" || strings.ContainsAny(s, `.,="`) {
			s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
		}
		parts[i] = s
	}
	return strings.Join(parts, ".")
}

// Name returns the name of the column itself.
func (p Path) Name() string { return p[len(p)-1] }

// ParsePaths reads column paths separated by commas: a.b is column b of the
// struct a; "a.b" in double quotes is a column of that very name, a quote in
// it doubled.
func ParsePaths(s string) ([]Path, error) {
	pairs, err := parse(s, false)
	if err != nil {
		return nil, err
	}
	paths := make([]Path, len(pairs))
	for i, p := range pairs {
		paths[i] = p[0]
	}
	return paths, nil
}

// ParsePairs reads pairs of column paths, LEFT=RIGHT, separated by commas. LEFT
// alone stands for LEFT=LEFT.
func ParsePairs(s string) (left, right []Path, err error) {
	pairs, err := parse(s, true)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range pairs {
		left = append(left, p[0])
		right = append(right, p[len(p)-1])
	}
	return left, right, nil
}

// parse reads items separated by commas, each one path or, if pairs, two with
// an equals sign between.
func parse(s string, pairs bool) ([][]Path, error) {
	var out [][]Path
	item, path := []Path{}, Path{}
	rest := s
	for {
		name, tail, err := parseName(rest, pairs)
		if err != nil {
			return nil, fmt.Errorf("columns %q: %w", s, err)
		}
		path = append(path, name)
		if tail == "" || tail[0] != '.' {
			item = append(item, path)
			path = Path{}
		}
		switch {
		case tail == "":
			return append(out, item), nil
		case tail[0] == ',':
			out, item = append(out, item), nil
		case tail[0] == '=' && len(item) > 1:
			return nil, fmt.Errorf("columns %q: two equals signs", s)
		}
		rest = tail[1:]
	}
}

// parseName reads one name up to a separator, which stays in tail.
func parseName(s string, pairs bool) (name, tail string, err error) {
	stops := ".,"
	if pairs {
		stops = ".,="
	}
	if !strings.HasPrefix(s, `"`) {
		n := strings.IndexAny(s, stops)
		if n < 0 {
			n = len(s)
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
			return "", "", fmt.Errorf("a quote is not closed")
		}
		b.WriteString(s[:n])
		s = s[n+1:]
		if !strings.HasPrefix(s, `"`) {
			break
		}
		b.WriteByte('"')
		s = s[1:]
	}
	if s != "" && !strings.ContainsRune(stops, rune(s[0])) {
		return "", "", fmt.Errorf("something follows a closing quote")
	}
	return b.String(), s, nil
}

// Field is a column found in a schema.
type Field struct {
	Index []int          // field numbers, from the schema's top down
	Type  arrow.DataType // of the column itself
}

// Resolve finds the column in the schema. The error names the columns there
// are, and the nearest of them.
func (p Path) Resolve(schema *arrow.Schema) (Field, error) {
	fields := schema.Fields()
	var out Field
	for depth, name := range p {
		i, err := find(fields, name)
		if err != nil {
			return Field{}, p.notFound(schema, depth, fields, err)
		}
		out.Index = append(out.Index, i)
		out.Type = fields[i].Type
		if depth == len(p)-1 {
			break
		}
		st, ok := storage(out.Type).(*arrow.StructType)
		if !ok {
			if arrow.IsNested(out.Type.ID()) {
				return Field{}, fault.Unsupported(fault.At{Column: p.String()}, "a key below %s, which is repeated (%s)", p[:depth+1], out.Type)
			}
			return Field{}, p.notFound(schema, depth+1, nil, fmt.Errorf("%s is no struct but %s", p[:depth+1], out.Type))
		}
		fields = st.Fields()
	}
	return out, nil
}

// storage returns the type below any extensions.
func storage(t arrow.DataType) arrow.DataType {
	for {
		e, ok := t.(arrow.ExtensionType)
		if !ok {
			return t
		}
		t = e.StorageType()
	}
}

// find returns the position of the one field called name.
func find(fields []arrow.Field, name string) (int, error) {
	at := -1
	for i, f := range fields {
		if f.Name != name {
			continue
		}
		if at >= 0 {
			return 0, fmt.Errorf("two columns are called %q", name)
		}
		at = i
	}
	if at < 0 {
		return 0, fmt.Errorf("no column %q", name)
	}
	return at, nil
}

// notFound words the error for a path that ends at depth among fields.
func (p Path) notFound(schema *arrow.Schema, depth int, fields []arrow.Field, cause error) error {
	dotted := strings.Join(p, ".")
	if len(p) > 1 && len(schema.FieldIndices(dotted)) == 1 {
		return &NotFoundError{Path: p, Cause: cause, Hint: fmt.Sprintf(`the column of that very name is written '"%s"'`, dotted)}
	}
	best, dist := "", 1<<30
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = append(append(Path{}, p[:depth]...), f.Name).String()
		if d := levenshtein.ComputeDistance(strings.ToLower(f.Name), strings.ToLower(p[min(depth, len(p)-1)])); d < dist {
			best, dist = names[i], d
		}
	}
	e := &NotFoundError{Path: p, Cause: cause}
	if len(names) > 0 {
		if len(names) > 20 {
			names = append(names[:20], "…")
		}
		e.Hint = "there are " + strings.Join(names, ", ")
		if dist <= 1+len(p[min(depth, len(p)-1)])/3 {
			e.Hint = "did you mean " + best + "? " + e.Hint
		}
	}
	return e
}

// NotFoundError says that a schema lacks a column.
type NotFoundError struct {
	Path  Path
	Cause error
	Hint  string
}

func (e *NotFoundError) Error() string {
	s := e.Cause.Error()
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// PathsString renders paths as ParsePaths reads them.
func PathsString(paths []Path) string {
	parts := make([]string, len(paths))
	for i, p := range paths {
		parts[i] = p.String()
	}
	return strings.Join(parts, ",")
}
