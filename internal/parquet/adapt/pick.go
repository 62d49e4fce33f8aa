package adapt

import (
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go/encoding/thrift"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// Pick returns a schema with some fields of structs alone. fields are paths below top-level columns;
// a column without any stays whole. alike compares names.
func Pick(schema []meta.Element, fields map[string][][]string, alike func(a, b string) bool) ([]meta.Element, error) {
	f, err := parquet.SchemaFile(schema, "")
	if err != nil {
		return nil, err
	}
	p := picker{out: schema[:1:1], alike: alike}
	for _, c := range fieldsOf(f).children {
		if err := p.add(c, []string{c.Name}, fields[c.Name]); err != nil {
			return nil, err
		}
	}
	return p.out, nil
}

type picker struct {
	out   []meta.Element
	alike func(a, b string) bool
}

// add adds a column with the fields below it that the paths name; all if there are none.
func (p *picker) add(d *field, at []string, paths [][]string) error {
	place := fault.At{Column: strings.Join(at, ".")}
	switch {
	case len(paths) > 1 && slices.ContainsFunc(paths, func(path []string) bool { return len(path) == 0 }):
		return faults.Mismatch(place, "columns", "a struct or fields of it", "both")
	case len(paths) == 1 && len(paths[0]) == 0:
		paths = nil
	case len(paths) > 0 && d.form != structForm:
		return faults.Unsupported(place, "a field of a column that is %s, not a struct", d.describe()).WithHint("choose the whole column")
	}
	top, n := len(p.out), int32(0)
	p.out = append(p.out, *d.elem)
	found := make([]bool, len(paths))
	for _, c := range d.children {
		var below [][]string
		for i, path := range paths {
			if p.alike(path[0], c.Name) {
				below, found[i] = append(below, path[1:]), true
			}
		}
		if paths == nil || below != nil {
			n++
			if err := p.add(c, append(at, c.Name), below); err != nil {
				return err
			}
		}
	}
	if i := slices.Index(found, false); i >= 0 {
		e := faults.Mismatch(place, "columns", "fields of the struct: "+d.names(), paths[i][0])
		e.Err = quiet.Error{Err: fault.ErrNoColumn}
		return e
	}
	if d.form != leafForm {
		p.out[top].NumChildren = thrift.New(n)
	}
	return nil
}
