package cloud

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// memory is the cloud of mem://, where objects have a time of writing.
type memory struct {
	mu      sync.Mutex
	objects map[string]memoryObject
}

type memoryObject struct {
	body []byte
	at   time.Time
	mark string
}

func (o memoryObject) entry(key string) entry {
	return entry{key, int64(len(o.body)), o.at, o.at.UTC().Format("20060102T150405.000000000"), false}
}

// find returns an object.
func (m *memory) find(ctx context.Context, key string) (memoryObject, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key]
	if !ok {
		return o, fs.ErrNotExist
	}
	return o, ctx.Err()
}

func (*memory) code(error) (code, text string) { return "", "" }

// page's token is the last key of the page before.
func (m *memory) page(ctx context.Context, prefix, delimiter, token string, most int) (entries []entry, next string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(m.objects)) {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		e := m.objects[key].entry(key)
		if dir, _, in := strings.Cut(rest, delimiter); in && delimiter != "" {
			e = entry{key: prefix + dir + delimiter, dir: true}
		}
		switch n := len(entries); {
		case e.key <= token || n > 0 && entries[n-1].key == e.key:
		case n == most:
			return entries, entries[n-1].key, ctx.Err()
		default:
			entries = append(entries, e)
		}
	}
	return entries, "", ctx.Err()
}

func (m *memory) head(ctx context.Context, key string) (entry, error) {
	o, err := m.find(ctx, key)
	return o.entry(key), err
}

func (m *memory) get(ctx context.Context, key, _ string, off, n int64) (answer, error) {
	o, err := m.find(ctx, key)
	if err != nil {
		return answer{}, err
	}
	e := o.entry(key)
	return answer{io.NopCloser(io.NewSectionReader(bytes.NewReader(o.body), off, n)), e.size, e.identity}, nil
}

func (m *memory) put(ctx context.Context, key string, body []byte, mark, over string) (identity string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o, ok := m.objects[key]; over != anyVersion && (ok || over != "") && o.entry(key).identity != over {
		return "", fs.ErrExist
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	m.objects[key] = memoryObject{bytes.Clone(body), time.Now(), mark}
	return m.objects[key].entry(key).identity, nil
}

func (m *memory) move(ctx context.Context, from, to string) (identity string, err error) {
	o, err := m.find(ctx, from)
	if err != nil {
		return "", err
	}
	if identity, err = m.put(ctx, to, o.body, o.mark, anyVersion); err != nil {
		return "", err
	}
	return identity, m.remove(ctx, from, "")
}

func (m *memory) marked(ctx context.Context, key string) (mark, identity string, err error) {
	o, err := m.find(ctx, key)
	return o.mark, o.entry(key).identity, err
}

func (m *memory) remove(_ context.Context, key, _ string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return nil
}

func (m *memory) begin(_ context.Context, key, mark string) (upload, error) {
	return &memoryUpload{to: m, key: key, mark: mark, parts: map[int][]byte{}}, nil
}

type memoryUpload struct {
	to        *memory
	key, mark string

	mu    sync.Mutex
	parts map[int][]byte
}

func (*memoryUpload) serial() bool                { return false }
func (*memoryUpload) abort(context.Context) error { return nil }
func (*memoryUpload) release()                    {}

func (u *memoryUpload) part(_ context.Context, n int, body []byte) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.parts[n] = bytes.Clone(body)
	return nil
}

func (u *memoryUpload) complete(ctx context.Context, over string) (identity string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var all [][]byte
	for n := range len(u.parts) {
		all = append(all, u.parts[n])
	}
	return u.to.put(ctx, u.key, slices.Concat(all...), u.mark, over)
}
