package publish

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"
)

// State is the root manifest of an output directory: the files made from each input's version,
// and the recipe. It stands beside the directory, as JSON; see [Dir].
type State struct {
	Version    int      `json:"version"`    // 5
	Generation int64    `json:"generation"` // of the state: each commit makes the next one
	Recipes    []Recipe `json:"recipes"`
	Inputs     []Entry  `json:"inputs"` // in ascending order of Input
	Files      []File   `json:"files"`  // in ascending order of Name
	Rows       int64    `json:"rows"`   // of all files
	Bytes      int64    `json:"bytes"`
	// Remove are files of the generation before that this one does not have: publishing it
	// removes them.
	Remove []File `json:"removing,omitempty"`
	// Committed are the keys of the last runs in the state, the newest last.
	Committed []string `json:"committed,omitempty"`
}

// maxCommitted is how many runs a state remembers, so that what they have left can be told from
// runs that are not committed yet.
const maxCommitted = 100

// Recipe is what was done with the inputs. Outputs of equal recipes can stand in one
// directory as if one run had written them.
type Recipe struct {
	Options string   `json:"options"`          // digest of the options, hexadecimal
	IDs     string   `json:"ids"`              // digest of the IDs or filters, hexadecimal
	Result  string   `json:"result,omitempty"` // what the rows are: candidates or exact
	Filter  string   `json:"filter,omitempty"` // digest of the filter, hexadecimal
	Hive    []string `json:"hive,omitempty"`   // columns that come from the inputs' paths, as "dt:date"
	// RawFiles is true if files of tables were read as they are, with deleted rows.
	RawFiles bool `json:"raw_files,omitempty"`
	// Whole is true if each output depends on all inputs, as in right and full joins.
	Whole bool `json:"whole,omitempty"`
	// IDsMatched are bounds on the number of IDs that have a row, over all inputs:
	// workers count them separately, and some may have found the same ID.
	IDsMatched [2]int64 `json:"ids_matched"`
	IDsTotal   int64    `json:"ids_total"`
}

// Entry is an input, or with an empty Input the rows that come from no input.
type Entry struct {
	Input  string `json:"input"`           // its Rel, see [EscapeName]
	Place  string `json:"place,omitempty"` // where it was read, see source.PlaceOf; no digest has it
	Size   int64  `json:"size"`
	Print  string `json:"print"`  // fingerprint of its content, hexadecimal
	Groups int    `json:"groups"` // row groups
	// Lo and Hi are the row groups that a worker has read, Hi exclusive; in a state,
	// all row groups of the input.
	Lo     int   `json:"lo,omitempty"`
	Hi     int   `json:"hi,omitempty"`
	Cuts   []int `json:"cuts,omitempty"` // where it was divided among workers: their first row groups, without 0
	Recipe int   `json:"recipe"`         // index in State.Recipes
	// Generation is that of the first state with this entry.
	Generation int64 `json:"generation,omitempty"`
	Counts
	Files []string `json:"files,omitempty"` // names, ascending; none: no row is left of it
	Done  int64    `json:"done,omitempty"`  // when its outputs were complete, by the clock of their storage, in milliseconds since 1970; 0: unknown
}

// Counts are the rows of an input.
type Counts struct {
	RowsIn   int64 `json:"rows_in"`
	RowsKept int64 `json:"rows_kept"` // rows of the input that go to the output
	RowsOut  int64 `json:"rows_out"`  // rows of the output that they become
	KeysNull int64 `json:"keys_null,omitempty"`
}

func (c *Counts) add(d Counts) {
	c.RowsIn, c.RowsKept, c.RowsOut, c.KeysNull = c.RowsIn+d.RowsIn, c.RowsKept+d.RowsKept, c.RowsOut+d.RowsOut, c.KeysNull+d.KeysNull
}

// File is one file of a directory. In JSON, names are as [EscapeName] writes them.
type File struct {
	Name     string            `json:"name"`                // path below the directory
	Inputs   []string          `json:"inputs,omitempty"`    // Rels of the inputs that its rows come from
	Rows     int64             `json:"rows"`                //
	Bytes    int64             `json:"bytes"`               //
	Sum      string            `json:"xxh3,omitempty"`      // XXH3-128 of its bytes, hexadecimal
	Modified int64             `json:"modified,omitempty"`  // when its worker was done, by the clock of its storage, in milliseconds since 1970
	Staged   string            `json:"staged,omitempty"`    // token by which it is published, see objects.Publish; empty: it has been
	Identity string            `json:"identity,omitempty"`  // of the object, as its storage gives it
	Values   map[string]string `json:"partition,omitempty"` // of the columns of its name=value directories, without escapes; NULL is absent
}

// same reports whether two recipes do the same, with the same IDs or filters.
func (r *Recipe) same(o *Recipe) bool { return r.sameOptions(o) && r.IDs == o.IDs }

func (r *Recipe) sameOptions(o *Recipe) bool {
	return r.Options == o.Options
}

// entry returns the entry of an input, or nil.
func (s *State) entry(input string) *Entry {
	i, ok := slices.BinarySearchFunc(s.Inputs, input, func(e Entry, input string) int { return strings.Compare(e.Input, input) })
	if !ok {
		return nil
	}
	return &s.Inputs[i]
}

// file returns the file of a name, or nil.
func (s *State) file(name string) *File {
	i, ok := slices.BinarySearchFunc(s.Files, name, func(f File, name string) int { return strings.Compare(f.Name, name) })
	if !ok {
		return nil
	}
	return &s.Files[i]
}

// twice returns two inputs that were read at one place, if there are any.
func (s *State) twice() (one, other string) {
	at := map[string]string{}
	for _, e := range s.Inputs {
		if other, ok := at[e.Place]; ok && e.Place != "" {
			return other, e.Input
		}
		at[e.Place] = e.Input
	}
	return "", ""
}

// pending reports whether the files of the state are not all published.
func (s *State) pending() bool {
	return len(s.Remove) > 0 || slices.ContainsFunc(s.Files, func(f File) bool { return f.Staged != "" })
}

// committed reports whether the run of a part is in the state.
func (s *State) committed(p *Part) bool { return slices.Contains(s.Committed, p.key()) }

// outdated returns an input of the part whose entry was made after the part's run began, so that
// the run can never be committed. ok is false if there is none, unless others have removed all that
// the run would remove, and it does nothing else.
func (s *State) outdated(p *Part) (input string, ok bool) {
	late := func(input string) bool {
		e := s.entry(input)
		return e != nil && e.Generation > p.Task.Generation
	}
	for _, e := range p.Inputs {
		if late(e.Input) {
			return e.Input, true
		}
	}
	if i := slices.IndexFunc(p.Task.Remove, late); i >= 0 {
		return p.Task.Remove[i], true
	}
	left := p.Task.Inputs > 0 || slices.ContainsFunc(p.Task.Remove, func(input string) bool { return s.entry(input) != nil })
	return "", !left && s.Generation > p.Task.Generation
}

// newer reports whether an entry was made after a generation.
func (s *State) newer(generation int64) bool {
	return slices.ContainsFunc(s.Inputs, func(e Entry) bool { return e.Generation > generation })
}

// recipe returns the recipe of an entry.
func (s *State) recipe(e *Entry) *Recipe { return &s.Recipes[e.Recipe] }

// HiveTypes returns the columns that came from the inputs' paths, as "dt:date".
func (d *Dir) HiveTypes(ctx context.Context) []string {
	s, err := d.state(ctx)
	if err != nil || len(s.Recipes) == 0 {
		return nil
	}
	return s.Recipes[0].Hive
}

// state returns the state of the directory.
func (d *Dir) state(ctx context.Context) (*State, error) {
	l, err := d.lookBeside(ctx)
	if err != nil {
		return nil, err
	}
	return l.state(ctx)
}

// without returns a state without some entries and the files that only they have.
func (s *State) without(gone map[string]bool) *State {
	next := &State{Version: version, Generation: s.Generation + 1, Recipes: slices.Clone(s.Recipes), Committed: s.Committed}
	used := map[string]bool{}
	for _, e := range s.Inputs {
		if gone[e.Input] {
			continue
		}
		next.Inputs = append(next.Inputs, e)
		for _, name := range e.Files {
			used[name] = true
		}
	}
	for _, f := range s.Files {
		if used[f.Name] {
			next.Files = append(next.Files, f)
		}
	}
	return next
}

// removes returns the files that come from the given inputs only.
func (s *State) removes(inputs []string) (files []File) {
	gone := map[string]bool{}
	for _, input := range inputs {
		gone[input] = true
	}
	kept := s.without(gone)
	for _, f := range s.Files {
		if kept.file(f.Name) == nil {
			files = append(files, f)
		}
	}
	return files
}

// add adds entries of a recipe, with their files.
func (s *State) add(r Recipe, entries []Entry, files []File) {
	i := slices.IndexFunc(s.Recipes, func(o Recipe) bool { return r.same(&o) })
	if i < 0 {
		i = len(s.Recipes)
		s.Recipes = append(s.Recipes, r)
	} else {
		old := s.Recipes[i].IDsMatched
		r.IDsTotal = max(r.IDsTotal, s.Recipes[i].IDsTotal)
		r.IDsMatched[0] = max(r.IDsMatched[0], old[0])
		r.IDsMatched[1] = min(r.IDsMatched[1]+old[1], max(r.IDsTotal, r.IDsMatched[1]))
		r.RawFiles = r.RawFiles || s.Recipes[i].RawFiles
		s.Recipes[i] = r
	}
	for _, e := range entries {
		e.Recipe, e.Lo, e.Hi, e.Generation = i, 0, 0, s.Generation
		s.Inputs = append(s.Inputs, e)
	}
	s.Files = append(s.Files, files...)
}

func (s *State) sort() {
	slices.SortFunc(s.Inputs, func(a, b Entry) int { return strings.Compare(a.Input, b.Input) })
	slices.SortFunc(s.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
}

// arrange sorts, drops recipes that no entry has, and sums up.
func (s *State) arrange() {
	s.sort()
	at := make([]int, len(s.Recipes)) // new index, counted from 1
	var kept []Recipe
	for i, e := range s.Inputs {
		if at[e.Recipe] == 0 {
			kept = append(kept, s.Recipes[e.Recipe])
			at[e.Recipe] = len(kept)
		}
		s.Inputs[i].Recipe = at[e.Recipe] - 1
	}
	s.Recipes, s.Rows, s.Bytes = kept, 0, 0
	for _, f := range s.Files {
		s.Rows, s.Bytes = s.Rows+f.Rows, s.Bytes+f.Bytes
	}
}

// settle notes that the files of the state are published. Names are as they are in JSON.
func (s *State) settle(p *published) {
	for i := range s.Files {
		if f := &s.Files[i]; f.Staged != "" {
			f.Staged, f.Identity = "", p.Identities[f.Name]
		}
	}
	s.Remove = nil
}

// partitionOf returns the part of a path that ends with its last name=value directory,
// or "" if there is none.
func partitionOf(name string) string {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if strings.Index(path.Base(dir), "=") > 0 {
			return dir
		}
	}
	return ""
}

// below reports whether a directory is another one, or in it; "" holds all.
func below(dir, root string) bool {
	return root == "" || dir == root || strings.HasPrefix(dir, root+"/")
}

// millis returns a time as files and entries have it.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Recorded is what a state says of a run that is done.
type Recorded struct {
	Counts
	IDsMatched, IDsTotal int64    // of all of its inputs; IDsMatched is -1 if unknown
	Files                []string // with its rows, in the order of its inputs
}

// Recorded returns the figures of a run over these inputs. It returns nil if the state lacks one
// of them.
func (d *Dir) Recorded(ctx context.Context, in Inputs) (*Recorded, error) {
	s, err := d.state(ctx)
	if err != nil {
		return nil, err
	}
	r, named, recipes, seen := &Recorded{IDsMatched: -1}, 0, map[int]bool{}, map[string]bool{}
	add := func(e *Entry) {
		r.add(e.Counts)
		recipes[e.Recipe] = true
		for _, name := range e.Files {
			if !seen[name] { // inputs may share a file
				seen[name], r.Files = true, append(r.Files, name)
			}
		}
		named++
	}
	for one, err := range in.Each {
		if err != nil {
			return nil, err
		}
		e := s.entry(one.Input)
		if e == nil {
			return nil, nil
		}
		add(e)
	}
	if e := s.entry(""); e != nil && d.Recipe.Whole {
		add(e)
	}
	if named == len(s.Inputs) && len(recipes) == 1 {
		recipe := s.recipe(&s.Inputs[0])
		if r.IDsTotal = recipe.IDsTotal; recipe.IDsMatched[0] == recipe.IDsMatched[1] {
			r.IDsMatched = recipe.IDsMatched[0]
		}
	}
	return r, nil
}
