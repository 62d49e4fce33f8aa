package adapt

import (
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go/encoding/thrift"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// Pick returns a schema with the columns and fields of structs that the paths name. alike compares
// names.
func Pick(schema []meta.Element, paths []keys.Path, alike func(a, b string) bool) ([]meta.Element, error) {
	f, err := parquet.SchemaFile(schema, "")
	if err != nil {
		return nil, err
	}
	p := picker{alike: alike}
	err = p.add(fieldsOf(f), nil, paths)
	return p.out, err
}

type picker struct {
	out   []meta.Element
	alike func(a, b string) bool
}

// add adds a column with the fields below it that the paths name; all if there are none.
func (p *picker) add(d *field, at []string, paths []keys.Path) error {
	place := fault.At{Column: strings.Join(at, ".")}
	switch {
	case len(paths) > 1 && slices.ContainsFunc(paths, func(path keys.Path) bool { return len(path) == 0 }):
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
		var below []keys.Path
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
