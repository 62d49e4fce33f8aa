package cloud

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// amazon is S3.
type amazon struct {
	client *s3.Client
	bucket string
}

const defaultRegion = "us-east-1"

// awsConfig returns the settings of the environment and its configuration files.
func (b *bucket) awsConfig(ctx context.Context) (aws.Config, error) {
	o := b.s.opts
	load := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	if o.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(o.Profile))
	}
	if c := b.credentials(accessKey); c != nil {
		load = append(load, config.WithCredentialsProvider(c))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return cfg, b.failed(new(call), "", err)
	}
	if cfg.Region == "" {
		cfg.Region = defaultRegion
	}
	return cfg, nil
}

func (b *bucket) openS3(ctx context.Context) error {
	cfg, err := b.awsConfig(ctx)
	if err != nil {
		return err
	}
	o, client := b.s.opts, s3.NewFromConfig(cfg, func(c *s3.Options) {
		b.s.configure(c)
		b.grant.configure(c)
	})
	b.cloud = amazon{client, b.place.bucket}
	b.sink = &s3Sink{client, b.place.bucket, o.SSE, o.KMSKey, newRecords(value(client.Options().BaseEndpoint), b.place.bucket)}
	return nil
}

// configure sets what differs from the SDK's defaults.
func (s *store) configure(c *s3.Options) {
	c.HTTPClient = s.http
	c.Retryer = aws.NopRetryer{} // the Store counts and sends requests again itself
	c.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	c.DisableLogOutputChecksumValidationSkipped = true
	if s.opts.Endpoint != "" {
		c.BaseEndpoint = new(s.opts.Endpoint)
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

func (a amazon) page(ctx context.Context, prefix, delimiter, token string, most int) (entries []entry, next string, err error) {
	out, err := a.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
		Bucket: &a.bucket, Prefix: optional(prefix), Delimiter: optional(delimiter), ContinuationToken: optional(token), MaxKeys: new(int32(most)),
	})
	if err != nil {
		return nil, "", err
	}
	for _, o := range out.Contents {
		entries = append(entries, entry{value(o.Key), value(o.Size), value(o.LastModified), etag(value(o.ETag)), false})
	}
	for _, dir := range out.CommonPrefixes {
		entries = append(entries, entry{key: value(dir.Prefix), dir: true})
	}
	return entries, value(out.NextContinuationToken), nil
}

func (a amazon) head(ctx context.Context, key string) (entry, error) {
	out, err := a.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &a.bucket, Key: &key})
	if code, _ := a.code(err); code == "BadRequest" || code == "Forbidden" {
		// The answer has no text, so a GET finds out why.
		if r, reason := a.get(ctx, key, "", 0, 1); reason != nil {
			err = reason
		} else {
			_ = r.Close() // not read
		}
	}
	if err != nil {
		return entry{}, err
	}
	return entry{key, value(out.ContentLength), value(out.LastModified), etag(value(out.ETag)), false}, nil
}

func (a amazon) get(ctx context.Context, key, identity string, off, n int64) (answer, error) {
	in := &s3.GetObjectInput{Bucket: &a.bucket, Key: &key, Range: new(fmt.Sprintf("bytes=%d-%d", off, off+n-1))}
	if identity != "" {
		in.IfMatch = new(`"` + identity + `"`)
	}
	out, err := a.client.GetObject(ctx, in)
	if err != nil {
		return answer{}, err
	}
	return ranged(out.Body, value(out.ContentRange), lengthOf(out.ContentLength), etag(value(out.ETag)), off)
}

func (amazon) code(err error) (code, text string) {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode(), e.ErrorMessage()
	}
	return "", ""
}
