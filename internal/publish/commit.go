package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// errLost means that another run has committed at the same time.
var errLost = errors.New("another run has committed meanwhile")

// errMissing means that a file of a worker is not there.
var errMissing = errors.New("a file is missing")

// wait waits, unless the context ends before.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return stopped.Err(ctx)
	case <-time.After(d):
		return nil
	}
}

// patience is how often a commit is tried against others.
const patience = 1000

// conclude commits the run if all of its workers are done, and then sees to the markers.
// lack says why there is no _SUCCESS, unless that is because this run waits for other
// workers.
func (r *Run) conclude(ctx context.Context) (lack string, err error) {
	d := r.dir
	for try := range patience {
		l, err := d.look(ctx)
		if err != nil {
			return "", err
		}
		names := l.of(r.id[:digits], r.of())
		left := false
		if len(names) > 0 {
			if left, err = l.leftOver(ctx, names[0]); err != nil {
				return "", err
			}
		}
		if len(names) > 0 && !left {
			if d.NoCommit || missing(names) != "" {
				return "", nil
			}
			if dropped, err := r.dropOutdated(ctx, l, names); err != nil {
				return "", err
			} else if dropped {
				continue
			}
			err := d.commitAll(ctx, l, names, r)
			switch {
			case err == nil, errors.Is(err, errLost):
			case errors.Is(err, errMissing) && try < 20: // another run may be taking its place: files go first, then parts
				if err := wait(ctx, 10*time.Millisecond); err != nil {
					return "", err
				}
			default:
				_, now := d.Store.Stat(ctx, d.manifest(names[0].name))
				switch {
				case errors.Is(now, fs.ErrNotExist): // it has
				case errors.Is(err, errMissing):
					return "", fmt.Errorf("%w (%w)", r.disputed(), err)
				default:
					return "", err
				}
			}
			continue
		}
		lack, settled, err := d.mark(ctx, l)
		if err != nil || settled {
			return lack, err
		}
	}
	return "other runs keep changing the directory", nil
}

// dropOutdated removes the parts of an earlier task of this run, which its workers have to
// do again.
func (r *Run) dropOutdated(ctx context.Context, l *listing, names []*partName) (dropped bool, err error) {
	now := &Run{dir: r.dir, id: r.id}
	if found, err := now.readPlan(ctx); !found || err != nil {
		return false, err
	}
	want := now.task.brief().Digest
	for _, p := range names {
		part, err := l.load(ctx, p)
		if err != nil {
			return false, err
		}
		if part == nil || part.Task.Digest == want {
			continue
		}
		dropped = true
		if err := r.dir.removeManifest(ctx, p.name); err != nil {
			return false, err
		}
	}
	return dropped, nil
}

// commitAll reads the parts and commits them.
func (d *Dir) commitAll(ctx context.Context, l *listing, names []*partName, run *Run) error {
	var parts []*Part
	for _, p := range names {
		part, err := l.load(ctx, p)
		if err != nil {
			return err
		}
		if part == nil {
			return errLost // another worker has committed the run
		}
		part.name = p.name
		parts = append(parts, part)
	}
	return d.commit(ctx, l, parts, run)
}

// of returns the parts of a run. Of a worker that is done and has begun again, as its
// outputs were damaged, that is the part that has begun.
func (l *listing) of(run string, of uint32) (parts []*partName) {
	for _, p := range l.parts {
		if p.run != run || p.of != of {
			continue
		}
		i := slices.IndexFunc(parts, func(q *partName) bool { return q.shard == p.shard })
		switch {
		case i < 0:
			parts = append(parts, p)
		case p.done: // its removal was cut short
			parts[i] = p
		}
	}
	return parts
}

// missing returns which workers of a run are not done, or "".
func missing(parts []*partName) string {
	if len(parts) == 0 {
		return "no worker has begun"
	}
	done := map[uint32]bool{}
	for _, p := range parts {
		if p.done {
			done[p.shard] = true
		}
	}
	of := parts[0].of
	if uint32(len(done)) == of {
		return ""
	}
	var few []string
	for i := uint32(0); i < of && len(few) < 10; i++ {
		if !done[i] {
			few = append(few, fmt.Sprint(i))
		}
	}
	if int(of)-len(done) > len(few) {
		few = append(few, "…")
	}
	return fmt.Sprintf("%d of %d workers are done, without %s", len(done), of, strings.Join(few, ", "))
}

// leftOver reports whether a part is what a commit that was cut short has left, or a
// second attempt at a worker's part that ended after the commit: then the run has no
// plan any more, and its inputs are in the state.
func (l *listing) leftOver(ctx context.Context, p *partName) (bool, error) {
	if p.of <= 1 || slices.Contains(l.plans, planName(p.run, p.of)) {
		return false, nil
	}
	part, err := l.load(ctx, p)
	if err != nil || part == nil {
		return part == nil, err
	}
	s, err := l.state(ctx)
	if err != nil {
		return false, err
	}
	other := func(input, print string) bool {
		has := s.entry(input)
		return has == nil || print != "" && has.Print != print || !s.recipe(has).same(&part.Recipe)
	}
	return !slices.ContainsFunc(part.Inputs, func(e Entry) bool { return other(e.Input, e.Print) }) &&
		!slices.ContainsFunc(part.Files, func(f File) bool {
			return slices.ContainsFunc(f.Inputs, func(input string) bool { return other(input, "") })
		}), nil
}

// commit makes the state in which the outputs of all workers of a run have their place. run
// is that of the last worker; nil: without it, the rows of each file are compared with what the file itself says. The
// error is errLost if another run was faster.
func (d *Dir) commit(ctx context.Context, l *listing, parts []*Part, run *Run) error {
	r, err := d.united(parts)
	if err != nil {
		return err
	}
	if err := d.present(ctx, l, r.files, run == nil); err != nil {
		return err
	}
	s, err := l.state(ctx)
	if err != nil {
		return err
	}
	if err := r.required(s); err != nil {
		return err
	}
	next, err := d.next(l, s, r, run)
	if err != nil {
		return err
	}
	if err := d.writeState(ctx, stateName(next.Generation), next, false); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return errLost
		}
		return err
	}
	if err := d.newest(ctx, next.Generation); err != nil {
		return err
	}
	return d.settle(ctx, l, next, parts)
}

// united is what all workers of a run have done.
type united struct {
	first   *Part
	entries []Entry
	files   []File
	counts  Counts
	matched [2]int64
}

// united adds up the parts of a run. Each row group of each input must have been read by
// exactly one worker.
func (d *Dir) united(parts []*Part) (*united, error) {
	slices.SortFunc(parts, func(a, b *Part) int { return cmp.Compare(a.Shard, b.Shard) })
	u := &united{first: parts[0]}
	at := map[string]int{}
	names := map[string]*Part{}
	for i, p := range parts {
		if i > 0 && p.Shard == parts[i-1].Shard {
			return nil, fault.Corrupt(fault.At{File: d.manifest(p.name)}, "shard %d, which is also in %s", p.Shard, parts[i-1].name).WithHint("leave one of the two out")
		}
		if err := d.agree(parts[0], p); err != nil {
			return nil, err
		}
		for _, f := range p.Files {
			if names[f.Name] != nil {
				return nil, fault.Corrupt(fault.At{File: d.manifest(p.name)}, "%s, which shard %d has written, too", f.Name, names[f.Name].Shard).WithHint("run both again with {Force}")
			}
			names[f.Name] = p
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

// agree returns an error unless two parts are of the same run.
func (d *Dir) agree(a, b *Part) error {
	if a.Run != b.Run || a.Of != b.Of || !a.Recipe.same(&b.Recipe) || a.Task.Digest != b.Task.Digest || a.Task.Inputs != b.Task.Inputs || a.Require != b.Require {
		return fault.Mismatch(fault.At{File: d.manifest(b.name)}, "the run", "the inputs and options of "+a.name, "others").
			WithHint("run all workers with the same inputs and options, and commit what they wrote to the same directory")
	}
	return nil
}

// joined adds what another worker has read of an input.
func (d *Dir) joined(e *Entry, f Entry) error {
	if e.Size != f.Size || e.Print != f.Print || e.Groups != f.Groups {
		return fault.Mismatch(fault.At{File: f.Input}, "the input", "the same content for all workers", "different contents").
			WithHint("run all workers again with {Force}, while the input does not change")
	}
	if f.Lo != e.Hi {
		return fault.Mismatch(fault.At{File: f.Input}, "row groups", fmt.Sprintf("a worker that goes on with row group %d", e.Hi), fmt.Sprintf("%d to %d", f.Lo, f.Hi)).
			WithHint("run all workers again with {Force}")
	}
	e.Hi, e.Done, e.Cuts = f.Hi, max(e.Done, f.Done), append(e.Cuts, f.Lo)
	e.Counts.add(f.Counts)
	e.Files = append(e.Files, f.Files...)
	return nil
}

// covered returns an error unless all row groups of all inputs have been read, and all
// rows written.
func (d *Dir) covered(u *united) error {
	inputs, rows := 0, int64(0)
	for i := range u.entries {
		e := &u.entries[i]
		slices.Sort(e.Files)
		e.Files = slices.Compact(e.Files)
		if e.Input != "" {
			inputs++
		}
		if e.Lo != 0 || e.Hi != e.Groups {
			return fault.Mismatch(fault.At{File: e.Input}, "row groups", fmt.Sprintf("all %d", e.Groups), fmt.Sprintf("%d to %d", e.Lo, e.Hi)).
				WithHint("run all workers again with {Force}")
		}
	}
	if inputs != u.first.Task.Inputs {
		return fault.Mismatch(fault.At{File: d.Name}, "inputs", fmt.Sprint(u.first.Task.Inputs), fmt.Sprint(inputs)).WithHint("run all workers again with {Force}")
	}
	for _, f := range u.files {
		rows += f.Rows
	}
	if rows != u.counts.RowsOut {
		return fault.Mismatch(fault.At{File: d.Name}, "rows of the files", fmt.Sprintf("%d, as the inputs gave", u.counts.RowsOut), fmt.Sprint(rows)).WithHint("run all workers again with {Force}")
	}
	return nil
}

// present returns an error unless files are there and whole, as far as can be seen
// without reading them.
func (d *Dir) present(ctx context.Context, l *listing, files []File, verify bool) error {
	for i := range files {
		f := &files[i]
		at := fault.At{File: d.path(f.Name)}
		const again = "run the worker that wrote it again"
		obj, ok := l.objects[f.Name]
		switch {
		case !ok:
			return fmt.Errorf("%w%w", fault.Mismatch(at, "the file", "what a worker has written", "nothing").WithHint(again), quiet.Error{Err: errMissing})
		case obj.Type != 0:
			return fault.Mismatch(at, "the file", "a regular file", obj.Type.String()).WithHint(again)
		case obj.Size != f.Bytes:
			return fault.Mismatch(at, "bytes", fmt.Sprint(f.Bytes), fmt.Sprint(obj.Size)).WithHint(again)
		}
		f.Modified, f.Identity = millis(obj.ModTime), obj.Identity
		if !verify {
			continue
		}
		rows, err := d.Rows(ctx, at.File)
		if err != nil {
			return err
		}
		if rows != f.Rows {
			return fault.Mismatch(at, "rows", fmt.Sprint(f.Rows), fmt.Sprint(rows)).WithHint(again)
		}
	}
	return nil
}

// required checks the requirements over all inputs of the run.
func (u *united) required(s *State) error {
	c := u.first.Task.Kept
	c.add(u.counts)
	matched, total := u.matched, u.first.Recipe.IDsTotal
	if u.first.Task.Kept != (Counts{}) {
		matched, total = s.matchedWith(&u.first.Recipe, matched)
	}
	return u.first.Require.Check(c, matched, total)
}

// matchedWith returns bounds on the number of IDs that have a row in the outputs of the
// state or in others, of which matched are the bounds, and the number of all IDs.
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

// next returns the state after the run.
func (d *Dir) next(l *listing, s *State, u *united, run *Run) (*State, error) {
	gone := map[string]bool{}
	for _, e := range u.entries {
		gone[e.Input] = true
	}
	for _, input := range u.first.Task.Remove {
		gone[input] = true
	}
	for _, f := range s.Files {
		some := func(is bool) bool {
			return slices.ContainsFunc(f.Inputs, func(input string) bool { return gone[input] == is })
		}
		if some(true) && some(false) {
			return nil, fmt.Errorf("%s: %w: %s has rows of other inputs, too (run all workers again)", d.Name, ErrExists, f.Name)
		}
	}
	for i := range s.Inputs {
		e := &s.Inputs[i]
		if !gone[e.Input] || u.first.Task.Force {
			continue
		}
		was := s.recipe(e)
		if !was.sameOptions(&u.first.Recipe) || run != nil && !run.goes[e.Input] && !was.same(&u.first.Recipe) { // made since the run began
			return nil, d.foreign(cmp.Or(append(slices.Clone(e.Files), e.Input)...))
		}
	}
	next := s.without(gone)
	next.settle() // recipes of which nothing is left are forgotten
	for _, f := range u.files {
		if slices.ContainsFunc(next.Files, func(g File) bool { return g.Name == f.Name }) {
			return nil, fmt.Errorf("%s: %w: %s is the output of other inputs, too (write to another directory)", d.Name, ErrExists, f.Name)
		}
	}
	recipe := u.first.Recipe
	recipe.IDsMatched = u.matched
	next.add(recipe, u.entries, u.files)
	next.settle()
	for _, name := range slices.Concat(s.Remove, l.old) {
		if _, ok := l.objects[name]; ok && next.file(name) == nil {
			next.Remove = append(next.Remove, name)
		}
	}
	for _, f := range s.Files {
		if next.file(f.Name) == nil {
			next.Remove = append(next.Remove, f.Name)
		}
	}
	slices.Sort(next.Remove)
	next.Remove = slices.Compact(next.Remove)
	return next, nil
}

// newest returns errLost, and removes the generation again, if there is a later one: it
// was made from an old state.
func (d *Dir) newest(ctx context.Context, generation int64) error {
	tree, err := d.Store.Tree(ctx, d.Manifests)
	if err != nil {
		return err
	}
	for _, obj := range tree {
		if generationOf(obj.Rel) > generation {
			return cmp.Or(d.removeManifest(ctx, stateName(generation)), errLost)
		}
	}
	return nil
}

// settle removes what a new state has no place for, and the parts of the run. If it is
// cut short, the parts are still there, and the run is committed once more.
func (d *Dir) settle(ctx context.Context, l *listing, next *State, parts []*Part) error {
	if err := d.clear(ctx, l, next); err != nil {
		return err
	}
	if err := d.supersede(ctx, next, parts); err != nil {
		return err
	}
	if err := d.copyState(ctx, next); err != nil {
		return err
	}
	for _, name := range l.stale {
		if err := d.removeManifest(ctx, name); err != nil {
			return err
		}
	}
	if next.Generation > 1 {
		if err := d.removeManifest(ctx, stateName(next.Generation-1)); err != nil {
			return err
		}
	}
	run, of := parts[0].Run, parts[0].Of
	if of > 1 {
		if err := d.removeManifest(ctx, planName(run, of)); err != nil {
			return err
		}
	}
	for _, p := range parts {
		unfinished := strings.TrimSuffix(path.Base(p.name), ".json") + begun + ".json" // of a second attempt
		for _, name := range []string{unfinished, path.Base(p.name)} {
			if err := d.removeManifest(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// reads reports whether a part has read, or is about to write, some of the inputs.
func (p *Part) reads(inputs map[string]bool) bool {
	return slices.ContainsFunc(p.Inputs, func(e Entry) bool { return inputs[e.Input] }) ||
		slices.ContainsFunc(p.Files, func(f File) bool {
			return slices.ContainsFunc(f.Inputs, func(input string) bool { return inputs[input] })
		})
}

// supersede takes the inputs of a run that is being committed from the parts of other runs.
// They were killed, or began with another list of inputs, or will notice.
func (d *Dir) supersede(ctx context.Context, next *State, parts []*Part) error {
	l, err := d.look(ctx)
	if err != nil {
		return err
	}
	l.known = next
	reads := map[string]bool{}
	for _, p := range parts {
		for _, e := range p.Inputs {
			reads[e.Input] = true
		}
	}
	own := func(p *partName) bool { return strings.HasPrefix(parts[0].Run, p.run) && p.of == parts[0].Of }
	touched := map[string]bool{} // runs with a part that has read some of these inputs
	for _, p := range l.parts {
		if own(p) {
			continue
		}
		part, err := l.load(ctx, p)
		if err != nil {
			return err
		}
		if part != nil && part.reads(reads) {
			touched[p.key()] = true
		}
	}
	idle := func(p *partName, f *File) bool { // its rows were none, and it has read inputs of the run, or nothing
		return f == nil && !slices.ContainsFunc(p.part.Inputs, func(e Entry) bool { return !reads[e.Input] }) && (len(p.part.Inputs) > 0 || touched[p.key()])
	}
	return l.takeOver(ctx, own, idle, nil, reads)
}

// copyState writes the copy of the state for other programs. If another run commits
// meanwhile, the copy is of its state.
func (d *Dir) copyState(ctx context.Context, s *State) error {
	for range patience {
		if err := d.writeState(ctx, copyName, s, true); err != nil {
			return err
		}
		l := &listing{dir: d}
		if err := l.manifests(ctx); err != nil {
			return err
		}
		if l.newest == s.Generation {
			return nil
		}
		var err error
		if s, err = l.state(ctx); err != nil {
			return err
		}
	}
	return errLost
}

// clear removes the files that a state has no place for, as they were listed: what
// another run has written there since stays.
func (d *Dir) clear(ctx context.Context, l *listing, s *State) error {
	for _, name := range s.Remove {
		o, ok := l.objects[name]
		if !ok || s.file(name) != nil || o.Type != 0 {
			continue
		}
		if err := d.removeObject(ctx, storage.Object{Name: d.path(name), Identity: o.Identity}); err != nil {
			return err
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if err := storage.RemoveDir(ctx, d.Store, d.path(dir)); err != nil {
				return err
			}
		}
	}
	return nil
}

// mark writes _SUCCESS for the directory and for each partition in which everything is
// there and no run is under way, and removes it from others. settled is false if it has
// changed something: then another look shows whether that still holds.
func (d *Dir) mark(ctx context.Context, l *listing) (lack string, settled bool, err error) {
	settled = true
	s, err := l.state(ctx)
	if err == nil {
		err = d.clear(ctx, l, s)
	}
	if err != nil {
		return "", false, err
	}
	busy := map[string]bool{} // partitions that are not complete
	for _, p := range l.parts {
		if left, err := l.leftOver(ctx, p); err != nil {
			return "", false, err
		} else if left {
			if err := d.removeManifest(ctx, p.name); err != nil {
				return "", false, err
			}
			continue
		}
		lack = cmp.Or(lack, "the run of "+d.manifest(p.name)+" has not finished")
		part, err := l.load(ctx, p)
		if err != nil {
			return "", false, err
		}
		if part == nil {
			return "", false, nil // it has been committed meanwhile
		}
		for _, f := range part.Files {
			busy[partitionOf(f.Name)] = true
		}
		for _, input := range part.Task.Remove {
			busy[partitionOf(input)] = true
		}
	}
	if wrong, err := d.incomplete(ctx, l, s, busy); err != nil {
		return "", false, err
	} else if wrong != "" {
		lack = wrong
	}
	markers := s.markers(busy, lack == "" && l.newest > 0)
	for _, name := range inOrder(markers) {
		_, is := l.objects[name]
		want := markers[name]
		switch {
		case is && !want:
			err = d.remove(ctx, name)
		case want && !is:
			err = d.touch(ctx, name)
		default:
			continue
		}
		if err != nil {
			return "", false, err
		}
		settled = false
	}
	return lack, settled, nil
}

// incomplete returns what is wrong with the first file that is not as the state says, or
// that is an output without being in the state. Their partitions are added to busy.
func (d *Dir) incomplete(ctx context.Context, l *listing, s *State, busy map[string]bool) (wrong string, err error) {
	for i := range s.Files {
		f := &s.Files[i]
		trouble, err := d.trouble(ctx, l, f)
		if err != nil {
			return "", err
		}
		if trouble != "" {
			busy[partitionOf(f.Name)] = true
			wrong = cmp.Or(wrong, f.Name+" is "+trouble)
		}
	}
	planned, err := l.planned(ctx, func(*Part) bool { return true })
	if err != nil {
		return "", err
	}
	for _, name := range l.data() {
		if planned[name] || l.objects[name].Type != 0 || s.file(name) != nil || slices.Contains(s.Remove, name) {
			continue
		}
		marker, _, err := d.Marker(ctx, d.path(name))
		if err != nil {
			return "", err
		}
		if marker != "" {
			busy[partitionOf(name)] = true
			wrong = cmp.Or(wrong, name+" is an output that no manifest lists")
		}
	}
	return wrong, nil
}

// markers returns the names of all _SUCCESS files that there should be, or not.
func (s *State) markers(busy map[string]bool, all bool) map[string]bool {
	want := map[string]bool{Success: all}
	for p := range busy {
		want[path.Join(p, Success)] = p == "" && all
	}
	for _, e := range s.Inputs {
		if p := partitionOf(e.Input); p != "" && !busy[p] {
			want[path.Join(p, Success)] = true
		}
	}
	return want
}

// inOrder returns the names of markers in the order in which they are changed: that of the
// whole directory is the first to go and the last to come.
func inOrder(markers map[string]bool) (names []string) {
	for name := range markers {
		if name != Success {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if markers[Success] {
		return append(names, Success)
	}
	return append([]string{Success}, names...)
}

// touch writes an empty file.
func (d *Dir) touch(ctx context.Context, name string) (err error) {
	file, err := d.Store.Create(ctx, d.path(name), storage.CreateOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Abort()) }()
	if err := file.Commit(false); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Committed is what a commit has come to.
type Committed struct {
	Runs    int // runs that were committed
	Workers int // of these
	State   *State
}

// Complete commits the runs whose workers are all done, as the last worker does by itself
// unless NoCommit is set. names are full names of manifests of workers that stand
// elsewhere; empty: those in the directory of manifests. It also compares the rows of each
// file with what the file itself says. The error wraps ErrDone if there is nothing to
// commit and the directory is complete.
func (d *Dir) Complete(ctx context.Context, names []string) (c Committed, err error) {
	var lack string
	for range patience {
		l, err := d.look(ctx)
		if err != nil {
			return c, err
		}
		if c.Runs == 0 || len(names) == 0 {
			n, workers, err := d.commitRuns(ctx, l, names)
			c.Runs, c.Workers = c.Runs+n, c.Workers+workers
			if n > 0 || errors.Is(err, errLost) {
				continue
			}
			if err != nil {
				return c, err
			}
		}
		if c.State, err = l.state(ctx); err != nil {
			return c, err
		}
		var settled bool
		if lack, settled, err = d.mark(ctx, l); err != nil {
			return c, err
		}
		if !settled {
			continue
		}
		switch {
		case lack != "":
			return c, fmt.Errorf("%s: there is no %s: %s", d.Name, Success, lack)
		case c.Runs == 0 && l.newest == 0:
			return c, fault.Errorf("%s: no worker has written a manifest to %s (name the manifests, if they stand elsewhere)", d.Name, d.Manifests)
		case c.Runs == 0:
			return c, ErrDone
		}
		return c, nil
	}
	return c, errLost
}

// commitRuns commits the runs whose workers are all done. If there are others only, it
// returns which workers are missing.
func (d *Dir) commitRuns(ctx context.Context, l *listing, names []string) (runs, workers int, err error) {
	if len(names) > 0 {
		if err := l.named(ctx, names); err != nil {
			return 0, 0, err
		}
	}
	seen := map[string]bool{}
	lack := ""
	for _, p := range l.parts {
		key := p.key()
		if seen[key] {
			continue
		}
		seen[key] = true
		group := l.of(p.run, p.of)
		if left, err := l.leftOver(ctx, group[0]); err != nil {
			return runs, workers, err
		} else if left && len(names) == 0 {
			continue
		}
		if why := missing(group); why != "" {
			lack = cmp.Or(lack, why)
			continue
		}
		if err := d.commitAll(ctx, l, group, nil); err != nil {
			return runs, workers, err
		}
		return 1, len(group), nil // the state is another one now
	}
	if lack != "" {
		return 0, 0, fmt.Errorf("%s: not committed: %s (run these first, or name their manifests, if they stand elsewhere)", d.Name, lack)
	}
	return 0, 0, nil
}

// named reads parts that stand elsewhere, in place of those beside the directory.
func (l *listing) named(ctx context.Context, names []string) error {
	l.parts = nil
	for _, name := range names {
		p := parsePartName(path.Base(name))
		if p == nil {
			return fault.Errorf("%s: not the name of a worker's manifest (want one as shard-RUN-00003-of-00016.json)", name)
		}
		var err error
		if p.part, err = l.dir.readPart(ctx, name); err != nil {
			return err
		}
		l.parts = append(l.parts, p)
	}
	return nil
}
