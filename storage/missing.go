package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/bloomjoin/bloomjoin/internal/nearest"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// missing turns an error about a name that does not exist into one with a hint,
// if possible the existing name that was probably meant. It returns other errors
// unchanged.
func missing(name string, err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%s: a part of the path is a file, not a directory (check the path)%w", name, quiet.Error{Err: err})
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	hint := " (check the path)"
	if first, _, ok := strings.Cut(name, ","); ok && exists(first) {
		hint = " (commas do not separate files: repeat the flag, or name the files one after another)"
	} else if near := beside(filepath.Clean(name)); near != "" {
		hint = " (did you mean " + near + "?)"
	}
	return fmt.Errorf("%s: no such file or directory%s%w", name, hint, quiet.Error{Err: fs.ErrNotExist})
}

// mostBeside is the largest number of names in a directory that are compared.
const mostBeside = 10_000

// beside returns the existing path that is most similar to one that does not
// exist, or "". It looks in the deepest directory of the path that exists.
func beside(name string) string {
	rest := ""
	for {
		dir, base := filepath.Split(name)
		parent := filepath.Clean(dir)
		if dir == "" {
			parent = "."
		}
		if d, err := os.Open(parent); err == nil {
			names, _ := d.Readdirnames(mostBeside)
			_ = d.Close()
			if near := nearestName(base, names); near != "" {
				if whole := filepath.Join(dir, near, rest); exists(whole) {
					return whole
				}
			}
			return ""
		}
		if parent == name || parent == "." || parent == string(filepath.Separator) {
			return ""
		}
		name, rest = parent, filepath.Join(base, rest)
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// nearestName returns the name that was probably meant, or "": one with another
// extension, or one that differs in few letters.
func nearestName(got string, names []string) string {
	slices.Sort(names) // directories are not sorted
	i := nearest.Index(got, names, 0)
	if i < 0 {
		i = slices.IndexFunc(names, func(name string) bool { return stem(name) == stem(got) })
	}
	if i < 0 {
		i = nearest.Index(got, names, 1+len(stem(got))/4)
	}
	if i < 0 {
		return ""
	}
	return names[i]
}

// stem returns a name without its extension.
func stem(name string) string {
	if i := strings.IndexByte(name, '.'); i > 0 {
		return name[:i]
	}
	return name
}
