package output

import (
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/options"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
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

// pinnedElements returns the schema, or the given columns of it, which it has; nil means all.
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
		at = append(at, slices.IndexFunc(file.Root.Children, func(n *meta.Node) bool { return n.Name == name }))
	}
	return file.Project(at).Schema, nil
}
