package partition

import (
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// SchemaMode decides about log files whose columns differ.
type SchemaMode string

// Schema modes.
const (
	// PerFile gives each file of a directory the schema of its input. For a single
	// file or stream it is Strict.
	PerFile SchemaMode = "per-file"
	// Strict refuses files whose schemas differ, whatever the shard.
	Strict SchemaMode = "strict"
	// Union gives all files of the output one schema that holds the rows of all
	// files of the log, whatever the shard. Columns are found by name, and are NULL
	// where a file lacks them; types are widened only where no value changes.
	// Inputs and outputs must be Parquet.
	Union SchemaMode = "union"
)

// PinnedSchema is a schema for all files of an output.
type PinnedSchema struct {
	Name   string // the file that has the schema, for messages
	Footer []byte // Parquet's FileMetaData, without row groups
}

// pin returns the schema of a file.
func pin(f *parquet.File) (*PinnedSchema, error) {
	m := parquet.FileMetaData{Schema: f.Metadata.Schema, RowGroups: []parquet.RowGroupMeta{}}
	b, err := m.Encode()
	if err != nil {
		return nil, fmt.Errorf("%s: encoding the schema: %w", f.Name, err)
	}
	return &PinnedSchema{f.Name, b}, nil
}

// pinnedElements returns the schema, or the given columns of it; nil means all.
func pinnedElements(p *PinnedSchema, columns []string) ([]parquet.SchemaElement, error) {
	file, err := parquet.OpenFooter(p.Footer, p.Name)
	if err != nil {
		return nil, err
	}
	if columns == nil {
		return file.Metadata.Schema, nil
	}
	var at []int
	for _, name := range columns {
		has := func(n *parquet.Node) bool { return n.Name == name }
		i := slices.IndexFunc(file.Root.Children, has)
		if i < 0 {
			return nil, fault.Mismatch(fault.At{File: file.Name, Column: name}, "the given schema", "a column of that name", "none").
				WithHint("give a schema that has it, or leave the column out")
		}
		at = append(at, i)
	}
	return file.Project(at).Schema, nil
}
