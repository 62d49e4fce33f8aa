package cloud

import (
	"context"
	"errors"
	"io/fs"
	"strconv"

	gcs "cloud.google.com/go/storage"
)

// googleSink writes to Google Cloud Storage.
type googleSink struct{ handle *gcs.BucketHandle }

// writer begins to write an object. An object of at most chunk bytes is sent in one
// request; with chunk 0, any object is.
func (googleSink) writer(ctx context.Context, o *gcs.ObjectHandle, mark string, chunk int) *gcs.Writer {
	w := o.NewWriter(ctx)
	w.ContentType, w.ChunkSize = contentType, chunk
	w.Metadata = map[string]string{markKey: mark}
	return w
}

func (k googleSink) put(ctx context.Context, key string, body []byte, mark string, replace bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // without Close, nothing is written
	o := k.handle.Object(key)
	if !replace {
		o = o.If(gcs.Conditions{DoesNotExist: true})
	}
	w := k.writer(ctx, o, mark, 0)
	if _, err := w.Write(body); err != nil {
		return errors.Join(err, w.Close())
	}
	return w.Close()
}

// begin begins a resumable upload. Its condition is part of its first request, so
// the object is looked up then, and complete publishes only over that version.
func (k googleSink) begin(ctx context.Context, key, mark string) (upload, error) {
	o := k.handle.Object(key)
	attrs, err := o.Attrs(ctx)
	u := &googleUpload{there: err == nil}
	switch {
	case err == nil:
		o = o.If(gcs.Conditions{GenerationMatch: attrs.Generation})
	case errors.Is(err, gcs.ErrObjectNotExist):
		o = o.If(gcs.Conditions{DoesNotExist: true})
	default:
		return nil, err
	}
	// The SDK sends a chunk again itself, since it has the service's session.
	o = o.Retryer(gcs.WithPolicy(gcs.RetryAlways))
	ctx, u.call = withCall(ctx, part)
	ctx, u.cancel = context.WithCancel(ctx)
	u.w = k.writer(ctx, o, mark, firstPart)
	u.w.ChunkRetryDeadline = patience
	return u, nil
}

func (k googleSink) marked(ctx context.Context, key string) (string, error) {
	a, err := k.handle.Object(key).Attrs(ctx)
	if err != nil {
		return "", err
	}
	return a.Metadata[markKey], nil
}

func (k googleSink) remove(ctx context.Context, key, identity string) error {
	o := k.handle.Object(key)
	if g, err := strconv.ParseInt(identity, 10, 64); err == nil {
		o = o.If(gcs.Conditions{GenerationMatch: g})
	}
	return o.Delete(ctx)
}

// googleUpload is a resumable upload.
type googleUpload struct {
	w      *gcs.Writer
	call   *call
	cancel context.CancelFunc
	there  bool // the object existed when the upload began
}

func (*googleUpload) serial() bool { return true }
func (u *googleUpload) release()   { u.cancel() }

func (u *googleUpload) part(ctx context.Context, _ int, body []byte) error {
	_, err := u.w.Write(body)
	return u.noted(ctx, err)
}

func (u *googleUpload) complete(ctx context.Context, replace bool) error {
	if u.there && !replace {
		return fs.ErrExist
	}
	return u.noted(ctx, u.w.Close())
}

// noted passes the status of the writer's last response on to the call of ctx.
func (u *googleUpload) noted(ctx context.Context, err error) error {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.status.Store(u.call.status.Load())
	}
	return err
}

// abort leaves a session that the service drops after a week.
func (u *googleUpload) abort(context.Context) error {
	u.cancel()
	_ = u.w.Close() // the error is that of the cancellation
	return nil
}
