package storage

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Memory returns an empty storage that keeps objects in the memory of this process, as
// object stores do: without directories, links and users. It is for tests, and for outputs
// that a program passes on; nothing bounds it. It is a [ManifestLister]. Names are paths
// with slashes, or URLs. Each version of an object has an identity of its own.
func Memory() Storage { return &memory{objects: map[string]version{}} }

type memory struct {
	mu       sync.RWMutex
	objects  map[string]version
	versions int // so far
}

type version struct {
	bytes []byte
	id    string
	at    time.Time
}

func (v version) object(name, rel string) Object {
	return Object{Name: name, Rel: rel, Size: int64(len(v.bytes)), ModTime: v.at, Identity: v.id}
}

// of returns an object that has the identity, or any if that is empty.
func (m *memory) of(o Object) (version, error) {
	v, ok := m.objects[o.Name]
	switch {
	case !ok:
		return v, missing(o.Name, fs.ErrNotExist)
	case o.Identity != "" && o.Identity != v.id:
		return v, changed(o.Name)
	}
	return v, nil
}

// Stat implements [Source]. What has objects below it is a directory.
func (m *memory) Stat(_ context.Context, name string) (Object, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if v, ok := m.objects[name]; ok {
		return v.object(name, ""), nil
	}
	dir := inside(clean(name))
	for other := range m.objects {
		if strings.HasPrefix(other, dir) {
			return Object{Name: name, Type: fs.ModeDir}, nil
		}
	}
	return Object{}, missing(name, fs.ErrNotExist)
}

// List implements [Source].
func (m *memory) List(ctx context.Context, name string) ([]Object, error) {
	objects, _, err := list(ctx, m, name)
	return objects, err
}

// ListManifests implements [ManifestLister].
func (m *memory) ListManifests(ctx context.Context, name string) (objects []Object, manifests []string, err error) {
	return list(ctx, m, name)
}

// Tree implements [Storage]. All names are below the directory ".".
func (m *memory) Tree(_ context.Context, dir string) (objects []Object, err error) {
	prefix := inside(clean(dir))
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(m.objects)) {
		if rel, ok := strings.CutPrefix(name, prefix); ok {
			objects = append(objects, m.objects[name].object(name, rel))
		}
	}
	return objects, nil
}

// Open implements [Source].
func (m *memory) Open(_ context.Context, o Object) (Reader, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v, err := m.of(o)
	if err != nil {
		return nil, err
	}
	now := v.object(o.Name, o.Rel)
	now.Found = o.Found
	return &memoryReader{m, now, bytes.NewReader(v.bytes)}, nil
}

// memoryReader refuses to read once the object has another version, as a conditional
// request does.
type memoryReader struct {
	m      *memory
	object Object
	b      *bytes.Reader
}

func (r *memoryReader) Object() Object { return r.object }
func (r *memoryReader) Close() error   { return nil }

func (r *memoryReader) ReadAt(p []byte, off int64) (int, error) {
	r.m.mu.RLock()
	_, err := r.m.of(r.object)
	r.m.mu.RUnlock()
	if err != nil {
		return 0, changed(r.object.Name)
	}
	return r.b.ReadAt(p, off)
}

// Create implements [Storage].
func (m *memory) Create(_ context.Context, name string, _ CreateOptions) (Writer, error) {
	if name == "" || strings.HasSuffix(name, "/") {
		return nil, fmt.Errorf("an object of the name %q: want a path that does not end in a slash", name)
	}
	return &memoryWriter{m: m, name: name}, nil
}

type memoryWriter struct {
	bytes.Buffer
	m    *memory
	name string
}

func (w *memoryWriter) Commit(replace bool) error {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if _, ok := w.m.objects[w.name]; ok && !replace {
		return fmt.Errorf("%s: %w", w.name, fs.ErrExist)
	}
	w.m.versions++
	w.m.objects[w.name] = version{w.Bytes(), strconv.Itoa(w.m.versions), time.Now()}
	return nil
}

func (w *memoryWriter) Abort() error { return nil }

// Delete implements [Storage].
func (m *memory) Delete(_ context.Context, o Object) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.of(o); err != nil {
		return err
	}
	delete(m.objects, o.Name)
	return nil
}

func (m *memory) match(ctx context.Context, pattern string) ([]Object, error) {
	return matchFlat(ctx, m, pattern)
}

func (m *memory) walk(ctx context.Context, dir string) (objects []Object, manifests []string, err error) {
	return walkFlat(ctx, m, dir)
}
