// Package lake says what the version of a table is: files, with the values that all rows of one
// share, and the rows of each that are deleted.
//
//	delta:URL@v12 ── ParseName ──► Name ── a package below, as delta ──► Table, Files
//
// In come names, and what tables say of themselves; out go values that package source makes
// inputs of. No other package knows of tables: deleted rows are a condition of a file, columns
// have the table's names as soon as the file is open.
package lake

import (
	"time"

	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Table is one version of a table. It is immutable.
type Table struct {
	Kind     string   `json:"kind"`     // the scheme of its names, as delta
	Location string   `json:"location"` // its directory, with a slash at the end
	Version  string   `json:"version"`
	Columns  []Column `json:"columns"` // all, in the table's order
	// Partitions are positions in Columns: their values are in the table, whatever files have.
	Partitions []int `json:"partitions,omitempty"`
}

// Column is a column of a table, or a part of one.
type Column struct {
	Name     string   `json:"name"`
	Stored   string   `json:"stored,omitempty"` // its name in files; empty: Name
	ID       int32    `json:"id,omitempty"`     // its field id in files; 0: none
	Type     string   `json:"type"`             // of a leaf, in the table's own words; else struct, list or map
	Children []Column `json:"children,omitempty"`
}

// File is a file of a table.
type File struct {
	Object  storage.Object
	Parts   []hive.Part // the values of Table.Partitions, as if they were directories
	Deleted *Deleted
	Bounds  func() []Bound // what the table says of values; nil: nothing, or nobody asked
}

// Bound is what a table says of the values of a column in a file.
type Bound struct {
	Column      int    // position in Table.Columns
	Least, Most string // bounds as hive.Part has texts; both empty: none
	NoNulls     bool
	AllNulls    bool
}

// Deleted refers to the rows of a file that are deleted.
type Deleted struct {
	Place  string `json:"place,omitempty"`  // the object that lists them
	Inline []byte `json:"inline,omitempty"` // the list, if there is no such object
	Offset int64  `json:"offset,omitempty"`
	Size   int64  `json:"size"`
	Count  int64  `json:"count"` // of rows
}

// Name is the name of a version of a table.
type Name struct {
	Text     string
	Kind     string    // as delta
	Location string    // of the table's directory
	Version  string    // empty: the newest, or that of Time
	Time     time.Time // zero: none
}
