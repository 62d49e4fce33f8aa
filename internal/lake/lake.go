// Package lake describes one version of a table: its columns, its files with the values of their
// partitions, and which rows of each file are deleted.
//
//	delta:URL@v12 ── ParseName ──► Name ── a package below, as delta ──► Table, Files
//
// Package source makes inputs of these, and package inputs lists them. Rooms above know no tables:
// an open file has the table's columns, and deleted rows are those that its condition leaves out.
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
	Widens     bool  `json:"widens,omitempty"` // files may store narrower types than those of Columns
	// ByID: columns are found by their ids alone or, in files without any ids, by their Names alone.
	ByID bool `json:"by_id,omitempty"`
}

// Column is a column of a table, or a part of one.
type Column struct {
	Name     string   `json:"name"`
	Stored   string   `json:"stored,omitempty"`  // its name in files; empty: Name
	ID       int32    `json:"id,omitempty"`      // its field id in files; 0: none
	Names    []string `json:"names,omitempty"`   // its names in files without ids, of a table by id
	Type     string   `json:"type"`              // of a leaf, as keys.ParseType takes it, timestamp_ns or timestamptz_ns; else struct, list or map
	Default  bool     `json:"default,omitempty"` // it has another value than NULL in files that lack it
	Children []Column `json:"children,omitempty"`
}

// File is a file of a table.
type File struct {
	Object  storage.Object
	Parts   []hive.Part // the values of Table.Partitions or, of a table by id, of columns that the file may lack
	Deleted *Deleted
	Bounds  func() []Bound // of the file's statistics; nil: there are none, or they were not asked for
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
	Inline []byte `json:"inline,omitempty"` // the list itself; Place is then empty
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
