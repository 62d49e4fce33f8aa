package publish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// runner is a run over a log that is a map from Rel to content. The output of an input is
// a copy of it, after the mark of the run, and each byte is a row.
type runner struct {
	Dir
	log    map[string]string
	left   []string            // listed, no inputs
	shares map[string][]string // inputs by the file that they share, or "+" and anything; others have one of their own
	places map[string]string   // of inputs; others are at a place of their name
	roots  []string            // directories that were listed; nil: the base
	ending string              // of the names of outputs; empty: .out
	listed bool                // the inputs are those of a list
	now    map[string]string   // the inputs as they are; nil: as log
}

// placeOf returns where an input is.
func (r *runner) placeOf(input string) string {
	if at, ok := r.places[input]; ok {
		return at
	}
	return input
}

func newRunner(s storage.Storage, log map[string]string) *runner {
	r := &runner{log: log}
	r.Dir = Dir{Name: "b/out", Manifests: "b/out.bloomjoin", Recipe: Recipe{Options: "o1", IDs: "i1"}, AtOnce: 1}
	r.InDir = true
	r.use(s)
	return r
}

// use sets the storage.
func (r *runner) use(s storage.Storage) {
	r.Store = s
	r.Marker = func(ctx context.Context, name string) (string, bool, error) {
		b, err := read(ctx, s, name)
		mark, _, ok := strings.Cut(b, "|")
		if !ok {
			mark = ""
		}
		return mark, ok && err == nil, nil
	}
	r.Rows = func(ctx context.Context, name string) (int64, error) {
		b, err := read(ctx, s, name)
		_, rows, _ := strings.Cut(b, "|")
		return int64(len(rows)), err
	}
}

func read(ctx context.Context, s storage.Source, name string) (string, error) {
	src, err := s.Open(ctx, storage.Object{Name: name})
	if err != nil {
		return "", err
	}
	defer src.Close()
	b := make([]byte, src.Object().Size)
	_, err = src.ReadAt(b, 0)
	if len(b) == 0 {
		err = nil
	}
	return string(b), err
}

// inputs returns the log as a run sees it, listed below its root.
func (r *runner) inputs() Inputs {
	names := slices.Sorted(maps.Keys(r.log))
	in := Inputs{Len: len(names), Left: map[string]bool{}}
	for _, name := range r.left {
		in.Left[name] = true
	}
	all := sha256.New()
	for _, name := range names {
		fmt.Fprintf(all, "%q %q ", name, r.log[name])
	}
	all.Sum(in.Digest[:0])
	if r.listed {
		in.Roots, in.Names = fmt.Sprint(r.roots), func(yield func(string, error) bool) {
			for _, name := range names {
				if !yield(name, nil) {
					return
				}
			}
		}
	}
	in.Each = func(yield func(Input, error) bool) {
		for _, name := range names {
			c := r.log[name]
			one := Input{Entry: Entry{Input: name, Size: int64(len(c)), Print: fmt.Sprintf("%x", sha256.Sum256([]byte(c))), Groups: 1}, Found: true}
			for _, root := range r.roots {
				if below(name, root) {
					one.Root = root
				}
			}
			one.Resolve = func(storage.Source) string { return r.placeOf(name) }
			if !yield(one, nil) {
				return
			}
		}
	}
	return in
}

// fileOf returns the name of the output of an input.
func (r *runner) fileOf(input string) string {
	for name, inputs := range r.shares {
		if slices.Contains(inputs, input) {
			return name
		}
	}
	return input + cmp.Or(r.ending, ".out")
}

// do runs. did are the inputs that were read by this worker.
func (r *runner) do(ctx context.Context) (did []string, run *Run, notes []string, err error) {
	r.Owner.Run = sha256.Sum256([]byte(r.Recipe.Options + r.Recipe.IDs))
	run, err = r.Begin(ctx, r.inputs())
	if err != nil {
		return nil, nil, nil, err
	}
	var targets []Target
	byFile, first := map[string][]string{}, map[string]string{}
	for i, input := range slices.Sorted(maps.Keys(r.log)) {
		if !run.Does(input) || uint32(i)%run.of() != r.Shard {
			continue
		}
		did = append(did, input)
		name := r.fileOf(input)
		if strings.HasPrefix(name, "+") { // the file has the name of the first that is read
			if first[name] == "" {
				first[name] = input + ".out"
			}
			name = first[name]
		}
		if byFile[name] == nil {
			targets = append(targets, Target{Name: name, Input: input})
		}
		byFile[name] = append(byFile[name], input)
	}
	if err := run.Check(ctx, targets); err != nil {
		return did, run, nil, err
	}
	w := run.NewWriter(targets)
	defer func() { err = errors.Join(err, w.End(ctx, err)) }()
	var entries []Entry
	for _, t := range targets {
		content := r.Mark() + "|"
		for _, input := range byFile[t.Name] {
			c := r.log[input]
			if r.now != nil && r.now[input] != c {
				return did, run, nil, fmt.Errorf("%s: %w (run again)", input, storage.ErrChanged)
			}
			content += c
			n := int64(len(c))
			entries = append(entries, Entry{Input: input, Place: r.placeOf(input), Size: n, Print: fmt.Sprintf("%x", sha256.Sum256([]byte(c))), Groups: 1, Hi: 1,
				Counts: Counts{RowsIn: n, RowsKept: n, RowsOut: n}, Files: []string{t.Name}})
		}
		h := xxh3.New()
		h.Write([]byte(content))
		file, err := w.Create(ctx, t.Name)
		if err != nil {
			return did, run, nil, err
		}
		if _, err := file.Write([]byte(content)); err != nil {
			return did, run, nil, errors.Join(err, file.Abort())
		}
		rows := int64(len(content) - strings.Index(content, "|") - 1)
		if err := w.Add(ctx, file, File{Name: t.Name, Inputs: byFile[t.Name], Rows: rows, Bytes: int64(len(content)), Sum: Sum(h)}); err != nil {
			return did, run, nil, err
		}
	}
	if r.Recipe.Whole {
		entries = append(entries, Entry{}) // no rows that come from no input
	}
	notes, _, err = w.Finish(ctx, entries, 0, 0)
	return did, run, notes, err
}

// data returns what a reader finds: the rows of each file, and the markers.
func data(s *teststore.Memory) string {
	var all []string
	for _, name := range s.Names() {
		if rel, ok := strings.CutPrefix(name, "b/out/"); ok {
			b, _ := s.Get(name)
			if _, rows, is := strings.Cut(string(b), "|"); is {
				rel += ":" + rows
			}
			all = append(all, rel)
		}
	}
	return strings.Join(all, " ")
}

// manifests returns the names of the manifests, without the number of the generation, and whether
// manifest.json is another state than the last one, once that is published.
func manifests(s *teststore.Memory) string {
	var all []string
	last, copied, p := State{}, State{}, published{}
	get := func(name string, v any) bool {
		b, ok := s.Get("b/out.bloomjoin/" + name)
		return ok && json.Unmarshal(b, v) == nil
	}
	for _, name := range s.Names() {
		if rel, ok := strings.CutPrefix(name, "b/out.bloomjoin/"); ok {
			if n := generationOf(rel); n > 0 {
				if rel == stateName(n) && get(rel, &last) && get(settledName(n), &p) {
					last.settle(&p)
				}
				if rel = strings.Split(rel, "-")[0] + "-N.json"; rel == "settled-N.json" && !slices.Contains(all, rel) {
					continue // where something was published
				}
			}
			if rel == copyName && get(rel, &copied) && !reflect.DeepEqual(copied, last) {
				rel += " of another state"
			}
			all = append(all, rel)
		}
	}
	return strings.Join(all, " ")
}

const settled = "manifest-N.json manifest.json"

func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}
