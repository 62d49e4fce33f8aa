package partition

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/storage"
)

// HiveMode says what name=value directories in the paths of inputs are.
type HiveMode string

// Modes of [OpenOptions].Hive.
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

// Partitions returns the columns that the name=value directories of the file's path
// stand for, in the order of the first file of its Open; nil if there are none.
// Names and values are without escapes; __HIVE_DEFAULT_PARTITION__ is NULL.
func (f *File) Partitions() (values []PartitionValue) {
	for i, p := range f.parts {
		values = append(values, PartitionValue{Name: p.Name, Type: f.hive.columns[i].Type, Text: p.Text, Null: p.Null})
	}
	return values
}

// hiveLayout is what all files of one Open have in common.
type hiveLayout struct {
	columns []hive.Column
	like    string // the name of a file, for errors
}

// layout returns the columns that the directories of all listed files stand for, nil
// if there are none. Files that are certainly no data do not count. If the directories
// do not agree and a file turns out to be no data, that is the error to report: layout
// leaves it to find, and returns nil.
func (o *OpenOptions) layout(ctx context.Context, names []string, lists [][]storage.Object) (*hiveLayout, error) {
	switch o.Hive {
	case HiveOff:
		return nil, nil
	case "", HiveAuto:
	default:
		return nil, fmt.Errorf("OpenOptions.Hive %q: want auto or off", o.Hive)
	}
	given, err := hive.ParseTypes(o.HiveTypes)
	if err != nil {
		return nil, fmt.Errorf("OpenOptions.HiveTypes: %w", err)
	}
	var files []hive.File
	var found []storage.Object // of directories, which may be no data
	for i, name := range names {
		if name == "-" {
			files = append(files, hive.File{Name: "standard input"})
		}
		for _, e := range lists[i] {
			if why, err := o.leftOut(e); err != nil {
				return nil, err
			} else if why != "" || e.Found && (e.Size == 0 || len(o.Include) == 0 && noData(path.Base(e.Rel))) {
				continue
			}
			parts, err := o.partsOf(e)
			if err != nil {
				return nil, err
			}
			files = append(files, hive.File{Name: e.Name, Parts: parts})
			if e.Found {
				found = append(found, e)
			}
		}
	}
	columns, err := hive.Infer(files, given)
	if err != nil && o.strays(ctx, found) {
		return nil, nil // which find reports
	}
	if len(columns) == 0 {
		return nil, err
	}
	return &hiveLayout{columns: columns, like: files[0].Name}, err
}

// strays reports whether some files of directories are no data.
func (o *OpenOptions) strays(ctx context.Context, found []storage.Object) bool {
	for _, e := range found {
		f, err := openObject(ctx, e, *o)
		if err == nil {
			err = f.Close()
		}
		if errors.Is(err, ErrNoData) {
			return true
		}
	}
	return false
}

// partsOf returns the name=value directories of a listed object.
func (o *OpenOptions) partsOf(e storage.Object) ([]hive.Part, error) {
	if o.Hive == HiveOff {
		return nil, nil
	}
	parts, err := hive.Parse(cleanDir(strings.TrimSuffix(e.Name, e.Rel)) + e.Rel)
	if err != nil {
		return nil, fault.Errorf("%s: %w", e.Name, err)
	}
	return parts, nil
}

// partition gives the file the columns of its directories.
func (f *File) partition(layout *hiveLayout, parts []hive.Part) error {
	if layout == nil {
		return nil
	}
	if err := hive.Fits(hive.File{Name: f.Name, Parts: parts}, layout.columns, layout.like); err != nil || len(parts) == 0 {
		return err
	}
	f.hive, f.parts = layout, make([]hive.Part, len(parts))
	for _, p := range parts {
		is := func(c hive.Column) bool { return c.Name == p.Name }
		f.parts[slices.IndexFunc(layout.columns, is)] = p
	}
	return nil
}
