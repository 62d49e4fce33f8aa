// Package storagetest holds what tests of several packages need of storages: one
// in memory, so that nothing but package storage depends on local files, and
// checks that every storage must pass.
package storagetest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Memory keeps objects in memory, as object stores do: without directories,
// links and modes. Every version of an object has an identity of its own.
type Memory struct {
	// Coarse makes times those of S3: in whole seconds, and of Create where the
	// object was uploaded in parts.
	Coarse bool

	mu      sync.Mutex
	objects map[string]version
	written int // versions so far
}

type version struct {
	bytes   []byte
	id      int
	at      time.Time
	private bool
}

var _ storage.Storage = (*Memory)(nil)

// NewMemory returns an empty storage.
func NewMemory() *Memory { return &Memory{objects: map[string]version{}} }

// Put writes an object, which other users may read.
func (m *Memory) Put(name string, b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(name, b, false, time.Now())
}

func (m *Memory) put(name string, b []byte, private bool, at time.Time) {
	m.written++
	if m.Coarse {
		at = at.Truncate(time.Second)
	}
	m.objects[name] = version{bytes.Clone(b), m.written, at, private}
}

// Get returns the bytes of an object, which must not be written to.
func (m *Memory) Get(name string) (b []byte, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.objects[name]
	return v.bytes, ok
}

// Names returns the names of all objects in ascending order.
func (m *Memory) Names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range m.objects {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Private reports whether an object was created to be read by its owner alone.
func (m *Memory) Private(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objects[name].private
}

func (v version) object(name, rel string) storage.Object {
	return storage.Object{Name: name, Rel: rel, Size: int64(len(v.bytes)), ModTime: v.at, Identity: strconv.Itoa(v.id)}
}

// Tree implements [storage.Storage].
func (m *Memory) Tree(_ context.Context, dir string) (objects []storage.Object, err error) {
	prefix := strings.TrimRight(dir, "/") + "/"
	for _, name := range m.Names() {
		if rel, ok := strings.CutPrefix(name, prefix); ok {
			m.mu.Lock()
			objects = append(objects, m.objects[name].object(name, rel))
			m.mu.Unlock()
		}
	}
	return objects, nil
}

// List implements [storage.Source]. Patterns match whole names.
func (m *Memory) List(ctx context.Context, name string) (listed []storage.Object, err error) {
	if o, err := m.Stat(ctx, name); err == nil && o.Type == 0 {
		o.Rel = path.Base(name)
		return []storage.Object{o}, nil
	}
	below, err := m.Tree(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, o := range below {
		if !slices.ContainsFunc(strings.Split(o.Rel, "/"), storage.Marker) {
			o.Found = true
			listed = append(listed, o)
		}
	}
	if len(below) > 0 && len(listed) == 0 {
		return nil, fmt.Errorf("directory %s holds %w", name, storage.ErrNoFiles)
	}
	if err := glob.Check(name); err != nil {
		return nil, err
	}
	for _, n := range m.Names() {
		if top, ok := glob.Top(name, n); ok && top == n && !storage.Marker(path.Base(n)) {
			o, err := m.Stat(ctx, n)
			if err != nil {
				return nil, err
			}
			o.Rel = path.Base(n)
			listed = append(listed, o)
		}
	}
	if len(listed) == 0 {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return listed, nil
}

// Stat implements [storage.Source]. What has objects below it is a directory.
func (m *Memory) Stat(ctx context.Context, name string) (storage.Object, error) {
	m.mu.Lock()
	v, ok := m.objects[name]
	m.mu.Unlock()
	if ok {
		return v.object(name, ""), nil
	}
	if below, err := m.Tree(ctx, name); err != nil || len(below) > 0 {
		return storage.Object{Name: name, Type: fs.ModeDir}, err
	}
	return storage.Object{}, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// Open implements [storage.Source].
func (m *Memory) Open(_ context.Context, o storage.Object) (storage.Reader, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.objects[o.Name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", o.Name, fs.ErrNotExist)
	}
	now := v.object(o.Name, o.Rel)
	if o.Identity != "" && o.Identity != now.Identity {
		return nil, fmt.Errorf("%s: %w", o.Name, storage.ErrChanged)
	}
	return &reader{bytes.NewReader(v.bytes), m, now}, nil
}

// reader refuses to read once the object has another version, as a conditional
// request does.
type reader struct {
	b      *bytes.Reader
	m      *Memory
	object storage.Object
}

func (r *reader) Object() storage.Object { return r.object }
func (r *reader) Close() error           { return nil }

func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	r.m.mu.Lock()
	v, ok := r.m.objects[r.object.Name]
	r.m.mu.Unlock()
	if !ok || strconv.Itoa(v.id) != r.object.Identity {
		return 0, fmt.Errorf("%s: %w", r.object.Name, storage.ErrChanged)
	}
	return r.b.ReadAt(p, off)
}

type writer struct {
	bytes.Buffer
	m       *Memory
	name    string
	private bool
	begun   time.Time
}

// Create implements [storage.Storage].
func (m *Memory) Create(_ context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	return &writer{m: m, name: name, private: o.Private, begun: time.Now()}, nil
}

func (w *writer) Commit(replace bool) error {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if _, ok := w.m.objects[w.name]; ok && !replace {
		return fmt.Errorf("%s: %w", w.name, fs.ErrExist)
	}
	at := time.Now()
	if w.m.Coarse {
		at = w.begun
	}
	w.m.put(w.name, w.Bytes(), w.private, at)
	return nil
}

func (w *writer) Abort() error { return nil }

// Delete implements [storage.Storage].
func (m *Memory) Delete(_ context.Context, o storage.Object) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.objects[o.Name]
	if !ok {
		return fmt.Errorf("%s: %w", o.Name, fs.ErrNotExist)
	}
	if o.Identity != "" && o.Identity != strconv.Itoa(v.id) {
		return fmt.Errorf("%s: %w", o.Name, storage.ErrChanged)
	}
	delete(m.objects, o.Name)
	return nil
}
