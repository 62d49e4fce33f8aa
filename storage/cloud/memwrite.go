package cloud

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"gocloud.dev/blob"
)

// memorySink writes mem:// objects.
type memorySink struct{ bucket *blob.Bucket }

func (m memorySink) put(ctx context.Context, key string, body []byte, mark string, replace bool) error {
	return m.bucket.WriteAll(ctx, key, body, &blob.WriterOptions{
		IfNotExist: !replace, Metadata: map[string]string{markKey: mark}, ContentType: contentType,
	})
}

func (m memorySink) begin(_ context.Context, key, mark string) (upload, error) {
	return &memoryUpload{sink: m, key: key, mark: mark, parts: map[int][]byte{}}, nil
}

func (m memorySink) marked(ctx context.Context, key string) (string, error) {
	a, err := m.bucket.Attributes(ctx, key)
	if err != nil {
		return "", err
	}
	return a.Metadata[markKey], nil
}

func (m memorySink) remove(ctx context.Context, key, _ string) error {
	return m.bucket.Delete(ctx, key)
}

type memoryUpload struct {
	sink      memorySink
	key, mark string

	mu    sync.Mutex
	parts map[int][]byte
}

func (*memoryUpload) serial() bool { return false }
func (*memoryUpload) release()     {}

func (u *memoryUpload) part(_ context.Context, n int, body []byte) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.parts[n] = bytes.Clone(body)
	return nil
}

func (u *memoryUpload) complete(ctx context.Context, replace bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var all [][]byte
	for n := range len(u.parts) {
		all = append(all, u.parts[n])
	}
	return u.sink.put(ctx, u.key, slices.Concat(all...), u.mark, replace)
}

func (u *memoryUpload) abort(context.Context) error { return nil }
