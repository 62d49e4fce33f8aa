package cloud

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// oldUpload is the age from which an unfinished upload counts as abandoned, even if it is
// not recorded. Parts of runs over other directories may have it, so it is as long as Azure waits.
const oldUpload = 7 * 24 * time.Hour

// Sweep implements [storage.Sweeper]. In S3 it drops unfinished uploads of the
// object, or of what is below the directory: those of processes of this
// machine that have ended, and those older than a week. Google and Azure drop
// such uploads themselves after a week. Uploads that cannot be listed or dropped stay.
func (s *store) Sweep(ctx context.Context, given string) error {
	stopped.Needs(ctx, "Store.Sweep")
	n, err := parse(given)
	switch {
	case err != nil:
		return err
	case n.local:
		return objects.Sweep(ctx, s.opts.Local, n.key)
	case n.scheme != schemeS3:
		return nil
	}
	b, err := s.bucketOf(ctx, n.place)
	if err != nil {
		return err
	}
	b.sweep(ctx, b.sink.(*s3Sink), n.key, "", func() (map[string]bool, error) { return nil, nil })
	return ctx.Err()
}

// sweep drops uploads of killed processes, but not those that kept returns, and of staged ones only
// the owner's.
func (b *bucket) sweep(ctx context.Context, k *s3Sink, key, owner string, kept func() (map[string]bool, error)) {
	wanted := func(other string) bool { return other == key || strings.HasPrefix(other, below(key)) }
	drop := func(key, id string) bool {
		err := b.s.do(ctx, b, other, key, func(ctx context.Context) error { return k.abort(ctx, key, id) })
		return err == nil || lost(err)
	}
	living := map[string]bool{} // uploads
	found, gone := k.records.list()
	for name, r := range found {
		if !gone[name] {
			living[r.Upload] = true
			continue
		}
		mine := r.Owner == ""
		if !mine && r.Owner == owner {
			keep, err := kept()
			mine = err == nil && !keep[r.Upload]
		}
		if mine && wanted(r.Key) && drop(r.Key, r.Upload) {
			k.records.remove(name)
		}
	}
	all, _ := b.uploads(ctx, k, strings.TrimRight(key, "/"), true) // those that are not listed stay
	all = slices.DeleteFunc(all, func(u types.MultipartUpload) bool {
		old := u.Initiated != nil && time.Since(*u.Initiated) > oldUpload
		return !old || living[value(u.UploadId)] || !wanted(value(u.Key))
	})
	if len(all) == 0 {
		return
	}
	keep, err := kept()
	for _, u := range all {
		if id := value(u.UploadId); err == nil && !keep[id] {
			drop(value(u.Key), id)
		}
	}
}

// uploads lists the unfinished uploads of keys that begin with prefix, as far as
// the service does. If few is set, it lists the first thousand: a run at work may have far more.
func (b *bucket) uploads(ctx context.Context, k *s3Sink, prefix string, few bool) (all []types.MultipartUpload, err error) {
	in := &s3.ListMultipartUploadsInput{Bucket: &k.bucket, Prefix: optional(prefix)}
	for {
		var out *s3.ListMultipartUploadsOutput
		err = b.s.do(ctx, b, other, prefix, func(ctx context.Context) (err error) {
			out, err = k.client.ListMultipartUploads(ctx, in)
			return err
		})
		if err != nil {
			return all, err
		}
		all = append(all, out.Uploads...)
		if few || !aws.ToBool(out.IsTruncated) || value(out.NextKeyMarker) == "" {
			return all, nil
		}
		in.KeyMarker, in.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
	}
}
