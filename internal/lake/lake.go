// Package lake describes one version of a table: its columns, its files with the values of their
// partitions, and which rows of each file are deleted.
//
//	delta:URL@v12 ── ParseName ──► Name ── a package below, as delta ──► Table, Files
//
// The way back is a line that adds a file to a table: NewAdded and StatsOf have what formats share of it.
//
// Package source makes inputs of these, and package inputs lists them. Rooms above know no tables:
// an open file has the table's columns, and deleted rows are those that its condition leaves out.
package lake

import (
	"path"
	"reflect"
	"slices"
	"strings"
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
	Partitions []int  `json:"partitions,omitempty"`
	ByID       bool   `json:"by_id,omitempty"`   // files have columns by their ids, or by Column.Names if there are none
	Widens     bool   `json:"widens,omitempty"`  // files may have narrower types
	Catalog    string `json:"catalog,omitempty"` // and name there, if files are read with what it grants
	Keys       []Keys `json:"keys,omitempty"`    // of rows that are deleted
}

// Named returns the table with all names changed.
func (t Table) Named(change func(string) string) Table {
	t.Location, t.Keys = change(t.Location), slices.Clone(t.Keys)
	for i := range t.Keys {
		k := &t.Keys[i]
		k.Files = slices.Clone(k.Files)
		for j := range k.Files {
			k.Files[j].Place = change(k.Files[j].Place)
		}
	}
	return t
}

// Below returns what names an object of the table on all machines: its path in the table's directory, which has other
// names elsewhere. Of one that is not there it is the last part, which writers make unique.
func (t *Table) Below(place string) string {
	if below, ok := strings.CutPrefix(place, t.Location); ok {
		return below
	}
	return path.Base(place)
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
	Parts   []hive.Part // the values of Table.Partitions, as if they were directories
	Values  []hive.Part // of columns that the file may lack, in the same form
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

// Deleted refers to the rows of a file that are deleted: to one list of them, or to lists of rows of
// several files; and to rows that have some keys.
type Deleted struct {
	Place  string `json:"place,omitempty"`  // the object that has the list
	Inline []byte `json:"inline,omitempty"` // the list itself; Place is then empty
	Offset int64  `json:"offset,omitempty"`
	Size   int64  `json:"size,omitempty"`
	Count  int64  `json:"count,omitempty"` // of rows that lists say

	Of string       `json:"of,omitempty"` // what the lists of In call the file
	In []DeleteFile `json:"in,omitempty"`

	Keys  []int  `json:"keys,omitempty"`  // positions in Table.Keys of those that the file may have
	Seq   int64  `json:"seq,omitempty"`   // of the file: its rows have not been deleted by older keys
	Named string `json:"named,omitempty"` // the identity of younger ones
}

// Same reports whether both refer to the same rows. How many these are, files of positions alone say.
func (d *Deleted) Same(o *Deleted) bool {
	if d == nil || o == nil || d.In == nil {
		return reflect.DeepEqual(d, o)
	}
	a, b := *d, *o
	a.Count = b.Count
	return reflect.DeepEqual(a, b)
}

// DeleteFile is an object with positions of deleted rows, of one file or more, or with keys of them.
type DeleteFile struct {
	Place string `json:"place"`
	Size  int64  `json:"size"`
	Rows  int64  `json:"rows"`
	Seq   int64  `json:"seq,omitempty"` // of keys: files with this sequence number or a larger one keep their rows
}

// Keys are keys of rows that are deleted (equality deletes).
type Keys struct {
	Columns []int32      `json:"columns"` // ids, ascending
	Files   []DeleteFile `json:"files"`
}

// Name is the name of a version of a table.
type Name struct {
	Text     string
	Kind     string    // delta, iceberg or rest
	Location string    // the table's directory, its metadata file, or a catalog's URL, # and its name there
	Version  string    // a number, or snapshot=, branch= or tag= and which; empty: the newest, or that of Time
	Time     time.Time // zero: none
}
