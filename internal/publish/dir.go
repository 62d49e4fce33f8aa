package publish

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// IDsChange says what happens to outputs that were made with other IDs or filters. Empty:
// an error.
type IDsChange string

// The values.
const (
	IDsRerun IDsChange = "rerun" // they are made again
	IDsKeep  IDsChange = "keep"  // they stay
)

// Dir is an output directory as one worker of a run sees it; the comment of the package has the
// rules.
type Dir struct {
	Owner
	Name      string
	Manifests string // directory of the manifests; see [ManifestsOf]
	Recipe    Recipe
	// All makes the outputs of all inputs, whatever there is.
	All bool
	// Prune removes outputs whose input is gone.
	Prune bool
	// OfTable: the inputs are all those of a table's version, so that outputs of others may repeat rows.
	OfTable    bool
	IDsChanged IDsChange
	// NoCommit leaves the commit to [Dir.Complete].
	NoCommit bool
	// Require is checked at the commit.
	Require Require
	// AtOnce is the number of complete files that wait at the same time until they are
	// durable; 0: 8, or what a store takes. A disk makes several durable in the time of one.
	AtOnce int
	// Rows returns the number of rows of a file, as the file itself says.
	Rows func(ctx context.Context, name string) (int64, error)

	in      Inputs            // of the run, by Begin
	sums    sync.Map          // checksums that were computed, by name and identity
	damaged map[string]string // inputs, and what is wrong with their outputs, as incomplete has found it
}

// Success is the name of the file that marks a complete directory.
const Success = "_SUCCESS"

// MaxWorkers is the largest number of workers of a run.
const MaxWorkers = 1 << 20

// ManifestsOf returns the directory beside an output directory that has its manifests.
// It is empty if there is no such place, as for a bucket.
func ManifestsOf(dir string) string {
	trimmed := strings.TrimRight(dir, "/")
	for strings.HasSuffix(trimmed, "/.") {
		trimmed = strings.TrimRight(strings.TrimSuffix(trimmed, "/."), "/")
	}
	switch base := path.Base(trimmed); {
	case trimmed == "", base == ".", base == "..", strings.Count(trimmed, "/") < 3 && strings.Contains(trimmed, "://"):
		return ""
	}
	return trimmed + address.ManifestSuffix
}

// Input is a file of the log, whatever the worker. Of Entry it has what is known before the
// file is read; an empty Print is unknown.
type Input struct {
	Entry
	// Root is the directory below which the inputs were listed, as a Rel: "" for the
	// base itself. It is not valid unless Found is true.
	Root    string
	Found   bool
	ModTime time.Time
	Resolve func(storage.Source) string // returns its Place
}

// Inputs are all files of the log.
type Inputs struct {
	Digest [32]byte // zero: unknown, the inputs differ from all others
	Len    int
	Each   iter.Seq2[Input, error]
	// Names yields Rel of each, without the rest, of a list that the Digest identifies; nil: there is
	// no list. Roots say of it what was named.
	Names iter.Seq2[string, error]
	Roots string
	// Left are the Rels of files that were listed but are not inputs.
	Left map[string]bool
}

// path returns the full name of a file of the directory.
func (d *Dir) path(name string) string { return strings.TrimRight(d.Name, "/") + "/" + name }

// listing is what is in an output directory and beside it.
type listing struct {
	dir     *Dir
	objects map[string]storage.Object // of the directory, by Rel; nil: not listed
	known   *State                    // nil: not read yet, see state
	newest  int64                     // generation of the state; 0: there is none
	settled bool                      // the files of that generation are published
	stale   []string                  // names of older generations
	plans   []string                  // names
	added   []string                  // names, see WriteAdded
	parts   []*partName
	// elsewhere says that the parts are of other directories, from which the data was copied.
	elsewhere bool
}

// look lists the directory and its manifests. These are read where they are needed: a
// worker of many need not read what the others have written.
func (d *Dir) look(ctx context.Context) (*listing, error) {
	l, err := d.lookBeside(ctx)
	if err == nil {
		err = l.tree(ctx)
	}
	return l, err
}

// lookBeside lists the manifests alone.
func (d *Dir) lookBeside(ctx context.Context) (*listing, error) {
	l := &listing{dir: d}
	return l, l.manifests(ctx)
}

// tree lists the directory. The manifests were listed before, so that the files of a state
// are there unless another run removes them.
func (l *listing) tree(ctx context.Context) error {
	tree, err := objects.Below(ctx, l.dir.Store, l.dir.Name)
	if err != nil {
		return err
	}
	l.objects = make(map[string]storage.Object, len(tree))
	for _, obj := range tree {
		l.objects[obj.Rel] = obj
	}
	return nil
}

// manifests lists the manifests.
func (l *listing) manifests(ctx context.Context) error {
	l.known, l.newest, l.settled, l.stale, l.parts, l.plans, l.added = nil, 0, false, nil, nil, nil, nil
	tree, err := objects.Below(ctx, l.dir.Store, l.dir.Manifests)
	if err != nil {
		return err
	}
	for _, obj := range tree {
		if n := generationOf(obj.Rel); obj.Rel == stateName(n) {
			l.newest = max(l.newest, n)
		}
	}
	for _, obj := range tree {
		switch n := generationOf(obj.Rel); {
		case n > 0 && n < l.newest:
			l.stale = append(l.stale, obj.Rel)
		case n > 0:
			l.settled = l.settled || obj.Rel == settledName(l.newest)
		case strings.HasPrefix(obj.Rel, "plan-"):
			l.plans = append(l.plans, obj.Rel)
		case strings.HasPrefix(obj.Rel, "add-") && strings.HasSuffix(obj.Rel, ".jsonl"):
			l.added = append(l.added, obj.Rel)
		default:
			if p := parsePartName(obj.Rel); p != nil {
				p.identity = obj.Identity
				l.parts = append(l.parts, p)
			}
		}
	}
	return nil
}

// state returns the state. If another run commits meanwhile, everything is listed again.
func (l *listing) state(ctx context.Context) (*State, error) {
	for try := 0; l.known == nil; try++ {
		s := &State{Version: version}
		var err error
		if l.newest > 0 {
			err = l.dir.readState(ctx, l.newest, l.settled, s)
		}
		switch {
		case err == nil:
			l.known = s
		case try == maxCommitAttempts || !errors.Is(err, fs.ErrNotExist):
			return nil, err
		default:
			if err := l.manifests(ctx); err != nil {
				return nil, err
			}
			if l.objects == nil {
				continue
			}
			if err := l.tree(ctx); err != nil {
				return nil, err
			}
		}
	}
	return l.known, nil
}

// data returns the names of the files that a reader of the directory reads, ascending.
func (l *listing) data() (names []string) {
	for name := range l.objects {
		if !slices.ContainsFunc(strings.Split(name, "/"), storage.Marker) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// way returns an error if the path leads through something that is not a directory, or
// names something that is not a regular file.
func (l *listing) way(name string) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, ok := l.objects[dir]; ok {
			return fmt.Errorf("%s is a file or link, not a directory", dir)
		}
	}
	if obj, ok := l.objects[name]; ok && obj.Type != 0 {
		return fmt.Errorf("%s is a link or device, not a regular file", name)
	}
	return nil
}

// trouble returns what is wrong with a file: missing, cut, changed, or empty if it is as it
// was written. Bytes are compared only if neither the identity nor the time shows that the file
// is the one that was written.
func (d *Dir) trouble(ctx context.Context, l *listing, f *File) (string, error) {
	obj, ok := l.objects[f.Name]
	switch {
	case !ok:
		return "missing", nil
	case obj.Type != 0:
		return "changed: no regular file", nil
	case obj.Size < f.Bytes:
		return "cut", nil
	case obj.Size > f.Bytes:
		return "changed", nil
	case f.Identity != "" && f.Identity == obj.Identity, f.Sum == "":
		return "", nil
	}
	version := f.Name + "\x00" + obj.Identity
	known, ok := d.sums.Load(version)
	sum, _ := known.(string)
	if !ok || obj.Identity == "" {
		var err error
		sum, _, err = SumOf(ctx, d.Store, d.path(f.Name))
		switch { // another run may be about to replace it
		case errors.Is(err, fs.ErrNotExist):
			return "missing", nil
		case errors.Is(err, storage.ErrChanged):
			return "changed", nil
		case err != nil:
			return "", err
		}
		d.sums.Store(version, sum)
	}
	if sum != f.Sum {
		return "changed", nil
	}
	return "", nil
}

// SumOf returns the checksum of a file, and its identity.
func SumOf(ctx context.Context, store storage.Source, name string) (sum, identity string, err error) {
	src, err := store.Open(ctx, storage.Object{Name: name})
	if err != nil {
		return "", "", err
	}
	defer faults.Join(&err, src.Close)
	h := xxh3.New()
	buf := make([]byte, min(1<<20, src.Object().Size))
	for at, size := int64(0), src.Object().Size; at < size; {
		n, err := src.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if n == 0 && err != nil {
			return "", "", fmt.Errorf("%s: %w", name, err)
		}
		if err := stopped.Err(ctx); err != nil {
			return "", "", err
		}
		h.Write(buf[:n])
		at += int64(n)
	}
	return Sum(h), src.Object().Identity, nil
}

// Sum returns a checksum as manifests have it.
func Sum(h *xxh3.Hasher) string {
	b := h.Sum128().Bytes()
	return hex.EncodeToString(b[:])
}
