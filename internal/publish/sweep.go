package publish

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/process"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Left is what an attempt has left in a directory or beside it.
type Left struct {
	Kind    string  `json:"kind"` // plan, shard (a part), staged, tmp or upload
	Name    string  `json:"name"`
	Bytes   int64   `json:"bytes"`       // -1: unknown
	Age     float64 `json:"age_seconds"` // since the storage has had it
	Removed bool    `json:"removed"`

	object storage.Object // of an upload, the identity is the token
}

// Sweep lists what runs that are not committed have left, if all of a run is older, and removes it.
// A run all of whose workers are done waits for its commit, and stays.
// A process that is still at work on it fails.
func (d *Dir) Sweep(ctx context.Context, older time.Duration, remove bool) ([]Left, error) {
	all, err := d.left(ctx, older)
	if !remove {
		return all, err
	}
	now := all
	// First, plans and parts: a commit that has read them may still put what is staged into the state.
	for _, runs := range []bool{true, false} {
		if !runs && err == nil {
			now, err = d.left(ctx, older)
		}
		still := map[storage.Object]bool{}
		for _, x := range now {
			still[x.object] = true
		}
		for i := range all {
			x := &all[i]
			switch {
			case err != nil:
				return all, err
			case !still[x.object] || runs != (runOf(path.Base(x.Name)) != ""):
				continue
			case x.Kind == "upload":
				err = objects.Discard(ctx, d.Store, x.Name, x.object.Identity)
			default:
				err = d.Store.Delete(ctx, x.object)
			}
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			x.Removed = err == nil
		}
	}
	return all, err
}

// Names of temporary and staged files, and what is unique in them, and in tokens.
var (
	temporary = regexp.MustCompile(`(^|/)[._][^/]*[.-]([0-9A-Za-z]{16,})\.(tmp|staged)$`)
	unique    = regexp.MustCompile(`[0-9A-Za-z]{16,}`)
)

// left lists what [Dir.Sweep] does.
func (d *Dir) left(ctx context.Context, older time.Duration) (all []Left, err error) {
	l, err := d.lookBeside(ctx)
	if err != nil {
		return nil, err
	}
	beside, err := objects.Below(ctx, d.Store, d.Manifests)
	if err != nil {
		return nil, err
	}
	tree, err := objects.Below(ctx, d.Store, d.Name)
	if err != nil {
		return nil, err
	}
	stays := map[string]bool{} // runs
	for _, o := range beside {
		stays[runOf(o.Rel)] = stays[runOf(o.Rel)] || time.Since(o.ModTime) < older
	}
	kept, err := l.tokens(ctx, stays)
	if err != nil {
		return nil, err
	}
	outputs := map[string]bool{} // others, in the tree
	for _, o := range tree {
		if out, _, ok := strings.Cut(o.Name, address.ManifestSuffix+"/"); ok {
			outputs[out] = true
		}
	}
	tags := map[string]bool{}
	for token := range kept {
		for _, tag := range unique.FindAllString(token, -1) {
			tags[tag] = true
		}
	}
	add := func(kind string, o storage.Object) {
		for dir := range glob.Dirs(o.Name) {
			if outputs[dir] {
				return
			}
		}
		if age := time.Since(o.ModTime); age >= older && !o.ModTime.IsZero() && o.Type == 0 {
			all = append(all, Left{kind, o.Name, o.Size, age.Seconds(), false, o})
		}
	}
	for _, o := range beside {
		if run := runOf(o.Rel); run != "" && !stays[run] {
			kind, _, _ := strings.Cut(o.Rel, "-")
			add(kind, o)
		}
	}
	tag := process.Tag(objects.Resolve(d.Store, d.Manifests))
	for _, o := range slices.Concat(beside, tree) {
		if m := temporary.FindStringSubmatch(o.Rel); m != nil && !tags[m[2]] && (strings.HasPrefix(m[2], tag) || !strings.HasSuffix(o.Rel, "-"+m[2]+".staged")) {
			add(m[3], o)
		}
	}
	uploads, err := objects.Unfinished(ctx, d.Store, d.Name, kept)
	for _, o := range uploads {
		add("upload", o)
	}
	return all, err
}

// runOf returns the key of the run that a plan or part is of, or "".
func runOf(name string) string {
	if p := parsePartName(name); p != nil {
		return p.key()
	}
	key, ok := strings.CutPrefix(name, "plan-")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(key, ".json")
}

// tokens returns those of the state, and of the parts of some runs, to which it adds those that wait
// for their commit; nil: of all.
func (l *listing) tokens(ctx context.Context, runs map[string]bool) (map[string]bool, error) {
	s, err := l.state(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.preload(ctx, l.parts); err != nil {
		return nil, err
	}
	tokens := map[string]bool{}
	add := func(files []File) {
		for _, f := range files {
			tokens[f.Staged] = true
		}
	}
	add(s.Files)
	for _, p := range l.parts {
		part, err := l.load(ctx, p)
		if err != nil {
			return nil, err
		}
		if part == nil || runs != nil && !runs[p.key()] && (missing(l.of(p.run, p.of)) != "" || l.dir.dead(s, part)) {
			continue
		}
		if runs != nil {
			runs[p.key()] = true
		}
		add(part.Files)
	}
	return tokens, nil
}
