package listing

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// notInTable refuses files of Delta Lake, Hudi and Iceberg tables by what is beside dir and above
// it. A walked dir is looked at by its walk.
func (l *lister) notInTable(dir string, walked bool) error {
	place, paths := "", []string{dir}
	if address.IsURL(dir) {
		_, rest, _ := strings.Cut(dir, "://")
		_, key, _ := strings.Cut(rest, "/")
		place, paths = dir[:len(dir)-len(key)], []string{key}
	} else if real := objects.Resolve(l.src, clean(dir)); filepath.IsAbs(real) {
		whole, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		paths = slices.Compact([]string{below(whole), below(real)})
	}
	for _, whole := range paths {
		err := hive.Look(l.ctx, place, whole, func(at string) error {
			if walked && at == whole {
				return nil
			}
			if place == "" {
				at = near(dir, at)
			}
			return l.plain(place + at)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// near returns a directory as a path from the working directory, if dir is one.
func near(dir, at string) string {
	here, err := os.Getwd()
	if err != nil || filepath.IsAbs(dir) || !filepath.IsAbs(at) {
		return at
	}
	rel, err := filepath.Rel(here, filepath.FromSlash(at))
	if err != nil {
		return at
	}
	return below(rel)
}

// page is how many entries a service lists in one request.
const page = 1000

var errEnough = errors.New("the rest does not matter")

// plain refuses a directory of a table. Where each request takes time, the first entries of a list
// show what it is, and only a directory with more of them takes more requests. A directory that may
// not be listed counts as plain.
func (l *lister) plain(dir string) error {
	refuse := func(rel string) error {
		if format, _, mark := hive.Table(rel); format != "" {
			return hive.NotPlain(shown(dir), format, mark)
		}
		return nil
	}
	marks := []string{""}
	if l.atOnce == 1 || !objects.Walks(l.src) {
		for _, mark := range []string{"_delta_log", ".hoodie"} {
			if o, err := l.src.Stat(l.ctx, dir+mark); err == nil && o.Type.IsDir() {
				return refuse(mark + "/")
			}
		}
		marks[0] = "metadata/"
	}
	for entries := 0; len(marks) > 0; {
		mark := marks[0]
		marks = marks[1:]
		err := objects.Walk(l.ctx, l.src, dir+mark, nil, func(o storage.Object) error {
			rel := objects.Slashes(o.Name)[len(dir):]
			if o.Type.IsDir() {
				rel += "/"
			}
			if err := refuse(rel); err != nil || mark != "" {
				return err
			}
			switch entries++; {
			case rel == "metadata/":
				marks = []string{rel}
			case entries == page && rel < "metadata/":
				marks = []string{"_delta_log/", ".hoodie/", "metadata/"}
			case rel < "metadata/":
				return nil
			}
			return errEnough
		})
		switch {
		case errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errors.ErrUnsupported):
			return nil
		case err != nil && !errors.Is(err, errEnough):
			return err
		}
	}
	return nil
}
