package partition

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
)

// missing words the error of a name that stands for nothing, and adds the name
// beside it that was probably meant. Other errors are returned as they are.
func missing(name string, err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%s: a part of the path is a file, not a directory (check the path)%w", name, quiet{err})
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
	return fmt.Errorf("%s: no such file or directory%s%w", name, hint, quiet{fs.ErrNotExist})
}

// quiet is an error that is wrapped and adds nothing to the text.
type quiet struct{ error }

func (quiet) Error() string   { return "" }
func (q quiet) Unwrap() error { return q.error }

// mostBeside is how many names of a directory are compared at most.
const mostBeside = 10_000

// beside returns the existing path nearest to one that does not exist, "" if none
// is near: the last element of its path that exists decides in which directory to
// look.
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

// nearestName returns the name that was probably meant: one that differs in its
// ending alone, or in few letters.
func nearestName(got string, names []string) string {
	slices.Sort(names) // which a directory has in no order
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

// stem is a name without its ending.
func stem(name string) string {
	if i := strings.IndexByte(name, '.'); i > 0 {
		return name[:i]
	}
	return name
}
