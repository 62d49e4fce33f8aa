package publish

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// comparison finds what is to be done: it compares the inputs of a run with the state.
//
// An input is kept if its outputs are whole and come from the same content by the same recipe.
// Outputs of an input that is gone are kept unless Prune is set, with one exception: in a
// name=value directory that the run was given as a whole and that still has an input, they are
// removed, as after a compaction.
type comparison struct {
	dir     *Dir
	listing *listing
	state   *State
	in      Inputs

	named      map[string]bool // inputs
	todo       map[string]bool // of named
	kept       []*Entry
	remove     map[string]bool // inputs of the state
	gone       []string        // inputs of the state that are kept
	roots      map[string]bool // directories that were listed, as Rel
	partitions map[string]bool // with an input below one of the roots
	otherIDs   []string        // kept inputs that were done with other IDs
	heals      bool            // see Task
	damaged    []string        // inputs whose outputs are damaged
	notes      []string
}

func newComparison(d *Dir, l *listing, s *State, in Inputs) *comparison {
	return &comparison{
		dir: d, listing: l, state: s, in: in,
		named: map[string]bool{}, todo: map[string]bool{}, remove: map[string]bool{}, roots: map[string]bool{}, partitions: map[string]bool{},
	}
}

// task returns what is to be done, after compare.
func (c *comparison) task() Task {
	t := Task{Generation: c.state.Generation, Force: c.dir.Force}
	if len(c.state.Inputs) == 0 {
		t.Inputs, t.All = c.in.Len, true
		return t
	}
	t.Inputs, t.All, t.Remove = len(c.todo), len(c.todo) == len(c.named), slices.Sorted(maps.Keys(c.remove))
	t.Heal = c.heals && len(c.otherIDs) == 0 && len(c.remove) == 0
	for _, e := range c.state.Inputs {
		if t.Heal && c.todo[e.Input] && len(e.Cuts) > 0 {
			t.Cuts = append(t.Cuts, Cut{e.Input, e.Cuts})
		}
	}
	if !t.All {
		t.Only = slices.Sorted(maps.Keys(c.todo))
	}
	for _, e := range c.state.Inputs {
		if c.todo[e.Input] || e.Input == "" && c.dir.Recipe.Whole && t.Inputs > 0 {
			t.Again = append(t.Again, e.Input)
		}
	}
	for _, e := range c.kept {
		if !c.todo[e.Input] {
			t.Kept.add(e.Counts)
		}
	}
	return t
}

func (c *comparison) compare(ctx context.Context) error {
	if len(c.state.Inputs) == 0 { // everything is to be done
		return nil
	}
	if err := c.recipes(); err != nil {
		return err
	}
	for in, err := range c.in.Each {
		if err != nil {
			return err
		}
		if err := c.input(ctx, in); err != nil {
			return err
		}
	}
	c.heals = len(c.todo) > 0 && len(c.todo) == len(c.damaged)
	if err := c.ids(); err != nil {
		return err
	}
	c.missing()
	if err := c.whole(ctx); err != nil {
		return err
	}
	return cmp.Or(c.renamed(), c.moved(), c.shared(), c.types())
}

// recipes returns an error if the outputs in the directory were made with other options, or,
// where outputs depend on all inputs and are not to be made again, with other IDs. Outputs made
// with the same options can be kept: see input.
func (c *comparison) recipes() error {
	d, s := c.dir, c.state
	if d.Force || len(s.Recipes) == 0 {
		return nil
	}
	var foreign *Entry
	ours := false
	for i := range s.Inputs {
		e := &s.Inputs[i]
		switch r := s.recipe(e); {
		case r.sameOptions(&d.Recipe) && (r.IDs == d.Recipe.IDs || !d.Recipe.Whole || d.IDsChanged == IDsRerun && c.in.Len > 0):
			ours = true
		case foreign == nil:
			foreign = e
		}
	}
	if foreign == nil || ours && !d.Recipe.Whole {
		return nil
	}
	return c.foreign(foreign)
}

// foreign returns the error of an entry that was made with other options.
func (c *comparison) foreign(e *Entry) error {
	if err := c.dir.CheckTypes(c.dir.Name, c.state.recipe(e).Hive); err != nil {
		return err
	}
	return c.dir.foreign(cmp.Or(append(slices.Clone(e.Files), e.Input)...))
}

// types returns an error if outputs that stay have another type of a column that comes from
// the inputs' paths, or if outputs that go were made with other options.
func (c *comparison) types() error {
	for i := range c.state.Inputs {
		e := &c.state.Inputs[i]
		if c.remove[e.Input] && !c.dir.Force && !c.state.recipe(e).sameOptions(&c.dir.Recipe) {
			return c.foreign(e)
		}
		if c.todo[e.Input] || c.remove[e.Input] {
			continue
		}
		if err := c.dir.CheckTypes(c.dir.Name, c.state.recipe(e).Hive); err != nil {
			return err
		}
	}
	return nil
}

// input decides about one input.
func (c *comparison) input(ctx context.Context, in Input) error {
	d := c.dir
	c.named[in.Input] = true
	if in.Found {
		c.roots[in.Root] = true
		if p := partitionOf(in.Input); p != "" && below(p, in.Root) {
			c.partitions[p] = true
		}
	}
	e := c.state.entry(in.Input)
	if e == nil || d.Force {
		c.todo[in.Input] = true
		return nil
	}
	r := c.state.recipe(e)
	if !r.sameOptions(&d.Recipe) {
		return c.foreign(e)
	}
	if d.All {
		c.todo[in.Input] = true
		return nil
	}
	if e.Size != in.Size || in.Print == "" || e.Print != in.Print || e.Done != 0 && millis(in.ModTime) > e.Done {
		c.todo[in.Input] = true
		return nil
	}
	intact, err := c.intact(ctx, e)
	if err != nil {
		return err
	}
	if !intact {
		c.todo[in.Input], c.damaged = true, append(c.damaged, in.Input)
		return nil
	}
	if r.IDs != d.Recipe.IDs {
		c.otherIDs = append(c.otherIDs, in.Input)
	}
	c.kept = append(c.kept, e)
	return nil
}

// ids decides about inputs that were done with other IDs.
func (c *comparison) ids() error {
	if len(c.otherIDs) == 0 {
		return nil
	}
	switch c.dir.IDsChanged {
	case IDsKeep:
		return nil
	case IDsRerun:
		for _, input := range c.otherIDs {
			c.todo[input] = true
		}
		return nil
	}
	return faults.Errorf("%s: %w: the outputs of %s were made with other IDs, the first that of %s ({IDsChanged rerun} makes them again, {IDsChanged keep} keeps them and does only what is new)",
		c.dir.Name, ErrExists, things(len(c.otherIDs), "input"), c.otherIDs[0])
}

// missing decides about inputs of the state that the run does not have.
func (c *comparison) missing() {
	for _, e := range c.state.Inputs {
		if e.Input == "" || c.named[e.Input] || c.in.Left[e.Input] {
			continue
		}
		p := partitionOf(e.Input)
		switch {
		case p != "" && c.partitions[p]:
			c.remove[e.Input] = true
		case !c.covered(e.Input):
		case c.dir.Prune:
			c.remove[e.Input] = true
		default:
			c.gone = append(c.gone, e.Input)
		}
	}
}

// covered reports whether an input would have been found in a directory that was listed.
func (c *comparison) covered(input string) bool {
	for root := range c.roots {
		if root == "" || strings.HasPrefix(input, root+"/") {
			return true
		}
	}
	return false
}

// whole makes everything again if each output depends on all inputs and one has changed.
func (c *comparison) whole(ctx context.Context) error {
	if !c.dir.Recipe.Whole {
		return nil
	}
	if len(c.todo)+len(c.remove)+len(c.gone) == 0 {
		// The entry without an input has the rows that come from none.
		if rest, err := c.intact(ctx, c.state.entry("")); rest || err != nil {
			return err
		}
	}
	c.gone = nil // their outputs go
	for input := range c.named {
		c.todo[input] = true
	}
	for _, e := range c.state.Inputs {
		r := c.state.recipe(&e)
		if e.Input != "" && !c.named[e.Input] && (r.Whole || r.sameOptions(&c.dir.Recipe)) {
			c.remove[e.Input] = true
		}
	}
	return nil
}

// renamed decides about outputs of files that this run reads by another name: their rows would
// be there twice.
func (c *comparison) renamed() error {
	was := map[string]string{} // by place
	for _, e := range c.state.Inputs {
		if e.Place != "" && !c.named[e.Input] && !c.remove[e.Input] {
			was[e.Place] = e.Input
		}
	}
	if len(was) == 0 {
		return nil
	}
	for in, err := range c.in.Each {
		if err != nil {
			return err
		}
		if !c.todo[in.Input] {
			continue
		}
		input, ok := was[in.Resolve(c.dir.Store)]
		if ok && !c.dir.Force {
			return c.dir.twice(input, in.Input)
		}
		if ok {
			c.remove[input] = true
		}
	}
	c.gone = slices.DeleteFunc(c.gone, func(input string) bool { return c.remove[input] })
	return nil
}

// moved decides about outputs of files that a table no longer has: their rows are in others now.
func (c *comparison) moved() error {
	if !c.dir.OfTable || len(c.gone) == 0 {
		return nil
	}
	return faults.Errorf("%s: %w: it has outputs of %s that the table no longer has, the first of %s, whose rows may be here twice ({Prune} removes them; another table needs another directory)",
		c.dir.Name, ErrExists, things(len(c.gone), "file"), c.gone[0])
}

// twice returns the error of two inputs that are one file.
func (d *Dir) twice(one, other string) error {
	return faults.Errorf("%s: %w: %s and %s are one file, whose rows would be here twice (give the arguments or {Base} of the run before, or write to another directory; {Force} replaces the earlier output)", d.Name, ErrExists, one, other)
}

// intact reports whether the outputs of an entry are whole; not of nil.
func (c *comparison) intact(ctx context.Context, e *Entry) (bool, error) {
	if e == nil {
		return false, nil
	}
	for _, name := range e.Files {
		trouble, err := c.dir.trouble(ctx, c.listing, c.state.file(name))
		if err != nil {
			return false, err
		}
		if trouble != "" {
			c.notes = append(c.notes, fmt.Sprintf("%s is %s; it was written again", name, trouble))
			return false, nil
		}
	}
	return true, nil
}

// shared adds the inputs that share a file with one that is done again or removed.
func (c *comparison) shared() error {
	s := c.state
	queue := slices.AppendSeq(slices.Collect(maps.Keys(c.todo)), maps.Keys(c.remove))
	for len(queue) > 0 {
		e := s.entry(queue[0])
		queue = queue[1:]
		if e == nil {
			continue
		}
		for _, name := range e.Files {
			for _, input := range s.file(name).Inputs {
				if c.todo[input] || c.remove[input] || input == "" {
					continue
				}
				if !c.named[input] {
					return faults.Errorf("%s: %w: %s has rows of %s and of %s, and this run reads only the first (name the whole directory)", c.dir.Name, ErrExists, name, e.Input, input)
				}
				c.todo[input] = true
				queue = append(queue, input)
			}
		}
	}
	return nil
}

// things returns a number with a noun.
func things(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
