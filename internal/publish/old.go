package publish

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
)

// oldManifest is a manifest of version 1 or 2, which stood in the directory itself.
type oldManifest struct {
	Version int `json:"version"`
	Files   []struct {
		Name  string `json:"name"`
		Input string `json:"input"`
		Rows  int64  `json:"rows"`
		Bytes int64  `json:"bytes"`
		Sum   string `json:"xxh3"`
	} `json:"files"`
}

// oldRecipe stands for whatever an earlier version did.
func oldRecipe() Recipe { return Recipe{Options: "of an earlier version"} }

// adopt adds the files of manifests of earlier versions to the state, with an unknown
// recipe. The manifests are removed with the next commit.
func (d *Dir) adopt(ctx context.Context, l *listing) error {
	if len(l.old) == 0 {
		return nil
	}
	slices.Sort(l.old)
	byInput := map[string]*Entry{}
	for _, name := range l.old {
		m := &oldManifest{}
		at := fault.At{File: d.path(name)}
		b, _, err := d.readWhole(ctx, at.File)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := json.Unmarshal(b, m); err != nil {
			return fault.Corrupt(at, "not a manifest in JSON: %v", err).WithHint(hint)
		}
		if m.Version < 1 || m.Version > 2 {
			return fault.Unsupported(at, "a manifest of version %d in an output directory; this program reads 1 and 2 there", m.Version).
				WithHint("use a newer bloomjoin, or write to another directory")
		}
		for _, f := range m.Files {
			if m.Version > 1 {
				f.Name, f.Input = UnescapeName(f.Name), UnescapeName(f.Input)
			}
			if !localName(f.Name) {
				return outside(at, f.Name)
			}
			if l.known.file(f.Name) != nil {
				continue
			}
			e := byInput[f.Input]
			if e == nil {
				e = &Entry{Input: f.Input}
				byInput[f.Input] = e
			}
			if !slices.Contains(e.Files, f.Name) {
				e.Files = append(e.Files, f.Name)
				l.known.insert(File{Name: f.Name, Inputs: []string{f.Input}, Rows: f.Rows, Bytes: f.Bytes, Sum: f.Sum})
			}
		}
	}
	l.adoptEntries(byInput)
	return nil
}

// adoptEntries adds the entries that the state does not have.
func (l *listing) adoptEntries(byInput map[string]*Entry) {
	l.known.Recipes = append(l.known.Recipes, oldRecipe())
	for input, e := range byInput {
		if l.known.entry(input) != nil {
			continue
		}
		e.Recipe = len(l.known.Recipes) - 1
		l.known.Inputs = append(l.known.Inputs, *e)
	}
	l.known.settle()
}

// insert adds a file in its place.
func (s *State) insert(f File) {
	i, ok := slices.BinarySearchFunc(s.Files, f.Name, func(g File, name string) int { return strings.Compare(g.Name, name) })
	if !ok {
		s.Files = slices.Insert(s.Files, i, f)
	}
}
