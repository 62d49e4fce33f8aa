package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"

	gcs "cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
)

// google is Google Cloud Storage.
type google struct{ *gcs.BucketHandle }

func (b *bucket) openGoogle(ctx context.Context) (err error) {
	base := b.s.http.Transport
	if project := os.Getenv("GOOGLE_CLOUD_PROJECT"); project != "" && b.s.opts.RequesterPays {
		base = payer{base, project}
	}
	client := gcp.NewAnonymousHTTPClient(base)
	if c := b.credentials(token); c != nil {
		if client, err = gcp.NewHTTPClient(base, c); err != nil {
			return err
		}
	} else if os.Getenv("STORAGE_EMULATOR_HOST") == "" && !b.s.opts.Anonymous {
		// The tokens are used for as long as the Store, not as ctx.
		creds, err := gcp.DefaultCredentials(context.WithoutCancel(ctx))
		if err != nil {
			return b.failed(new(call), "", err)
		}
		if client, err = gcp.NewHTTPClient(base, gcp.CredentialsTokenSource(creds)); err != nil {
			return err
		}
	}
	// With an emulator, gocloud would take another client than ours.
	o := &gcsblob.Options{ClientOptions: []option.ClientOption{option.WithHTTPClient(&client.Client)}}
	if b.Bucket, err = gcsblob.OpenBucket(ctx, client, b.place.bucket, o); err != nil {
		return err
	}
	var sdk *gcs.Client
	b.As(&sdk)
	sdk.SetRetry(gcs.WithPolicy(gcs.RetryNever)) // the Store counts and sends requests again itself
	handle := sdk.Bucket(b.place.bucket)
	b.cloud, b.sink = google{handle}, googleSink{handle}
	return nil
}

// payer names the project that pays for requests.
type payer struct {
	http.RoundTripper
	project string
}

func (p payer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("X-Goog-User-Project", p.project)
	return p.RoundTripper.RoundTrip(req)
}

func (google) beforeList(prefix string, as func(any) bool) error {
	var q *gcs.Query
	if as(&q) {
		q.Prefix = prefix
		return q.SetAttrSelection([]string{"Name", "Size", "Updated", "Generation"})
	}
	return nil
}

func (google) listed(o *blob.ListObject) entry {
	var a gcs.ObjectAttrs
	o.As(&a)
	if a.Prefix != "" {
		return entry{key: a.Prefix, dir: true}
	}
	return describe(&a)
}

func describe(a *gcs.ObjectAttrs) entry {
	return entry{a.Name, a.Size, a.Updated, strconv.FormatInt(a.Generation, 10), false}
}

func (g google) head(ctx context.Context, key string) (entry, error) {
	a, err := g.Object(key).Attrs(ctx)
	if err != nil {
		return entry{}, err
	}
	return describe(a), nil
}

func (g google) get(ctx context.Context, key, identity string, off, n int64) (answer, error) {
	o := g.Object(key).ReadCompressed(true) // as stored
	if identity != "" {
		generation, err := strconv.ParseInt(identity, 10, 64)
		if err != nil {
			return answer{}, fmt.Errorf("the identity %q is no generation", identity)
		}
		o = o.If(gcs.Conditions{GenerationMatch: generation})
	}
	r, err := o.NewRangeReader(ctx, off, n)
	if err != nil {
		return answer{}, err
	}
	a := answer{r, r.Attrs.Size, ""}
	if r.Attrs.Generation != 0 {
		a.identity = strconv.FormatInt(r.Attrs.Generation, 10)
	}
	return a, nil
}

func (google) code(err error) (code, text string) {
	var e *googleapi.Error
	if !errors.As(err, &e) {
		return "", ""
	}
	if len(e.Errors) > 0 {
		code = e.Errors[0].Reason
	}
	return code, e.Message
}
