package store

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"

	gcs "cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"google.golang.org/api/googleapi"
)

// google is Google Cloud Storage.
type google struct{}

func (b *bucket) openGoogle(ctx context.Context) (err error) {
	base := b.s.http.Transport
	if project := os.Getenv("GOOGLE_CLOUD_PROJECT"); project != "" && b.s.opts.RequesterPays {
		base = payer{base, project}
	}
	client := gcp.NewAnonymousHTTPClient(base)
	if os.Getenv("STORAGE_EMULATOR_HOST") == "" && !b.s.opts.Anonymous {
		// The tokens are used for as long as the Store, not as ctx.
		creds, err := gcp.DefaultCredentials(context.WithoutCancel(ctx))
		if err != nil {
			return b.failed(new(call), "", err)
		}
		if client, err = gcp.NewHTTPClient(base, gcp.CredentialsTokenSource(creds)); err != nil {
			return err
		}
	}
	b.cloud = google{}
	if b.Bucket, err = gcsblob.OpenBucket(ctx, client, b.place.bucket, nil); err != nil {
		return err
	}
	var sdk *gcs.Client
	if b.As(&sdk) {
		b.sink = googleSink{sdk.Bucket(b.place.bucket)}
		sdk.SetRetry(gcs.WithPolicy(gcs.RetryNever)) // the Store counts and sends requests again itself
	}
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

func (google) beforeList(as func(any) bool) error {
	var q *gcs.Query
	if as(&q) {
		return q.SetAttrSelection([]string{"Name", "Prefix", "Size", "Updated", "Generation", "MD5"})
	}
	return nil
}

func generation(as func(any) bool) string {
	var a gcs.ObjectAttrs
	if !as(&a) || a.Generation == 0 {
		return ""
	}
	return strconv.FormatInt(a.Generation, 10)
}

func (google) listed(o *blob.ListObject) string { return generation(o.As) }
func (google) stated(a *blob.Attributes) string { return generation(a.As) }

func (google) pin(as func(any) bool, identity string) error {
	g, err := strconv.ParseInt(identity, 10, 64)
	if err != nil {
		return nil // not one of ours: read compares
	}
	var h **gcs.ObjectHandle
	if as(&h) {
		*h = (*h).If(gcs.Conditions{GenerationMatch: g})
	}
	return nil
}

func (google) read(r *blob.Reader) (string, bool) {
	var sdk *gcs.Reader
	if !r.As(&sdk) || sdk.Attrs.Generation == 0 {
		return "", false
	}
	return strconv.FormatInt(sdk.Attrs.Generation, 10), true
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
