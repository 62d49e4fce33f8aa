package storage

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Memory returns an empty storage that keeps objects in the memory of this process, as
// object stores do: without directories, links and users. It is for tests, and for outputs
// that a program passes on; nothing bounds it. Names are paths with slashes, or
// URLs; ./a//b is a/b. Each version of an object has an identity of its own.
func Memory() Storage { return &memory{objects: map[string]version{}, staged: map[string][]byte{}} }

type memory struct {
	mu       sync.RWMutex
	names    []string // sorted
	objects  map[string]version
	versions int               // so far
	staged   map[string][]byte // objects without a name yet, by token
}

type version struct {
	bytes []byte
	id    string
	at    time.Time
}

func (v version) object(name string) Object {
	return Object{Name: name, Size: int64(len(v.bytes)), ModTime: v.at, Identity: v.id}
}

var errNoName = errors.New("an object with an empty name: want its path")

// of returns an object that has the identity, or any if that is empty.
func (m *memory) of(o Object) (version, error) {
	if o.Name == "" {
		return version{}, errNoName
	}
	v, ok := m.objects[clean(o.Name)]
	switch {
	case !ok:
		return v, missing(o.Name, fs.ErrNotExist)
	case strings.HasSuffix(o.Name, "/"):
		return v, missing(o.Name, syscall.ENOTDIR)
	case o.Identity != "" && o.Identity != v.id:
		return v, changed(o.Name)
	}
	return v, nil
}

// below returns the names that begin with prefix.
func (m *memory) below(prefix string) []string {
	lo := sort.SearchStrings(m.names, prefix)
	n := sort.Search(len(m.names)-lo, func(i int) bool { return !strings.HasPrefix(m.names[lo+i], prefix) })
	return m.names[lo : lo+n]
}

// Stat implements [Source]. What has objects below it is a directory.
func (m *memory) Stat(_ context.Context, name string) (Object, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v, err := m.of(Object{Name: name})
	switch {
	case err == nil:
		return v.object(clean(name)), nil
	case name != "" && len(m.below(inside(clean(name)))) > 0:
		return Object{Name: clean(name), Type: fs.ModeDir}, nil
	}
	return Object{}, err
}

// List implements [Source].
func (m *memory) List(_ context.Context, prefix string, yield func(Object) error) error {
	given := prefix[:strings.LastIndexByte(prefix, '/')+1]
	dir := inside(clean(cmp.Or(given, ".")))
	m.mu.RLock()
	names := slices.Clone(m.below(dir + prefix[len(given):]))
	m.mu.RUnlock()
	for _, name := range names {
		m.mu.RLock()
		v, ok := m.objects[name]
		m.mu.RUnlock()
		if !ok {
			continue // deleted meanwhile
		}
		if err := yield(v.object(given + name[len(dir):])); err != nil {
			return err
		}
	}
	return nil
}

// Open implements [Source].
func (m *memory) Open(_ context.Context, o Object) (Reader, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v, err := m.of(o)
	if err != nil {
		return nil, err
	}
	now := v.object(clean(o.Name))
	now.Rel, now.Found = o.Rel, o.Found
	return &memoryReader{m: m, object: now, b: bytes.NewReader(v.bytes)}, nil
}

// memoryReader refuses to read once the object has another version, as a conditional
// request does.
type memoryReader struct {
	m      *memory
	object Object
	b      *bytes.Reader
	closed atomic.Bool
}

func (r *memoryReader) Object() Object { return r.object }

func (r *memoryReader) Close() error {
	r.closed.Store(true)
	return nil
}

func (r *memoryReader) ReadAt(p []byte, off int64) (int, error) {
	if r.closed.Load() {
		return 0, fmt.Errorf("%s: %w", r.object.Name, fs.ErrClosed)
	}
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
	return &memoryWriter{m: m, name: clean(name)}, nil
}

type memoryWriter struct {
	bytes.Buffer
	m     *memory
	name  string
	ended bool
}

func (w *memoryWriter) Commit(replace bool) error {
	_, _, err := w.CommitOver(replace, "")
	return err
}

// CommitOver is Commit that replaces only an object with the identity over, unless that is empty.
// It returns the new identity; there is nothing to settle.
func (w *memoryWriter) CommitOver(replace bool, over string) (identity string, settle func() error, err error) {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	was, there := w.m.objects[w.name]
	switch {
	case w.ended:
		return "", nil, fmt.Errorf("%s: %w", w.name, fs.ErrClosed)
	case there && !replace:
		return "", nil, fmt.Errorf("%s: %w", w.name, fs.ErrExist)
	case replace && over != "" && was.id != over:
		return "", nil, changed(w.name)
	}
	w.ended = true
	return w.m.put(w.name, w.Bytes()), nil, nil
}

// put makes bytes the object of a name, and returns its identity. The caller holds the lock.
func (m *memory) put(name string, b []byte) (identity string) {
	if i, there := slices.BinarySearch(m.names, name); !there {
		m.names = slices.Insert(m.names, i, name)
	}
	m.versions++
	identity = strconv.Itoa(m.versions)
	m.objects[name] = version{b, identity, time.Now()}
	return identity
}

// Stage creates an object without its name. seal returns the token by which Publish finds it.
func (m *memory) Stage(ctx context.Context, name, _ string) (w Writer, seal func() (token, identity string, settle func() error, err error), err error) {
	if w, err = m.Create(ctx, name, CreateOptions{}); err != nil {
		return nil, nil, err
	}
	of := w.(*memoryWriter)
	return w, func() (token, identity string, settle func() error, err error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		of.ended = true
		m.versions++
		token = of.name + "#" + strconv.Itoa(m.versions)
		m.staged[token] = of.Bytes()
		return token, "", nil, nil
	}, nil
}

// Publish gives a staged object its name, and replaces what has that name. The error wraps
// fs.ErrNotExist if it was published or discarded before.
func (m *memory) Publish(_ context.Context, name, token string) (identity string, settle func() error, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.staged[token]
	if !ok {
		return "", nil, missing(name, fs.ErrNotExist)
	}
	delete(m.staged, token)
	return m.put(clean(name), b), nil, nil
}

// Discard drops a staged object.
func (m *memory) Discard(_ context.Context, _, token string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.staged, token)
	return nil
}

func (w *memoryWriter) Abort() error {
	w.ended = true
	return nil
}

// Delete implements [Storage].
func (m *memory) Delete(_ context.Context, o Object) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.of(o); err != nil {
		return err
	}
	name := clean(o.Name)
	delete(m.objects, name)
	i, _ := slices.BinarySearch(m.names, name)
	m.names = slices.Delete(m.names, i, i+1)
	return nil
}

// clean is [path.Clean], which leaves the start of a URL as it is.
func clean(name string) string {
	scheme, rest, ok := strings.Cut(name, "://")
	if !ok {
		return path.Clean(name)
	}
	return scheme + "://" + path.Clean("/" + rest)[1:]
}

// inside returns what the names of all objects below a directory begin with.
func inside(dir string) string {
	if dir == "." {
		return ""
	}
	return strings.TrimSuffix(dir, "/") + "/"
}
