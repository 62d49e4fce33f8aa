package partition

import (
	"fmt"

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
type PinnedSchema struct{ file *parquet.File }

// Bytes returns the schema as Parquet stores it, to compare it with others.
func (p *PinnedSchema) Bytes() ([]byte, error) {
	m := parquet.FileMetaData{Schema: p.file.Metadata.Schema, RowGroups: []parquet.RowGroupMeta{}}
	b, err := m.Encode()
	if err != nil {
		return nil, fmt.Errorf("%s: encoding the schema: %w", p.file.Name, err)
	}
	return b, nil
}
