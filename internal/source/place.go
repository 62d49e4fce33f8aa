package source

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// place is an output or directory, whichever name is used for it.
type place struct {
	store storage.Source
	real  string
	file  os.FileInfo       // nil: there is none, or it is not local
	seen  map[string]string // results of resolve
	dirs  map[string]bool   // results of Holds for directories of files
}

func NewPlace(s storage.Source, name string) *place {
	p := &place{store: s, seen: map[string]string{}, dirs: map[string]bool{}}
	p.real = p.resolve(name)
	if !address.IsURL(name) {
		p.file, _ = os.Stat(name)
	}
	return p
}

// Holds reports whether name, or the file that it links to, is the place or below it.
func (p *place) Holds(name string) bool {
	for _, n := range []string{absolute(name), p.resolve(name)} {
		for {
			if p.resolve(n) == p.real {
				return true
			}
			up := address.Parent(n)
			if up == n {
				break
			}
			n = up
		}
	}
	return false
}

// HoldsFile reports whether a file is in the place or, maybe by a hard link, the place itself.
// For a local file that is not a link it resolves only the directory, once for all files there.
func (p *place) HoldsFile(name string) bool {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || p.store != storage.Local() {
		return p.Holds(name) || p.Is(name)
	}
	dir := filepath.Dir(name)
	holds, known := p.dirs[dir]
	if !known {
		holds = p.Holds(dir)
		p.dirs[dir] = holds
	}
	return holds || p.file != nil && os.SameFile(info, p.file)
}

// Is reports whether a file is the place, maybe by a hard link, or a link to something in
// it.
func (p *place) Is(name string) bool {
	if address.IsURL(name) {
		return objects.Resolve(p.store, name) == p.real
	}
	if isLink(name) {
		return p.Holds(name)
	}
	info, err := os.Stat(name)
	return err == nil && p.file != nil && os.SameFile(info, p.file)
}

// resolve is [objects.Resolve], called once for each name.
func (p *place) resolve(name string) string {
	name = absolute(name)
	real, ok := p.seen[name]
	if !ok {
		real = objects.Resolve(p.store, name)
		p.seen[name] = real
	}
	return real
}

// absolute makes a path absolute without following links. URLs only lose trailing
// slashes.
func absolute(name string) string {
	if address.IsURL(name) {
		return strings.TrimRight(name, "/")
	}
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

// PlaceOf returns where a file is, whichever name is used for it: its path without links, and
// the name=value directories of its name which that path does not have.
func PlaceOf(s storage.Source, name string, columns []dataset.PartitionValue) string {
	if _, ok := s.(storage.Resolver); !ok {
		s = storage.Local() // which it may be around
	}
	at := filepath.ToSlash(objects.Resolve(s, address.Local(name)))
	parts, _ := hive.Parse(at) // of none if it has one twice
	for _, c := range columns {
		if !slices.Contains(parts, hive.Part{Name: c.Name, Text: c.Text, Null: c.Null}) {
			at += "//" + c.Name + "=" + c.Text
		}
	}
	return at
}

// StemOf returns the name of an input's output without its extension.
func StemOf(rel string) string {
	if ext := path.Ext(rel); FormatByName(ext) != "" { // not the .2001 of log.2001
		return strings.TrimSuffix(rel, ext)
	}
	return rel
}
