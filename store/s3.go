package store

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

// amazon is S3.
type amazon struct {
	client *s3.Client
}

const defaultRegion = "us-east-1"

func (b *bucket) openS3(ctx context.Context) error {
	o := b.s.opts
	var load []func(*config.LoadOptions) error
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	if o.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(o.Profile))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return b.failed(new(call), "", err)
	}
	if cfg.Region == "" {
		cfg.Region = defaultRegion
	}
	client := s3.NewFromConfig(cfg, func(c *s3.Options) { b.s.configure(c) })
	b.cloud = amazon{client}
	b.sink = &s3Sink{client, b.place.bucket, o.SSE, o.KMSKey, newRecords(aws.ToString(client.Options().BaseEndpoint), b.place.bucket)}
	b.Bucket, err = s3blob.OpenBucket(ctx, client, b.place.bucket, &s3blob.Options{RequestChecksumCalculation: client.Options().RequestChecksumCalculation})
	return err
}

// configure sets what differs from the SDK's ways.
func (s *Store) configure(c *s3.Options) {
	c.HTTPClient = s.http
	c.Retryer = aws.NopRetryer{} // the Store counts and sends requests again itself
	c.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	c.DisableLogOutputChecksumValidationSkipped = true
	if s.opts.Endpoint != "" {
		c.BaseEndpoint = aws.String(s.opts.Endpoint)
	}
	if c.BaseEndpoint != nil {
		c.UsePathStyle = true
		// Services that are not Amazon's may not know checksums after the body.
		c.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	}
	if s.opts.PathStyle {
		c.UsePathStyle = true
	}
	if s.opts.Anonymous {
		c.Credentials = aws.AnonymousCredentials{}
	}
	if s.opts.RequesterPays {
		c.APIOptions = append(c.APIOptions, smithyhttp.AddHeaderValue("x-amz-request-payer", "requester"))
	}
}

func (amazon) beforeList(func(any) bool) error { return nil }

func (amazon) listed(o *blob.ListObject) string {
	var t types.Object
	if !o.As(&t) {
		return ""
	}
	return etag(aws.ToString(t.ETag))
}

func (amazon) stated(a *blob.Attributes) string { return etag(a.ETag) }

func (amazon) pin(as func(any) bool, identity string) error {
	var in *s3.GetObjectInput
	if as(&in) && identity != "" {
		in.IfMatch = aws.String(`"` + identity + `"`)
	}
	return nil
}

func (amazon) read(r *blob.Reader) (string, bool) {
	var out s3.GetObjectOutput
	if !r.As(&out) || out.ETag == nil {
		return "", false
	}
	return etag(*out.ETag), true
}

func (amazon) code(err error) (code, text string) {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode(), e.ErrorMessage()
	}
	return "", ""
}
