package cloud

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// sink writes objects of one cloud. Each call can be made again after it has failed.
type sink interface {
	// put writes an object whole, marked with the text. It replaces the object with the
	// identity over: "" for none, or [anyVersion]. It fails if there is another, see refused. It
	// returns the identity of what it wrote.
	put(ctx context.Context, key string, body []byte, mark, over string) (identity string, err error)
	// begin begins an object of several parts.
	begin(ctx context.Context, key, mark string) (upload, error)
	// marked returns the text with which an object is marked, empty for none, and its identity.
	marked(ctx context.Context, key string) (mark, identity string, err error)
	// remove deletes an object that has the identity, see refused.
	remove(ctx context.Context, key, identity string) error
}

// upload is an object that is being written in parts. It is invisible before complete.
type upload interface {
	// serial reports whether parts must be passed one after the other.
	serial() bool
	// part uploads the n-th part, from 0. Parts are passed at the same time.
	part(ctx context.Context, n int, body []byte) error
	// complete makes the object visible, like sink.put.
	complete(ctx context.Context, over string) (identity string, err error)
	// abort drops all parts.
	abort(ctx context.Context) error
	// release frees resources after complete has succeeded.
	release()
}

const (
	// anyVersion is the identity of whatever object is replaced, or none.
	anyVersion = "*"
	// markKey is the name of the metadata by which a writer recognises its object
	// when the response to a request was lost and another attempt is refused.
	markKey = "bloomjoinupload"
	// abortTime limits the removal of what a cancelled or failed run has uploaded.
	abortTime = 30 * time.Second
	// maxKept is how many bytes of a finished object stay in memory until Commit.
	maxKept = 64 << 10
)

// Create implements [storage.Storage]. Up to 8 MiB are kept until Commit and
// uploaded by one request; larger objects are uploaded in parts while they are
// written. CreateOptions.Private has no effect: the bucket's policy decides who may read.
func (s *store) Create(ctx context.Context, given string, o storage.CreateOptions) (storage.Writer, error) {
	stopped.Needs(ctx, "Store.Create")
	n, b, err := s.writable(ctx, given)
	switch {
	case err != nil:
		return nil, err
	case n.local:
		return s.opts.Local.Create(ctx, n.key, o)
	}
	return b.writer(ctx, n.key), nil
}

// writable parses a name and opens its bucket, unless it is local.
func (s *store) writable(ctx context.Context, given string) (n name, b *bucket, err error) {
	if n, err = parse(given); err != nil || n.local {
		return n, nil, err
	}
	if n.key == "" || strings.HasSuffix(n.key, "/") {
		return n, nil, n.invalid("it names no object but a directory")
	}
	if err := n.readOnly(); err != nil {
		return n, nil, err
	}
	b, err = s.bucketOf(ctx, n.place)
	return n, b, err
}

// writer returns a writer of an object.
func (b *bucket) writer(ctx context.Context, key string) *writer {
	var mark [8]byte
	_, _ = rand.Read(mark[:]) // never fails
	w := &writer{b: b, key: key, mark: hex.EncodeToString(mark[:])}
	w.ctx, w.cancel = context.WithCancel(ctx)
	return w
}

// writer collects parts and uploads them in the background.
type writer struct {
	ctx    context.Context //nolint:containedctx // Create's, which holds for the Writer
	cancel context.CancelFunc
	b      *bucket
	key    string
	mark   string

	up    upload // nil before the first part
	parts int    // passed to up
	buf   []byte // of the next part
	done  bool   // committed or aborted

	under sync.WaitGroup // parts under way
	mu    sync.Mutex
	err   error // the first of a part
}

var _ storage.Rester = (*writer)(nil)

// failed returns the error that all calls return from then on.
func (w *writer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && w.done {
		return fs.ErrClosed
	}
	return w.err
}

// fail records the first error.
func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// Write implements [io.Writer]. It waits while too many bytes are being uploaded.
func (w *writer) Write(p []byte) (n int, err error) {
	if err := w.failed(); err != nil {
		return 0, err
	}
	for len(p) > 0 {
		size := partSize(w.parts)
		if len(w.buf) == size {
			if err := w.send(); err != nil {
				return n, err
			}
			continue
		}
		m := min(len(p), size-len(w.buf))
		w.buf = w.b.s.parts.grow(w.buf, m, size)
		w.buf = append(w.buf, p[:m]...)
		n, p = n+m, p[m:]
	}
	return n, nil
}

// send begins to upload the part.
func (w *writer) send() error {
	s := w.b.s
	if w.up == nil {
		err := s.do(w.ctx, w.b, other, w.key, func(ctx context.Context) (err error) {
			w.up, err = w.b.begin(ctx, w.key, w.mark)
			return err
		})
		if err != nil {
			w.fail(err)
			return err
		}
	}
	if w.up.serial() {
		w.under.Wait()
	}
	n, body := w.parts, w.buf
	w.parts, w.buf = w.parts+1, nil
	done, err := s.parts.take(w.ctx, len(body))
	if err != nil {
		w.fail(err)
		return err
	}
	w.under.Go(func() {
		attempts := 0
		err := s.do(w.ctx, w.b, part, w.key, func(ctx context.Context) error {
			attempts++
			return w.up.part(ctx, n, body)
		})
		if err != nil {
			w.fail(err)
		}
		if attempts > 1 || err != nil {
			body = nil // a connection that broke may still be reading it
		}
		done(body)
	})
	return w.failed()
}

// Rest implements [storage.Rester]: it uploads all but small objects, so that
// many writers that wait for Commit need little memory.
func (w *writer) Rest() error {
	if err := w.failed(); err != nil {
		return err
	}
	if w.up == nil && len(w.buf) <= maxKept {
		return nil
	}
	if len(w.buf) > 0 {
		if err := w.send(); err != nil {
			return err
		}
	}
	w.under.Wait()
	return w.failed()
}

// Commit implements [storage.Writer].
func (w *writer) Commit(replace bool) error {
	over := ""
	if replace {
		over = anyVersion
	}
	_, err := w.commit(over)
	return err
}

// CommitOver is Commit that replaces only an object with the identity over, unless that is empty.
// It returns the new identity; there is nothing to settle.
func (w *writer) CommitOver(replace bool, over string) (identity string, settle func() error, err error) {
	if replace {
		over = cmp.Or(over, anyVersion)
	} else {
		over = ""
	}
	ctx := context.WithoutCancel(w.ctx)
	identity, err = w.commit(over)
	if err == nil {
		identity, err = w.b.known(ctx, w.key, w.mark, identity)
	}
	return identity, nil, err
}

// known returns the identity of an object that was written with the mark, if the service's answer
// did not name it.
func (b *bucket) known(ctx context.Context, key, mark, identity string) (string, error) {
	if identity != "" {
		return identity, nil
	}
	now, identity, err := b.markOf(ctx, key)
	if err == nil && now != mark {
		err = &rivalError{b.place.String() + key, nil}
	}
	return identity, err
}

func (w *writer) commit(over string) (identity string, err error) {
	if err := w.failed(); err != nil {
		return "", err
	}
	if w.up != nil {
		if err := w.Rest(); err != nil {
			return "", err
		}
	}
	if identity, err = w.publish(over); err != nil {
		return "", err
	}
	w.end()
	if w.up != nil {
		w.up.release()
	}
	return identity, nil
}

// end frees what the writer holds.
func (w *writer) end() {
	w.done = true
	w.cancel()
	w.buf = nil
}

// publish makes the object visible. A request that is refused may have been sent
// for the second time, after its first response was lost: then the object is this
// writer's.
func (w *writer) publish(over string) (identity string, err error) {
	b := w.b
	send := func(over string) error {
		if w.up == nil {
			identity, err = w.put(over)
			return err
		}
		return b.s.do(w.ctx, b, other, w.key, func(ctx context.Context) (err error) {
			identity, err = w.up.complete(ctx, over)
			return err
		})
	}
	conditional := over != anyVersion && !b.unconditional.Load()
	if conditional {
		err = send(over)
		if lacksConditions(err) {
			b.unconditional.Store(true)
			conditional = false
		}
	}
	if over != anyVersion && !conditional {
		// Another object may still appear before the next request.
		switch _, now, err := b.markOf(w.ctx, w.key); {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", err
		case now != over:
			return "", w.conflict(over, nil)
		}
	}
	if !conditional {
		err = send(anyVersion)
	}
	if !refused(err) && !lost(err) {
		return identity, err
	}
	mark, identity, markErr := b.markOf(w.ctx, w.key)
	switch {
	case markErr != nil && !errors.Is(markErr, fs.ErrNotExist):
		return "", markErr
	case markErr == nil && mark == w.mark:
		return identity, nil
	case markErr == nil && !lost(err):
		return "", w.conflict(over, err)
	}
	return "", &rivalError{b.place.String() + w.key, err}
}

// put uploads the object whole. A service that refuses it may break the connection
// before it has read everything, and the response is lost. So before another
// attempt, put looks whether there is an object.
func (w *writer) put(over string) (identity string, err error) {
	again := false
	err = w.b.s.do(w.ctx, w.b, put, w.key, func(ctx context.Context) (err error) {
		if again && over != anyVersion {
			ctx, _ := withCall(ctx, head, 1)
			if _, now, err := w.b.marked(ctx, w.key); err == nil && now != over {
				return fs.ErrExist
			}
		}
		again = true
		identity, err = w.b.put(ctx, w.key, w.buf, w.mark, over)
		return err
	})
	return identity, err
}

// conflict returns the error of an object that is not the one to be replaced.
func (w *writer) conflict(over string, err error) error {
	if over == "" {
		return fmt.Errorf("%s: the object exists%w", w.b.place.String()+w.key, quiet.Error{Err: fs.ErrExist})
	}
	return &rivalError{w.b.place.String() + w.key, err}
}

// Abort implements [storage.Writer]. It also works when the context has ended.
func (w *writer) Abort() error {
	if w.done {
		return nil
	}
	w.end()
	w.under.Wait()
	if w.up == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), abortTime)
	defer cancel()
	err := w.b.s.do(ctx, w.b, other, w.key, w.up.abort)
	if err != nil && !lost(err) {
		return fmt.Errorf("an unfinished upload was left: %w", err)
	}
	w.up.release()
	return nil
}

// rivalError reports that another process has written or removed the object or its
// parts.
type rivalError struct {
	name string
	err  error
}

func (e *rivalError) Error() string {
	return e.name + ": another process wrote it at the same time (let only one write it, and run again)"
}

func (e *rivalError) Unwrap() []error { return []error{e.err, storage.ErrAgain, storage.ErrChanged} }

// Cause returns the code of its cause.
func (*rivalError) Cause() cause.Code { return cause.Workers }

// refused reports whether a condition of a request was not met.
func refused(err error) bool {
	if errors.Is(err, fs.ErrExist) {
		return true
	}
	var f *failure
	if !errors.As(err, &f) {
		return false
	}
	switch f.status {
	case http.StatusPreconditionFailed:
		return true
	case http.StatusConflict: // S3: two conditional requests at once; Azure: the object exists
		return f.code == "ConditionalRequestConflict" || f.code == "BlobAlreadyExists"
	}
	return false
}

// lost reports whether an upload no longer exists: it was completed or aborted.
func lost(err error) bool {
	var f *failure
	return errors.As(err, &f) && (f.code == "NoSuchUpload" || f.code == "InvalidBlockList")
}

// lacksConditions reports whether the service knows no conditional writes.
func lacksConditions(err error) bool {
	var f *failure
	return errors.As(err, &f) && (f.status == http.StatusNotImplemented || f.code == "NotImplemented")
}

// markOf returns the mark of an object, and its identity.
func (b *bucket) markOf(ctx context.Context, key string) (mark, identity string, err error) {
	err = b.s.do(ctx, b, head, key, func(ctx context.Context) (err error) {
		mark, identity, err = b.marked(ctx, key)
		return err
	})
	return mark, identity, err
}

// Delete implements [storage.Storage].
func (s *store) Delete(ctx context.Context, o storage.Object) error {
	stopped.Needs(ctx, "Store.Delete")
	n, b, err := s.writable(ctx, o.Name)
	switch {
	case err != nil:
		return err
	case n.local:
		o.Name = n.key
		return s.opts.Local.Delete(ctx, o)
	}
	e, err := b.stat(ctx, n.key)
	if err != nil {
		return err
	}
	if o.Identity != "" && o.Identity != e.identity {
		return replaced(o.Name, nil)
	}
	err = s.do(ctx, b, del, n.key, func(ctx context.Context) error { return b.remove(ctx, n.key, o.Identity) })
	if lacksConditions(err) {
		err = s.do(ctx, b, del, n.key, func(ctx context.Context) error { return b.remove(ctx, n.key, "") })
	}
	switch {
	case refused(err):
		return replaced(o.Name, err)
	case errors.Is(err, fs.ErrNotExist):
		return nil // an earlier attempt has deleted it
	}
	return err
}

// replaced returns the error of an object that Delete leaves, because another has replaced it.
func replaced(name string, err error) error {
	return fmt.Errorf("%s: not deleted: the object changed in the meantime%w", address.Redact(name), quiet.Error{Err: errors.Join(storage.ErrChanged, err)})
}
