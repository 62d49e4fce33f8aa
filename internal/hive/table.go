package hive

import (
	"context"
	"strings"
	"sync"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/glob"
)

const deltaLake = "Delta Lake"

// Table reports whether a path is part of the metadata of a table format, whose Parquet
// files may hold rows that have been deleted or replaced since. rel is the path below the
// directory that is read, dir the path of the table there, and mark what shows it.
func Table(rel string) (format, dir, mark string) {
	elements := strings.Split(rel, "/")
	for i, element := range elements[:len(elements)-1] {
		switch {
		case element == "_delta_log":
			format, mark = deltaLake, element
		case element == ".hoodie":
			format, mark = "Hudi", element
		case element == "metadata" && i == len(elements)-2 && strings.HasSuffix(elements[i+1], ".metadata.json"):
			format, mark = "Iceberg", "metadata/*.metadata.json"
		case glob.Marker(element):
			return "", "", ""
		default:
			continue
		}
		return format, strings.Join(elements[:i], "/"), mark
	}
	return "", "", ""
}

// NotPlain returns the error of a directory that is a table of such a format.
func NotPlain(dir, format, mark string) error {
	way, guide := "write the table's current rows to Parquet first", "lake"
	if kind := map[string]string{deltaLake: "delta:", "Iceberg": "iceberg:"}[format]; kind != "" {
		way, guide = "name it as "+kind+dir, "tables"
	}
	return faults.Unsupported(fault.At{File: dir}, "the files of a table in the format %s (which has %s): read as plain Parquet, they bring back rows that were deleted or replaced", format, mark).
		WithHint("%s, as bloomjoin help %s shows; {RawFiles} reads the files as they are", way, guide)
}

// around returns the directories that may be the table of the files in dir, all with a slash at
// their ends: dir, those above name=value elements, and those that have one of these. Iceberg
// may spread files over directories below data.
func around(dir string) (all []string) {
	value := func(element string) bool { return strings.IndexByte(element, '=') > 0 }
	next, above := "", false
	for at := len(dir); ; {
		from := strings.LastIndexByte(strings.TrimSuffix(dir[:at], "/"), '/') + 1
		root := !value(dir[from:at]) && (at == len(dir) || value(next))
		if root || above || next == "data/" {
			all = append(all, dir[:at])
		}
		if from == at || dir[:at] == "/" {
			return all
		}
		next, above, at = dir[from:at], root, from
	}
}

// looked is what a run knows of directories that may be tables.
type looked struct {
	raw  bool     // files of tables are read as they are
	seen sync.Map // errors, by directory
}

type lookedKey struct{}

// Looking returns a context in which no directory is looked at twice; with raw, none is: files of
// tables are read as they are.
func Looking(ctx context.Context, raw bool) context.Context {
	if ctx.Value(lookedKey{}) != nil && !raw {
		return ctx
	}
	return context.WithValue(ctx, lookedKey{}, &looked{raw: raw})
}

// Raw reports whether ctx comes from Looking with raw.
func Raw(ctx context.Context) bool {
	l, ok := ctx.Value(lookedKey{}).(*looked)
	return ok && l.raw
}

// Look calls look for each directory that may be the table of the files in dir, a path with a
// slash at its end. place is the file system or bucket, which no other has as its name. ctx comes
// from Looking.
func Look(ctx context.Context, place, dir string, look func(dir string) error) error {
	l := ctx.Value(lookedKey{}).(*looked)
	for _, at := range around(dir) {
		was, seen := l.seen.Load(place + at)
		err, _ := was.(error)
		if !seen && !l.raw {
			err = look(at)
			l.seen.Store(place+at, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
