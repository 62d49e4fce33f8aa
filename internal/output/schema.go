package output

import (
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/options"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// pin returns the schema of a file.
func pin(f *parquet.File) (*dataset.PinnedSchema, error) {
	m := meta.Footer{Schema: f.Metadata.Schema, RowGroups: []meta.RowGroup{}}
	b, err := m.Encode()
	if err != nil {
		return nil, fmt.Errorf("%s: encoding the schema: %w", f.Name, err)
	}
	return (*dataset.PinnedSchema)(options.NewSchema(f.Name, b)), nil
}

// pinnedElements returns the schema, or the given columns of it; nil means all.
func pinnedElements(p *dataset.PinnedSchema, columns []string) ([]meta.Element, error) {
	name, footer := (*options.Schema)(p).Of()
	file, err := parquet.OpenFooter(footer, name)
	if err != nil {
		return nil, err
	}
	if columns == nil {
		return file.Metadata.Schema, nil
	}
	var at []int
	for _, name := range columns {
		has := func(n *meta.Node) bool { return n.Name == name }
		i := slices.IndexFunc(file.Root.Children, has)
		if i < 0 {
			e := faults.Of(cause.Schemas, faults.Mismatch(fault.At{File: file.Name, Column: name}, "the given schema", "a column of that name", "none")).
				WithHint("give a schema that has it, or leave the column out")
			e.Err = quiet.Error{Err: fault.ErrNoColumn}
			return nil, e
		}
		at = append(at, i)
	}
	return file.Project(at).Schema, nil
}
