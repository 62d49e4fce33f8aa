package cloud

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// A staged object is uploaded whole, and has no name before Publish, perhaps of another process.
// In S3 it is an upload that is not completed, in Azure a set of blocks in no list: both can be
// completed only once, however late a request arrives. For Google it is an object beside the
// final one with a hidden name, which Publish copies and removes.

// stagedToken is what Publish needs to know of a staged object, as JSON.
type stagedToken struct {
	Mark   string    `json:"mark"`             // of the object
	Upload string    `json:"upload,omitempty"` // S3
	Tags   []partTag `json:"parts,omitempty"`  // S3
	Blocks int       `json:"blocks,omitempty"` // Azure
}

// hidden returns the key of an object of Google that is staged.
func (t stagedToken) hidden(key string) string {
	return path.Join(path.Dir(key), "_"+path.Base(key)+"."+t.Mark+".staged")
}

// partTag is a [types.CompletedPart] in short.
type partTag struct {
	ETag  string `json:"etag"`
	CRC32 string `json:"crc32,omitempty"`
}

// resumer is a sink that continues uploads of other processes.
type resumer interface {
	resume(key string, t stagedToken) upload
}

// mover is a sink that gives an object another name, and returns its identity.
type mover interface {
	move(ctx context.Context, from, to string) (identity string, err error)
}

func (k *s3Sink) resume(key string, t stagedToken) upload {
	u := &s3Upload{sink: k, key: key, id: &t.Upload}
	for i, tag := range t.Tags {
		u.parts = append(u.parts, types.CompletedPart{PartNumber: new(int32(i + 1)), ETag: new(tag.ETag), ChecksumCRC32: optional(tag.CRC32)})
	}
	return u
}

func (k azureSink) resume(key string, t stagedToken) upload {
	return &azureUpload{blob: k.client.NewBlockBlobClient(key), mark: t.Mark, parts: t.Blocks}
}

// token describes an upload whose parts are all there.
func (u *s3Upload) token(t *stagedToken, owner string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	t.Upload = *u.id
	sortParts(u.parts)
	for _, p := range u.parts {
		t.Tags = append(t.Tags, partTag{value(p.ETag), value(p.ChecksumCRC32)})
	}
	if u.record != "" {
		u.record = u.sink.records.write(u.record, record{Key: u.key, Upload: t.Upload, Owner: owner})
	}
}

func (u *azureUpload) token(t *stagedToken, _ string) { t.Blocks = u.parts }

// Kept tells the writer of a staged object that its token is kept: its process may end.
func (w *writer) Kept() {
	if w.up != nil {
		w.up.release()
	}
}

// Stage creates an object without its name. seal returns the token by which Publish finds it.
func (s *store) Stage(ctx context.Context, given, owner string) (w storage.Writer, seal func() (token, identity string, settle func() error, err error), err error) {
	stopped.Needs(ctx, "Store.Stage")
	n, b, err := s.writable(ctx, given)
	if err != nil {
		return nil, nil, err
	}
	if n.local {
		return objects.Stage(ctx, s.opts.Local, n.key, owner)
	}
	of := b.writer(ctx, n.key)
	if _, ok := b.sink.(resumer); !ok {
		of.key = stagedToken{Mark: of.mark}.hidden(n.key)
	}
	return of, func() (token, identity string, settle func() error, err error) {
		token, err = of.seal(owner)
		return token, "", nil, err
	}, nil
}

// seal uploads what is left, without completing the object.
func (w *writer) seal(owner string) (token string, err error) {
	t := stagedToken{Mark: w.mark}
	if _, ok := w.b.sink.(resumer); !ok {
		_, err = w.commit("")
	} else if err = w.failed(); err == nil && (w.up == nil || len(w.buf) > 0) {
		err = w.send()
	}
	w.under.Wait()
	if err = cmp.Or(err, w.sealed()); err != nil {
		return "", err
	}
	if u, ok := w.up.(interface {
		token(t *stagedToken, owner string)
	}); ok {
		u.token(&t, owner)
	}
	w.end()
	b, err := json.Marshal(t)
	return string(b), err
}

// sealed returns the first error of a part.
func (w *writer) sealed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// tokenOf parses a token.
func tokenOf(given, token string) (t stagedToken, err error) {
	if err := json.Unmarshal([]byte(token), &t); err != nil {
		return t, fmt.Errorf("%s: not the token of a staged object: %w", given, err)
	}
	if mark, err := hex.DecodeString(t.Mark); err != nil || len(mark) == 0 || t.Blocks < 0 || t.Blocks > 5*maxParts { // as many as Azure takes
		return t, fmt.Errorf("%s: not the token of a staged object: %q", given, token)
	}
	return t, nil
}

// Publish gives a staged object its name, and replaces what has that name. If it was published
// before and is still there, it returns its identity; otherwise the error wraps fs.ErrNotExist, but
// S3 may answer a second request as the first, although other data has the name, and does nothing.
func (s *store) Publish(ctx context.Context, given, token string) (identity string, settle func() error, err error) {
	stopped.Needs(ctx, "Store.Publish")
	n, b, err := s.writable(ctx, given)
	switch {
	case err != nil:
		return "", nil, err
	case n.local:
		return objects.Publish(ctx, s.opts.Local, n.key, token)
	}
	t, err := tokenOf(given, token)
	r, ok := b.sink.(resumer)
	switch {
	case err != nil:
		return "", nil, err
	case ok && t.Upload == "" && t.Blocks == 0: // in Azure, an empty list of blocks would be an empty object
		return "", nil, fmt.Errorf("%s: the token of another store: %w", given, fs.ErrNotExist)
	}
	err = s.do(ctx, b, other, n.key, func(ctx context.Context) (err error) {
		if ok {
			identity, err = r.resume(n.key, t).complete(ctx, anyVersion)
		} else {
			identity, err = b.sink.(mover).move(ctx, t.hidden(n.key), n.key)
		}
		return err
	})
	if err == nil {
		identity, err = b.known(ctx, n.key, t.Mark, identity)
		return identity, nil, err
	}
	if !lost(err) && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	mark, identity, failed := b.markOf(ctx, n.key)
	switch {
	case failed != nil && !errors.Is(failed, fs.ErrNotExist):
		return "", nil, failed
	case failed != nil || mark != t.Mark:
		return "", nil, fmt.Errorf("%s: the staged object is gone: %w", given, fs.ErrNotExist)
	}
	return identity, nil, nil
}

// Discard drops a staged object, if it is still there.
func (s *store) Discard(ctx context.Context, given, token string) error {
	stopped.Needs(ctx, "Store.Discard")
	n, b, err := s.writable(ctx, given)
	switch {
	case err != nil:
		return err
	case n.local:
		return objects.Discard(ctx, s.opts.Local, n.key, token)
	}
	t, err := tokenOf(given, token)
	if err != nil {
		return err
	}
	err = s.do(ctx, b, other, n.key, func(ctx context.Context) error {
		if r, ok := b.sink.(resumer); ok {
			return r.resume(n.key, t).abort(ctx)
		}
		return b.remove(ctx, t.hidden(n.key), "")
	})
	if lost(err) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// SweepStaged drops what killed processes have staged for an owner below a directory, unless kept,
// which is asked afterwards, has the token: in S3, uploads of this machine, and of whomever those
// that are a week old. Google's hidden objects stay.
func (s *store) SweepStaged(ctx context.Context, given, owner string, kept func() (map[string]bool, error)) error {
	stopped.Needs(ctx, "Store.SweepStaged")
	n, b, err := s.writable(ctx, strings.TrimRight(given, "/")+"/x")
	switch {
	case err != nil:
		return err
	case n.local:
		return objects.SweepStaged(ctx, s.opts.Local, given, owner, kept)
	}
	k, ok := b.sink.(*s3Sink)
	if !ok {
		return nil
	}
	var failed error
	b.sweep(ctx, k, strings.TrimSuffix(n.key, "/x"), owner, sync.OnceValues(func() (map[string]bool, error) {
		tokens, err := kept()
		failed = err
		return uploadsOf(tokens), err
	}))
	return cmp.Or(failed, ctx.Err())
}

// uploadsOf returns the uploads of tokens.
func uploadsOf(tokens map[string]bool) map[string]bool {
	uploads := map[string]bool{}
	for token := range tokens {
		if t, err := tokenOf("", token); err == nil {
			uploads[t.Upload] = true
		}
	}
	return uploads
}

// Unfinished lists the uploads to S3 below a directory that are not completed and not kept. Their sizes
// are not known: each would take a request. Azure and Google do not list theirs.
func (s *store) Unfinished(ctx context.Context, given string, kept map[string]bool) (all []storage.Object, err error) {
	stopped.Needs(ctx, "Store.Unfinished")
	n, b, err := s.writable(ctx, strings.TrimRight(given, "/")+"/x")
	if err != nil || n.local {
		return nil, err
	}
	k, ok := b.sink.(*s3Sink)
	if !ok {
		return nil, nil
	}
	uploads, err := b.uploads(ctx, k, strings.TrimSuffix(n.key, "x"), false)
	living := uploadsOf(kept)
	for _, u := range uploads {
		if id := value(u.UploadId); !living[id] {
			token, _ := json.Marshal(stagedToken{Mark: "00", Upload: id}) // it never fails
			all = append(all, storage.Object{Name: n.of(value(u.Key)), Size: -1, ModTime: value(u.Initiated), Identity: string(token)})
		}
	}
	return all, err
}

// move copies an object within the service, with its mark, and removes it. The identity is asked for
// afterwards, as another process may have copied it once more before.
func (g google) move(ctx context.Context, from, to string) (identity string, err error) {
	target := strings.TrimPrefix(google{bucket: g.bucket}.object(to), "/storage/v1")
	if _, err := g.call(ctx, http.MethodPost, g.object(from)+"/copyTo"+target, nil, nil); err != nil {
		return "", err
	}
	if err := g.remove(ctx, from, ""); err != nil {
		return "", err
	}
	now, err := g.attributes(ctx, to)
	return now.Generation, err
}
