package parquet

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// TestOpenLike: a file has the same metadata whichever file it is opened like, and shares its
// schema with one that is equal.
func TestOpenLike(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.parquet")
	more, err2 := filepath.Glob("testdata/writers/*.parquet")
	if paths = append(paths, more...); len(paths) < 10 || err != nil || err2 != nil {
		t.Fatalf("%d files in testdata, %v, %v", len(paths), err, err2)
	}
	var before *File
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		open := func(like *File) *File {
			f, err := OpenLike(like, nil, bytes.NewReader(b), int64(len(b)), p, false)
			if err != nil {
				t.Fatalf("%s: %v", p, err)
			}
			return f
		}
		alone, err := Open(nil, bytes.NewReader(b), int64(len(b)), p)
		if err != nil {
			continue // unsupported
		}
		after := open(before)
		again := open(after)
		for _, f := range []*File{after, again} {
			if !reflect.DeepEqual(f.Metadata, alone.Metadata) || !reflect.DeepEqual(f.Leaves, alone.Leaves) || !reflect.DeepEqual(f.RowGroups, alone.RowGroups) {
				t.Errorf("%s: opened after another file, it differs", p)
			}
		}
		if again.Root != after.Root || again.described != after.described || again.described == nil {
			t.Errorf("%s: opened after itself, it does not share its schema", p)
		}
		before = after
	}
}
