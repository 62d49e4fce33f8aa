package publish

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// mergedParts is what all workers of a run have done.
type mergedParts struct {
	first   *Part
	entries []Entry
	files   []File
	counts  Counts
	matched [2]int64
}

// merged adds up the parts of a run. Each row group of each input must have been read by
// exactly one worker.
func (d *Dir) merged(parts []*Part) (*mergedParts, error) {
	slices.SortFunc(parts, func(a, b *Part) int { return cmp.Compare(a.Shard, b.Shard) })
	u := &mergedParts{first: parts[0]}
	at := map[string]int{}
	names := map[string]*Part{}
	for i, p := range parts {
		if i > 0 && p.Shard == parts[i-1].Shard {
			return nil, faults.Corrupt(fault.At{File: d.manifest(p.name)}, "shard %d, which is also in %s", p.Shard, parts[i-1].name).WithHint("leave one of the two out")
		}
		if err := d.agree(parts[0], p); err != nil {
			return nil, err
		}
		for _, f := range p.Files {
			if names[f.Name] != nil {
				return nil, faults.Corrupt(fault.At{File: d.manifest(p.name)}, "%s, which shard %d has written, too", f.Name, names[f.Name].Shard).WithHint("run both again with {Force}")
			}
			names[f.Name], f.Modified = p, p.written
			u.files = append(u.files, f)
		}
		for _, e := range p.Inputs {
			e.Done = p.written
			u.counts.add(e.Counts)
			k, ok := at[e.Input]
			if !ok {
				at[e.Input] = len(u.entries)
				u.entries = append(u.entries, e)
				continue
			}
			if err := d.joined(&u.entries[k], e); err != nil {
				return nil, err
			}
		}
		u.matched[0] = max(u.matched[0], p.Recipe.IDsMatched[0])
		u.matched[1] += p.Recipe.IDsMatched[1]
	}
	return u, d.covered(u)
}

// agree returns an error unless two parts are of the same run. If they are, but of different tasks,
// another run has removed the plan in between, and takes their place.
func (d *Dir) agree(a, b *Part) error {
	planned := a.Task.Digest == b.Task.Digest && a.Task.Inputs == b.Task.Inputs
	if planned && a.Run == b.Run && a.Of == b.Of && a.Recipe.same(&b.Recipe) && a.Require == b.Require {
		return nil
	}
	err := faults.Of(cause.Workers, faults.Mismatch(fault.At{File: d.manifest(b.name)}, "the run", "the inputs and options of "+a.name, "others")).
		WithHint("run all workers with the same inputs and options, and commit what they wrote to the same directory")
	if a.Run == b.Run && !planned {
		return fmt.Errorf("%w%w", err, quiet.Error{Err: storage.ErrAgain})
	}
	return err
}

// joined adds what another worker has read of an input.
func (d *Dir) joined(e *Entry, f Entry) error {
	if e.Size != f.Size || e.Print != f.Print || e.Groups != f.Groups {
		return faults.Of(cause.Workers, faults.Mismatch(fault.At{File: f.Input}, "the input", "the same content for all workers", "different contents")).
			WithHint("run all workers again with {Force}, while the input does not change")
	}
	if f.Lo != e.Hi {
		return unlike(f.Input, "row groups", fmt.Sprintf("a worker that goes on with row group %d", e.Hi), fmt.Sprintf("%d to %d", f.Lo, f.Hi))
	}
	e.Hi, e.Done, e.Cuts = f.Hi, max(e.Done, f.Done), append(e.Cuts, f.Lo)
	e.Counts.add(f.Counts)
	e.Files = append(e.Files, f.Files...)
	return nil
}

// covered returns an error unless all row groups of all inputs have been read, and all
// rows written.
func (d *Dir) covered(u *mergedParts) error {
	inputs, rows := 0, int64(0)
	for i := range u.entries {
		e := &u.entries[i]
		slices.Sort(e.Files)
		e.Files = slices.Compact(e.Files)
		if e.Input != "" {
			inputs++
		}
		if e.Lo != 0 || e.Hi != e.Groups {
			return unlike(e.Input, "row groups", fmt.Sprintf("all %d", e.Groups), fmt.Sprintf("%d to %d", e.Lo, e.Hi))
		}
	}
	if inputs != u.first.Task.Inputs {
		return unlike(d.Name, "inputs", u.first.Task.Inputs, inputs)
	}
	for _, f := range u.files {
		rows += f.Rows
	}
	if rows != u.counts.RowsOut {
		return unlike(d.Name, "rows of the files", fmt.Sprintf("%d, as the inputs gave", u.counts.RowsOut), rows)
	}
	return nil
}

// unlike returns the error of workers whose parts do not make a whole.
func unlike(file, what string, want, got any) error {
	return faults.Of(cause.Workers, faults.Mismatch(fault.At{File: file}, what, want, got)).WithHint("run all workers again with {Force}")
}

// required checks the requirements over all inputs of the run.
func (u *mergedParts) required(s *State) error {
	c := u.first.Task.Kept
	c.add(u.counts)
	matched, total := u.matched, u.first.Recipe.IDsTotal
	if u.first.Task.Kept != (Counts{}) {
		matched, total = s.matchedWith(&u.first.Recipe, matched)
	}
	return u.first.Require.Check(c, matched, total)
}

// matchedWith returns bounds on the number of IDs with a row in the outputs, and the number
// of all IDs. It adds the state's outputs to others, whose bounds are matched.
func (s *State) matchedWith(r *Recipe, matched [2]int64) (_ [2]int64, total int64) {
	total = r.IDsTotal
	for _, o := range s.Recipes {
		if o.same(r) {
			matched[0], matched[1] = max(matched[0], o.IDsMatched[0]), matched[1]+o.IDsMatched[1]
			total = max(total, o.IDsTotal)
		}
	}
	return matched, total
}

// fits returns an error if the outputs of a run, in place of those that go, do not fit the others.
func (d *Dir) fits(s *State, u *mergedParts, run *Run, gone map[string]bool) error {
	for _, f := range s.Files {
		some := func(is bool) bool {
			return slices.ContainsFunc(f.Inputs, func(input string) bool { return gone[input] == is })
		}
		if some(true) && some(false) {
			return fmt.Errorf("%s: %w: %s has rows of other inputs, too (run all workers again)", d.Name, ErrExists, f.Name)
		}
	}
	for i := range s.Inputs {
		e := &s.Inputs[i]
		if !gone[e.Input] || u.first.Task.Force {
			continue
		}
		was := s.recipe(e)
		if !was.sameOptions(&u.first.Recipe) || run != nil && !run.replacedInputs[e.Input] && !was.same(&u.first.Recipe) { // made since the run began
			return d.foreign(cmp.Or(append(slices.Clone(e.Files), e.Input)...))
		}
	}
	ours := func(r Recipe) bool { return r.sameOptions(&u.first.Recipe) }
	if len(s.Recipes) > 0 && !u.first.Task.Force && !slices.ContainsFunc(s.Recipes, ours) { // all made since the run began
		return d.foreign(cmp.Or(append(slices.Clone(s.Inputs[0].Files), s.Inputs[0].Input)...))
	}
	return nil
}

// next returns the state after the run.
func (d *Dir) next(l *listing, s *State, u *mergedParts, run *Run) (*State, error) {
	gone := map[string]bool{}
	for _, e := range u.entries {
		gone[e.Input] = true
	}
	for _, input := range u.first.Task.Remove {
		gone[input] = true
	}
	if err := d.fits(s, u, run, gone); err != nil {
		return nil, err
	}
	next := s.without(gone)
	next.arrange() // recipes without outputs are forgotten
	for _, f := range u.files {
		if next.file(f.Name) != nil {
			return nil, fmt.Errorf("%s: %w: %s is the output of other inputs, too (write to another directory)", d.Name, ErrExists, f.Name)
		}
	}
	recipe := u.first.Recipe
	recipe.IDsMatched = u.matched
	next.add(recipe, u.entries, u.files)
	next.arrange()
	if err := next.consistent(fault.At{File: d.manifest(u.first.name)}); err != nil {
		return nil, err
	}
	if one, other := next.twice(); other != "" {
		return nil, d.twice(one, other)
	}
	for _, f := range s.Files {
		if _, ok := l.objects[f.Name]; ok && next.file(f.Name) == nil {
			next.Remove = append(next.Remove, f)
		}
	}
	next.Committed = append(slices.Clone(s.Committed), u.first.key())
	next.Committed = next.Committed[max(0, len(next.Committed)-maxCommitted):]
	return next, nil
}
