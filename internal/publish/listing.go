package publish

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Dir is an output directory as one worker of a run sees it.
type Dir struct {
	Owner
	Name string
	// Nonce identifies a run that is not Known in its manifests, and is needed to
	// write them. It has at least 16 hexadecimal digits and differs between runs.
	Nonce string
	// Inputs are the Rel of all files of the log, whatever the shard. With Force
	// the run replaces the outputs of these.
	Inputs map[string]bool
	// Outputs returns the names of the files that the workers of this run write.
	Outputs func() []string
}

// Target is a file that a worker is about to write.
type Target struct {
	Name  string // path below the directory
	Input string // Rel of the file that its rows come from
}

// id identifies the run in manifests.
func (d *Dir) id() string {
	if d.Known() {
		return d.digest()
	}
	return d.Nonce
}

// listing is what is in an output directory.
type listing struct {
	objects   map[string]storage.Object // by Rel
	manifests []*Manifest
}

// look lists the directory and reads all manifests.
func (d *Dir) look(ctx context.Context) (*listing, error) {
	tree, err := d.Store.Tree(ctx, d.Name)
	if err != nil {
		return nil, err
	}
	l := &listing{objects: map[string]storage.Object{}}
	for _, obj := range tree {
		l.objects[obj.Rel] = obj
		if !isManifest(obj.Rel) {
			continue
		}
		m, err := d.readManifest(ctx, obj.Rel)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another run has removed it meanwhile
		}
		if err != nil {
			return nil, err
		}
		l.manifests = append(l.manifests, m)
	}
	return l, nil
}

// own returns this worker's manifest, or nil.
func (l *listing) own(d *Dir) *Manifest {
	for _, m := range l.manifests {
		if m.of(d) && m.Shard == d.Shard {
			return m
		}
	}
	return nil
}

// data returns the names of the files that a reader of the directory reads.
func (l *listing) data() (names []string) {
	for name := range l.objects {
		if !slices.ContainsFunc(strings.Split(name, "/"), storage.Marker) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// way returns an error if the path leads through something that is not a
// directory, or names something that is not a regular file.
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

// replaced returns the files of other runs that Force replaces: those whose
// input this run names, and those without an input if this run names all inputs
// of their run.
func (l *listing) replaced(d *Dir) map[string]bool {
	partly := map[string]bool{} // groups that have other inputs
	for _, m := range l.manifests {
		for _, f := range m.Files {
			partly[m.group()] = partly[m.group()] || f.Input != "" && !d.Inputs[f.Input]
		}
	}
	names := map[string]bool{}
	for _, m := range l.manifests {
		for _, f := range slices.Concat(m.Files, m.Without) {
			if !m.of(d) && (d.Inputs[f.Input] || f.Input == "" && !partly[m.group()]) {
				names[f.Name] = true
			}
		}
	}
	return names
}

// trouble returns what has become of a file that a manifest lists: empty if it is
// as it was written, else missing, cut or changed. Bytes are compared only if
// neither the identity nor the time shows that the file was not written after
// the manifest.
func (d *Dir) trouble(ctx context.Context, l *listing, m *Manifest, f File) (string, error) {
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
	case f.Sum == "": // of version 1
		marker, _, err := d.Marker(ctx, d.path(f.Name))
		if run, _, _ := strings.Cut(marker, " "); err != nil || run != m.Run {
			return "changed", err
		}
		return "", nil
	case f.Identity != "" && f.Identity == obj.Identity:
		return "", nil
	case f.Identity == "" && (obj.ModTime.IsZero() || m.written.IsZero() || !obj.ModTime.After(m.written)):
		return "", nil
	}
	sum, err := d.sumOf(ctx, f.Name)
	if err != nil || sum == f.Sum {
		return "", err
	}
	return "changed", nil
}

// problem returns what is wrong with the files of a manifest, or "".
func (d *Dir) problem(ctx context.Context, l *listing, m *Manifest) (string, error) {
	for _, f := range m.Files {
		trouble, err := d.trouble(ctx, l, m, f)
		if err != nil || trouble != "" {
			return f.Name + " is " + trouble, err
		}
	}
	return "", nil
}

// sumOf returns the checksum of a file of the directory.
func (d *Dir) sumOf(ctx context.Context, name string) (_ string, err error) {
	src, err := d.Store.Open(ctx, storage.Object{Name: d.path(name)})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	h := xxh3.New()
	buf := make([]byte, 1<<20)
	for at, size := int64(0), src.Object().Size; at < size; {
		n, err := src.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if n == 0 && err != nil {
			return "", fmt.Errorf("%s: %w", d.path(name), err)
		}
		if err := stopped.Err(ctx); err != nil {
			return "", err
		}
		h.Write(buf[:n])
		at += int64(n)
	}
	return Sum(h), nil
}

// Sum returns a checksum as manifests have it.
func Sum(h *xxh3.Hasher) string {
	b := h.Sum128().Bytes()
	return hex.EncodeToString(b[:])
}
