package words

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// suggest words the errors about names that do not exist: it adds the name that
// was probably meant.
func suggest(err error) (string, bool) {
	switch e := err.(type) { //nolint:errorlint // each error of the tree in turn
	case *keys.NotFoundError:
		if p := meantColumn(e); p != nil {
			why := Error(e.Err)
			return why + " (did you mean " + p.String() + "? " + strings.TrimPrefix(e.Error(), e.Err.Error()+" ("), true
		}
	case *faults.NotExist:
		return e.Name + ": no such file or directory (" + pathHint(e.Name) + ")", true
	}
	return "", false
}

// meantColumn returns the column that was probably meant; nil if none is near.
func meantColumn(e *keys.NotFoundError) keys.Path {
	if len(e.Have) == 0 || e.Meant != nil {
		return e.Meant
	}
	names := each.Slice(e.Have, func(p keys.Path) string { return p[len(p)-1] })
	if i := nearest(e.Name, names, maxTypos(e.Name)); i >= 0 {
		return e.Have[i]
	}
	return nil
}

// pathHint returns what to do about a path that does not exist.
func pathHint(name string) string {
	if first, rest, ok := strings.Cut(name, ","); ok && (pathExists(first) || address.IsURL(first) && address.IsURL(rest)) {
		return "commas do not separate files: repeat the flag, or name the files one after another"
	}
	if address.IsURL(name) {
		return "check the address"
	}
	if near := nearestPath(filepath.Clean(name)); near != "" {
		return "did you mean " + near + "?"
	}
	if !strings.ContainsAny(name, "./\\*?[{") {
		return "check the path; keys themselves are read from a file, or from standard input: echo KEY | …, with the name -"
	}
	return "check the path"
}

// nearest returns the index of the first name that differs least from got, in
// at most the given number of letters, ignoring case; two that are swapped count as one. -1: none.
func nearest(got string, names []string, most int) int {
	best, least := -1, most+1
	for i, name := range names {
		d := levenshtein.ComputeDistance(strings.ToLower(got), strings.ToLower(name))
		if d == 2 && letters(got) == letters(name) {
			d = 1
		}
		if d < least && d < max(len(got), len(name)) {
			best, least = i, d
		}
	}
	return best
}

// letters returns the letters of a word in one order: of two words with the same ones, some are
// swapped.
func letters(s string) string {
	b := []byte(strings.ToLower(s))
	slices.Sort(b)
	return string(b)
}

// maxTypos returns in how many letters a mistyped word may differ from the one
// that was meant: a third of them, plus one.
func maxTypos(got string) int { return 1 + len(got)/3 }

// Meant returns the name that was probably meant: one that is near, or begins
// with what was given; "" if there is none.
func Meant(got string, names []string) string {
	i := nearest(got, names, maxTypos(got))
	if i < 0 && len(got) > 2 {
		i = slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, got) })
	}
	if i < 0 {
		return ""
	}
	return names[i]
}

// maxListed bounds how many names of a directory are compared.
const maxListed = 10_000

// nearestPath returns the existing path nearest to one that does not exist; ""
// if none is near. It looks in the deepest directory of the path that exists.
func nearestPath(name string) string {
	rest := ""
	for {
		dir, base := filepath.Split(name)
		parent := filepath.Clean(dir)
		if dir == "" {
			parent = "."
		}
		if d, err := os.Open(parent); err == nil {
			names, _ := d.Readdirnames(maxListed)
			_ = d.Close()
			if near := nearestName(base, names); near != "" {
				if whole := filepath.Join(dir, near, rest); pathExists(whole) {
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

func pathExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// nearestName returns the file name that was probably meant: one that differs
// only in its extension, or in few letters; "" if there is none.
func nearestName(got string, names []string) string {
	slices.Sort(names) // a directory lists them in no order
	i := nearest(got, names, 0)
	if i < 0 {
		i = slices.IndexFunc(names, func(name string) bool { return stem(name) == stem(got) })
	}
	if i < 0 {
		i = nearest(got, names, 1+len(stem(got))/4)
	}
	if i < 0 {
		return ""
	}
	return names[i]
}

// stem returns a file name without its extensions.
func stem(name string) string {
	if i := strings.IndexByte(name, '.'); i > 0 {
		return name[:i]
	}
	return name
}
