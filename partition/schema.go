package partition

import (
	"fmt"

	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// SchemaMode says what becomes of log files whose columns differ.
type SchemaMode string

// The modes.
const (
	// PerFile lets each file of a directory have the schema of its input. A
	// single file or stream has one schema: for it, PerFile is Strict.
	PerFile SchemaMode = "per-file"
	// Strict refuses files whose schemas differ, whatever the shard.
	Strict SchemaMode = "strict"
	// Union gives all files of the output one schema, which holds the rows of
	// all of the log's, whatever the shard. Columns are found by name, and are
	// NULL where a file lacks them; types are widened only where each value
	// stays what it is. Inputs and outputs are Parquet.
	Union SchemaMode = "union"
)

// PinnedSchema is what all files of an output are to have for a schema.
type PinnedSchema struct{ file *parquet.File }

// Bytes is the schema as it stands in a footer: what tells it from others.
func (p *PinnedSchema) Bytes() ([]byte, error) {
	m := parquet.FileMetaData{Schema: p.file.Metadata.Schema, RowGroups: []parquet.RowGroupMeta{}}
	b, err := m.Encode()
	if err != nil {
		return nil, fmt.Errorf("%s: encoding the schema: %w", p.file.Name, err)
	}
	return b, nil
}
