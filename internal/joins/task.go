package joins

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/answer"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// task is a prepared join: what to join, and what the answer is. Nothing has been
// read but footers. It is immutable and safe for concurrent use.
type task struct {
	opts     Options
	ids      []*source.File
	logs     []*source.File
	pieces   []source.Piece // of the log
	idPieces []source.Piece
	keys     *answer.Pairing
	answer   *answer.Answer
	idPlan   *builds.Plan // of a filter of the IDs
	apart    error        // of any output but a directory, whose paths have columns of the log
}

// newTask prepares a join. With counts, rows of the answer are counted, not made.
func newTask(ids, logs []*source.File, opts Options, counts bool) (*task, error) {
	if len(ids) == 0 || len(logs) == 0 {
		return nil, fmt.Errorf("a join needs files of IDs and of a log, got %d and %d%w", len(ids), len(logs), quiet.Error{Err: storage.ErrNoFiles})
	}
	ids = slices.Clone(ids) // views of text files take their places
	if _, release, err := source.KeepOpen(context.Background(), slices.Concat(ids, logs)...); err != nil {
		return nil, err // one is nil or closed
	} else if err := release(); err != nil {
		return nil, err
	}
	t := &task{ids: ids, logs: logs}
	var err error
	if t.opts, err = opts.filled(); err != nil {
		return nil, err
	}
	of := t.opts.ofAnswer()
	if t.keys, err = answer.NewPairing(of, ids, logs); err != nil {
		return nil, err
	}
	if t.idPlan, err = t.newIDPlan(0); err != nil {
		return nil, err
	}
	copy(ids, t.idPlan.Files())
	t.answer, err = answer.New(of, t.keys, ids, logs, counts, nil)
	if names := source.Mirrored(logs); err != nil && of.Pinned != nil && len(names) > 0 { // which the given schema may lack
		t.apart = err
		t.answer, err = answer.New(of, t.keys, ids, logs, counts, names)
	}
	if err != nil {
		return nil, err
	}
	t.pieces = t.opts.Pieces
	if t.pieces == nil {
		t.pieces = source.Split(logs, t.opts.Shard)
	} else if err := checkPieces(t.pieces, logs, t.opts.Type); err != nil {
		return nil, err
	}
	t.idPieces = source.Split(ids, dataset.Shard{})
	return t, nil
}

// checkPieces returns an error unless pieces are of the log, in its order, and none is there
// twice. If IDs without a log row are in the answer, they must be the whole log.
func checkPieces(pieces []source.Piece, logs []*source.File, typ Type) error {
	if err := source.CheckPieces(pieces); err != nil {
		return fmt.Errorf("Options.Pieces: %w", err)
	}
	file, group := 0, 0        // where the last piece has ended
	groups := map[string]int{} // by name: of a list, a file may be open twice, once for its schema
	position := make(map[*source.File]int, len(logs))
	for i, f := range logs {
		position[f] = i
	}
	for i, p := range pieces {
		at, ok := position[p.File]
		switch {
		case !ok:
			return fmt.Errorf("Options.Pieces: piece %d of %d is of %s, which is not a file of the log (open the files once, and take the pieces from these)", i+1, len(pieces), p.File.Name())
		case at < file, at == file && p.Lo < group:
			return fmt.Errorf("Options.Pieces: piece %d of %d, row groups %d to %d of %s, is not behind the one before it: want ascending pieces that do not overlap", i+1, len(pieces), p.Lo, p.Hi, p.File.Name())
		}
		file, group = at, p.Hi
		groups[p.File.Name()] += p.Hi - p.Lo
	}
	for _, f := range logs {
		if typ.keepsIDs() && groups[f.Name()] != f.NumGroups() {
			return faults.Unsupported(fault.At{}, "a %s join of pieces of the log, since an ID without a row here may have one elsewhere", typ).
				WithHint("join the whole log, or use inner or left")
		}
	}
	return source.Unchanged(pieces)
}

// counting returns the task that counts the rows of the answer. It reads keys only.
func (t *task) counting() *task {
	c := *t
	c.answer = t.answer.Counting()
	return &c
}

// newIDPlan plans the filter of the IDs. capacity bounds their number; 0: the files
// determine it.
func (t *task) newIDPlan(capacity uint64) (*builds.Plan, error) {
	opts := t.filterOptions(t.keys.IDsText)
	opts.FPR, opts.Expect = t.opts.FPR, capacity
	return builds.NewPlan(t.ids, opts)
}

// filterOptions returns the options of a filter over key columns that is built
// within its part of the memory.
func (t *task) filterOptions(columns string) builds.Options {
	opts := keyOptions(t.keys, columns)
	opts.Normalize = t.opts.Normalize
	opts.Threads, opts.Memory, opts.TempDir, opts.Mem = t.opts.Threads, t.filterBudget(), t.opts.TempDir, t.opts.Mem
	return opts
}

// keyOptions returns the options of a filter over key columns, p.LogText or p.IDsText.
func keyOptions(p *answer.Pairing, columns string) builds.Options {
	return builds.Options{Key: columns, Classes: keys.NamesOf(p.Classes), IgnoreCase: p.IgnoreCase, NullMisfits: p.NullMisfits}
}

// threads returns the number of workers.
func (t *task) threads() int {
	if t.opts.Threads > 0 {
		return t.opts.Threads
	}
	return runtime.GOMAXPROCS(0)
}

// once returns the side that can be read only once; "" if both can be reread.
func (t *task) once() string {
	switch {
	case slices.ContainsFunc(t.ids, (*source.File).Once):
		return "the IDs"
	case slices.ContainsFunc(t.logs, (*source.File).Once):
		return "the log"
	}
	return ""
}

// rereadable returns an error if one of the files can be read only once, for a
// strategy that reads them more often.
func (t *task) rereadable(files ...*source.File) error {
	for _, f := range files {
		switch {
		case !f.Once():
		case t.opts.Strategy != Auto:
			return faults.Errorf("%s: it can be read only once, but strategy %s reads it more than once (leave {Strategy} out, or name a file)", f.Name(), t.opts.Strategy)
		default:
			return faults.Errorf("%s: it can be read only once, but this join reads it more than once (name a file, or raise {Memory})", f.Name())
		}
	}
	return nil
}

// bothRereadable is rereadable for all files of both sides.
func (t *task) bothRereadable() error {
	return t.rereadable(slices.Concat(t.ids, t.logs)...)
}

// checkFilter compares the rule of the given filter with the join's.
func (t *task) checkFilter() error {
	rule, err := keys.RuleOf(t.opts.Filter.Normal())
	if err != nil {
		return err
	}
	if rule != t.keys.Rule {
		return faults.Of(cause.Normalized, faults.About(faults.Mismatch(fault.At{File: "the filter"}, "", t.keys.Rule.Word()+", as in the join", rule.Word()), "{Normalize}")).
			WithHint("build the filter with the join's {Normalize}, or give the join the filter's, or leave {Filter} out")
	}
	return nil
}

// parts returns the parts of the answer, in order: one for each piece of the log,
// and in right and full joins one for the IDs without a log row.
func (t *task) parts() []output.Part {
	var parts []output.Part
	for _, p := range t.pieces {
		parts = append(parts, output.Part{Piece: p, Schema: t.answer.Layouts[p.File].Schema})
	}
	switch first := t.answer.Layouts[t.logs[0]].Schema; {
	case t.opts.Type.keepsIDs():
		parts = append(parts, output.Part{Name: "ids-without-rows", Schema: first})
	case len(parts) == 0: // a shard without input
		parts = append(parts, output.Part{Schema: first})
	}
	return parts
}

// mirrored returns the task with an answer for a directory, without the columns whose
// values the paths of its files name.
func (t *task) mirrored() (_ *task, err error) {
	names := source.Mirrored(t.logs)
	if len(names) == 0 || t.answer.RowsOfLog() { // scans leave them out
		return t, nil
	}
	for _, s := range t.answer.IDs.Shared {
		same := func(name string) bool { return name == s.Name || t.keys.IgnoreCase && strings.EqualFold(name, s.Name) }
		if t.opts.Type.keepsIDs() && slices.ContainsFunc(names, same) {
			return nil, faults.Unsupported(fault.At{Column: s.Name}, "a %s join on the name of directories into a directory: IDs without a log row have no place there", t.opts.Type).
				WithHint("write to a file, or set {Hive off}")
		}
	}
	c := *t
	c.answer, err = answer.New(c.opts.ofAnswer(), c.keys, c.ids, c.logs, false, names)
	return &c, err
}
