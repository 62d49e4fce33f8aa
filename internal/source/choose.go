package source

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// parseRules parses the patterns of Include and Exclude.
func (o *Opening) parseRules() error {
	for _, list := range []struct {
		option   string
		patterns []string
		rules    *[]glob.Rule
	}{{"{Include}", o.Include, &o.include}, {"{Exclude}", o.Exclude, &o.exclude}} {
		*list.rules = nil
		for _, p := range list.patterns {
			r, err := glob.ParseRule(p)
			if err != nil {
				return faults.Errorf(list.option+" %s: want a pattern, as '*.parquet' or 'dt=2024-*/*': %w", strconv.Quote(p), err)
			}
			*list.rules = append(*list.rules, r)
		}
	}
	return nil
}

// choose leaves out what Include and Exclude leave out of directories and of what patterns
// match, and files that are listed more than once.
func (o *Opening) choose(names []string, lists [][]Entry) (_ [][]Entry, err error) {
	used := make([]bool, len(o.exclude))
	for i, list := range lists {
		if lists[i], err = o.chooseOf(names[i], list, used); err != nil {
			return nil, err
		}
	}
	o.noteUnused(names, lists, used)
	if o.Repeated {
		return lists, nil
	}
	return o.onceEach(lists)
}

// noteUnused notes patterns of Exclude that leave out nothing.
func (o *Opening) noteUnused(names []string, lists [][]Entry, used []bool) {
	for i, p := range o.Exclude {
		if !used[i] {
			o.note("{Exclude} %s leaves out no file (a pattern is compared with names or, if it has a slash, with paths below %s; a file that is named is always read)", p, rootOf(names, lists))
		}
	}
}

// rootOf names the directory that patterns are relative to.
func rootOf(names []string, lists [][]Entry) string {
	if len(names) != 1 || names[0] == "-" {
		return "the directories that are named"
	}
	root, _ := treeOf(names[0], lists[0])
	return root
}

// treeOf returns the directory of an argument that patterns are relative to. list is what
// it stands for: the name of a file or directory may look like a pattern.
func treeOf(name string, list []Entry) (root string, pattern bool) {
	clean := strings.TrimRight(filepath.ToSlash(name), "/")
	if !address.IsURL(name) {
		clean = filepath.ToSlash(filepath.Clean(name))
	}
	literally := func(e Entry) bool {
		of := filepath.ToSlash(e.Name)
		return of == clean || strings.HasPrefix(of, clean+"/")
	}
	if !glob.Is(name) || slices.ContainsFunc(list, literally) {
		return name, false
	}
	return glob.Static(clean), true
}

// chooseOf is choose for what one name stands for. It sets used for the patterns of Exclude
// that leave out a file.
func (o *Opening) chooseOf(name string, list []Entry, used []bool) (kept []Entry, err error) {
	if len(o.include)+len(o.exclude) == 0 || len(list) == 0 {
		return list, nil
	}
	if len(list) == 1 && !list[0].Found && list[0].Name == name { // it is named
		return list, nil
	}
	root, pattern := treeOf(name, list)
	var passed []string
	for _, e := range list {
		rel := e.Rel
		if pattern {
			rel = strings.TrimPrefix(filepath.ToSlash(e.Name), root)
		}
		whole := filepath.ToSlash(absolute(address.Local(e.Name)))
		matches := func(r glob.Rule) bool { return r.Match(whole, rel) }
		why := ""
		if len(o.include) > 0 && !slices.ContainsFunc(o.include, matches) {
			why = "it is not included"
		}
		for i, r := range o.exclude {
			if matches(r) {
				why, used[i] = "it is excluded", true
			}
		}
		if why == "" {
			kept = append(kept, e)
			continue
		}
		passed = append(passed, e.Rel)
		o.passOver(e, why)
	}
	if len(kept) == 0 && !o.AllowEmpty {
		return nil, faults.Errorf("%s: {Include} and {Exclude} leave out all of its files, as %s (change a pattern)%w", name, firstFew(passed), quiet.Error{Err: storage.ErrNoFiles})
	}
	return kept, nil
}

// note passes on what is remarkable about the inputs.
func (o *Opening) note(format string, args ...any) {
	if o.Note != nil {
		o.Note(faults.Textf(format, args...))
	}
}

// onceEach drops repeated files: two files are the same if their paths without links and the
// columns of their paths are equal. A file linked into a directory with other columns has other
// rows.
func (o *Opening) onceEach(lists [][]Entry) ([][]Entry, error) {
	s := sightings{options: o, several: len(lists) > 1, stamps: map[stamp]*Entry{}, paths: map[string]*Entry{}}
	for i, list := range lists {
		var kept []Entry // nil while nothing is left out
		for k := range list {
			again, err := s.again(&list[k])
			switch {
			case err != nil:
				return nil, err
			case again && kept == nil:
				kept = append(make([]Entry, 0, len(list)), list[:k]...)
			case !again && kept != nil:
				kept = append(kept, list[k])
			}
		}
		if kept != nil {
			lists[i] = kept
		}
	}
	s.tell()
	return lists, nil
}

// sightings finds objects that are listed several times. To follow the links of all paths
// would take longer than to list them, so it is done for files of one size and time.
type sightings struct {
	options *Opening
	several bool // names, so that one path may be listed twice
	stamps  map[stamp]*Entry
	paths   map[string]*Entry // by path and columns

	twice, linked  int
	one, other     string // the first file that is listed twice
	link, likewise string // the first hard links
}

// stamp is what two listings of a file have in common.
type stamp struct{ size, time int64 }

// again reports whether an object was listed before.
func (s *sightings) again(e *Entry) (bool, error) {
	if e.Of != nil {
		return s.listedAgain(e)
	}
	if s.several { // a file that grows has another stamp, and the same name
		if was, err := s.before(e, absolute(e.Name)); was != nil || err != nil {
			return s.count(was, e), err
		}
	}
	k := stamp{e.Size, e.ModTime.UnixNano()}
	like := s.stamps[k]
	if like == nil {
		s.stamps[k] = e
		return false, nil
	}
	was, err := s.before(like, objects.Resolve(s.options.Store, like.Name))
	if was == e { // e is recorded under its own path, to which that of like leads
		return s.count(like, e), err
	}
	if err == nil {
		was, err = s.before(e, objects.Resolve(s.options.Store, e.Name))
	}
	if was == nil && err == nil {
		s.compare(like, e, false)
	}
	return s.count(was, e), err
}

// rememberedStamps is how many files linkedTo compares others with: there may be millions.
const rememberedStamps = 1 << 16

// linkedTo compares a local file with an earlier one of its size and time.
func (s *sightings) linkedTo(e *Entry) {
	k := stamp{e.Size, e.ModTime.UnixNano()}
	switch like := s.stamps[k]; {
	case address.IsURL(e.Name):
	case like != nil:
		s.compare(like, e, true)
	case len(s.stamps) < rememberedStamps:
		s.stamps[k] = e
	}
}

// before returns another object that was listed with a path and the same columns; if there
// is none, it records this one.
func (s *sightings) before(e *Entry, at string) (*Entry, error) {
	parts, err := s.options.PartsOf(*e)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		at += fmt.Sprintf("\x00%q=%q%v", p.Name, p.Text, p.Null)
	}
	was := s.paths[at]
	if was == nil {
		s.paths[at] = e
	}
	if was == e {
		was = nil
	}
	return was, nil
}

// count counts a file that is listed again.
func (s *sightings) count(was, e *Entry) bool {
	if was == nil {
		return false
	}
	if s.twice++; s.twice == 1 {
		s.one, s.other = was.Name, e.Name
	}
	return true
}

// compare counts local files that have several names without being links. apart says that none of
// the names leads through a link.
func (s *sightings) compare(a, b *Entry, apart bool) {
	x, err := os.Stat(a.Name)
	y, other := os.Stat(b.Name)
	if err != nil || other != nil || !os.SameFile(x, y) {
		return
	}
	if apart || objects.Resolve(s.options.Store, a.Name) != objects.Resolve(s.options.Store, b.Name) {
		if s.linked++; s.linked == 1 {
			s.link, s.likewise = a.Name, b.Name
		}
	}
}

// tell passes on notes.
func (s *sightings) tell() {
	switch {
	case s.twice == 0:
	case s.one == s.other:
		s.options.note("%s is named twice, and read once%s", s.one, more(s.twice))
	default:
		s.options.note("%s and %s are one file, which is read once%s", s.one, s.other, more(s.twice))
	}
	if s.linked > 0 {
		s.options.note("%s and %s are hard links to one file, and the rows of both are read%s", s.link, s.likewise, more(s.linked))
	}
}

// more says that the first of some files is an example.
func more(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf("; likewise %d more", n-1)
}
