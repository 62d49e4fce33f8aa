package publish

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// agree creates the plan of the run, unless there is one. The error is errLost if another worker
// was faster.
func (r *Run) agree(ctx context.Context, l *listing) error {
	name := planName(r.id, r.of())
	if slices.Contains(l.plans, name) {
		return nil // earlier has read it
	}
	p, err := r.plan()
	if err != nil {
		return err
	}
	if err := r.dir.writeJSON(ctx, name, p, false); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return errLost
}

// plan returns what the other workers read.
func (r *Run) plan() (p plan, err error) {
	p = plan{Version: version, Task: r.task.named(EscapeName)}
	if !r.task.All {
		return p, nil
	}
	p.List = r.in.list()
	names := make([]string, 0, r.in.Len)
	for name, err := range r.in.names() {
		if err != nil {
			return p, err
		}
		if names = append(names, name); p.List != "" {
			break // by one, runs of other lists see whether it is outdated
		}
	}
	p.Names, err = packNames(names)
	return p, err
}

// names returns the Rel of each input.
func (in *Inputs) names() func(yield func(string, error) bool) {
	if in.Names != nil {
		return in.Names
	}
	return func(yield func(string, error) bool) {
		for one, err := range in.Each {
			if !yield(one.Input, err) {
				return
			}
		}
	}
}

// list identifies a list of inputs; empty: there is none.
func (in *Inputs) list() string {
	if in.Names == nil {
		return ""
	}
	return hex.EncodeToString(in.Digest[:])
}

// readPlan reads what the first worker has decided, if there is one.
func (r *Run) readPlan(ctx context.Context) (t Task, found bool, err error) {
	p := plan{}
	name := r.dir.manifest(planName(r.id, r.dir.Of))
	_, err = r.dir.readJSON(ctx, name, &p, func() int { return p.Version })
	if errors.Is(err, fs.ErrNotExist) {
		return t, false, nil
	}
	return p.Task.named(UnescapeName), err == nil, err
}

// planned returns the part of a worker that does a whole task of this run, with nothing but what
// tells whether it can be committed beside a state: inputs matter only where that is newer.
func (r *Run) planned(s *State, t Task) (*Part, error) {
	p := r.part()
	p.Task = t.brief()
	for _, input := range t.Only {
		p.Inputs = append(p.Inputs, Entry{Input: input})
	}
	if !t.All || !s.newer(t.Generation) {
		return p, nil
	}
	return p, p.add(r.in.names())
}

// add adds inputs by name.
func (p *Part) add(names iter.Seq2[string, error]) error {
	for input, err := range names {
		if err != nil {
			return err
		}
		p.Inputs = append(p.Inputs, Entry{Input: input})
	}
	return nil
}

// runs returns what each run does that has begun and is not committed, by the key of its parts: of
// several workers what the plan says, else the part. Where the plan refers to a list, the inputs are
// those of the part, unless that is the list of this run. With a key it leaves that run out, and reads one
// part of each other one: this program can read them all, or none.
func (l *listing) runs(ctx context.Context, but string) (map[string]*Part, error) {
	all := map[string]*Part{}
	if but == "" {
		if err := l.preload(ctx, l.parts); err != nil {
			return nil, err
		}
	}
	for _, p := range l.parts {
		if but != "" && (p.key() == but || all[p.key()] != nil) {
			continue
		}
		part, err := l.load(ctx, p)
		if err != nil {
			return nil, err
		}
		if part != nil {
			all[p.key()] = part
		}
	}
	for _, name := range l.plans {
		key := strings.TrimSuffix(strings.TrimPrefix(name, "plan-"), ".json")
		if key == but {
			continue
		}
		p := plan{}
		at := l.dir.manifest(name)
		_, err := l.dir.readJSON(ctx, at, &p, func() int { return p.Version })
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		names, err := unpackNames(p.Names)
		if err != nil {
			return nil, faults.Corrupt(fault.At{File: at}, "the names of its inputs: %v", err).WithHint(hint)
		}
		part := &Part{Task: p.Task.named(UnescapeName), list: p.List}
		if one := all[key]; one != nil {
			part.Run, part.Of, part.Recipe = one.Run, one.Of, one.Recipe
			if p.List != "" {
				part.Inputs = one.Inputs
			}
		}
		for _, input := range slices.Concat(names, part.Task.Only) {
			part.Inputs = append(part.Inputs, Entry{Input: input})
		}
		all[key] = part
	}
	return all, nil
}

// dropPlans removes the plans that no worker can commit any more.
func (l *listing) dropPlans(ctx context.Context, s *State) error {
	if len(l.plans) == 0 {
		return nil
	}
	runs, err := l.runs(ctx, "")
	if err != nil {
		return err
	}
	var kept []string
	for _, name := range l.plans {
		run := runs[strings.TrimSuffix(strings.TrimPrefix(name, "plan-"), ".json")]
		if run != nil && run.list != "" && run.list == l.dir.in.list() && s.newer(run.Task.Generation) {
			if err := run.add(l.dir.in.Names); err != nil {
				return err
			}
		}
		if run != nil && !l.dir.dead(s, run) {
			kept = append(kept, name)
		} else if err := l.dir.removeManifest(ctx, name); err != nil {
			return err
		}
	}
	l.plans = kept
	return nil
}

// packNames returns the names of inputs as plans have them.
func packNames(names []string) ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(w, strings.Join(names, "\x00"))
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// unpackNames is the inverse of packNames.
func unpackNames(b []byte) ([]string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	all, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b)), maxManifest+1))
	if err != nil {
		return nil, err
	}
	if len(all) > maxManifest {
		return nil, errors.New("too long")
	}
	if len(all) == 0 {
		return nil, nil
	}
	return strings.Split(string(all), "\x00"), nil
}
