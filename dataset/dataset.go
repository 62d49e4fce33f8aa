// Package dataset has the words that programs and all packages share about data in files:
// formats, workers, what a row must match, what was written.
//
// Its types are values: they hold no file, no lock and no reader, and may be copied. Nothing
// is opened, read or written here. Every package above [codec] may use them.
package dataset

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/options"
)

// Format is a file format.
type Format string

// The formats. Text is read as ID sets only. CSV, TSV and NDJSON are written, too.
const (
	Parquet     Format = "parquet"
	ArrowFile   Format = "arrow"
	ArrowStream Format = "arrow-stream"
	CSV         Format = "csv"
	TSV         Format = "tsv"
	NDJSON      Format = "ndjson"
	Lines       Format = "lines" // one ID per line, in a column called id
	// RecordBatches are rows that a program provides; see partition.Records.
	RecordBatches Format = "records"
)

// HiveMode is the meaning of name=value directories in the paths of inputs.
type HiveMode string

// Modes of partition.OpenOptions.Hive.
const (
	HiveAuto HiveMode = "auto" // columns of the files in them; also the empty mode
	HiveOff  HiveMode = "off"  // names without a meaning
)

// PartitionValue is the value of a column that a directory of a file's path stands
// for, as country=NO: the same in all rows of the file.
type PartitionValue struct {
	Name string
	Type arrow.DataType
	Text string // the value as in the path, without escapes; empty if Null
	Null bool
}

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
	UnionByName SchemaMode = "union"
)

// PinnedSchema is a schema for all files of an output, see package partition's ReadSchema.
type PinnedSchema options.Schema
