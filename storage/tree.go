package storage

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/hive"
)

// flat holds objects under paths with slashes, as [Memory] and [FS] do.
type flat interface {
	Stat(ctx context.Context, name string) (Object, error)
	Tree(ctx context.Context, dir string) ([]Object, error)
}

// walkFlat implements finder.walk.
func walkFlat(ctx context.Context, in flat, dir string) (objects []Object, manifests []string, err error) {
	dir = clean(dir)
	if err := plainFlat(ctx, in, dir); err != nil {
		return nil, nil, err
	}
	all, err := in.Tree(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range all {
		if format, table, mark := hive.Table(o.Rel); format != "" {
			return nil, nil, hive.NotPlain(clean(inside(dir)+table), format, mark)
		}
		if before, _, ok := strings.Cut(o.Rel, address.ManifestSuffix+"/"); ok && !glob.Marked("", before) {
			manifests = append(manifests, inside(dir)+before+address.ManifestSuffix)
		}
		if glob.Marked("", o.Rel) {
			continue
		}
		if o.Type != 0 {
			return nil, nil, inDirectory(o.Name, o.Type)
		}
		o.Found = true
		objects = append(objects, o)
	}
	if len(objects) == 0 {
		err = fmt.Errorf("directory %s holds %w (name the directory with the data)", dir, ErrNoFiles)
	}
	return objects, slices.Compact(manifests), err
}

// plainFlat refuses a directory that is a partition of a table of another format.
func plainFlat(ctx context.Context, in flat, dir string) error {
	dir, _, ok := hive.Cut(dir + "/")
	if !ok {
		return nil
	}
	for _, mark := range []string{"_delta_log", ".hoodie", "metadata"} {
		all, err := in.Tree(ctx, dir+mark)
		if err != nil {
			return err
		}
		for _, o := range all {
			if format, _, mark := hive.Table(mark + "/" + o.Rel); format != "" {
				return hive.NotPlain(clean(dir), format, mark)
			}
		}
	}
	return nil
}

// matchFlat implements finder.match.
func matchFlat(ctx context.Context, in flat, pattern string) (found []Object, err error) {
	all, err := in.Tree(ctx, clean(glob.Static(pattern)))
	for _, o := range all {
		top, ok := glob.Top(pattern, o.Name)
		switch last := len(found) - 1; {
		case !ok || last >= 0 && found[last].Name == top:
		case top == o.Name:
			found = append(found, o)
		default:
			found = append(found, Object{Name: top, Type: fs.ModeDir})
		}
	}
	return found, err
}

// clean is [path.Clean], which leaves the start of a URL as it is.
func clean(name string) string {
	scheme, rest, ok := strings.Cut(name, "://")
	if !ok {
		return path.Clean(name)
	}
	return scheme + "://" + path.Clean("/" + rest)[1:]
}

// inside returns what the names of all objects below a directory begin with.
func inside(dir string) string {
	if dir == "." {
		return ""
	}
	return strings.TrimSuffix(dir, "/") + "/"
}
