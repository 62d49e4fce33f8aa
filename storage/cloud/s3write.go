package cloud

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// contentType keeps services from guessing one.
const contentType = "application/octet-stream"

// s3Sink writes to S3.
type s3Sink struct {
	client      *s3.Client
	bucket      string
	sse, kmsKey string
	records     *records
}

// conditions returns the headers by which only the object with the identity is replaced.
func conditions(over string) (match, none *string) {
	switch over {
	case anyVersion:
		return nil, nil
	case "":
		return nil, new("*")
	}
	return new(`"` + over + `"`), nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (k *s3Sink) put(ctx context.Context, key string, body []byte, mark, over string) (identity string, err error) {
	match, none := conditions(over)
	out, err := k.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &k.bucket, Key: &key, Body: bytes.NewReader(body), ContentLength: new(int64(len(body))), ContentType: new(contentType),
		IfMatch: match, IfNoneMatch: none, Metadata: map[string]string{markKey: mark},
		ServerSideEncryption: types.ServerSideEncryption(k.sse), SSEKMSKeyId: optional(k.kmsKey),
	})
	if err != nil {
		return "", err
	}
	return etag(value(out.ETag)), nil
}

func (k *s3Sink) begin(ctx context.Context, key, mark string) (upload, error) {
	out, err := k.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &k.bucket, Key: &key, ContentType: new(contentType), Metadata: map[string]string{markKey: mark},
		ServerSideEncryption: types.ServerSideEncryption(k.sse), SSEKMSKeyId: optional(k.kmsKey),
	})
	if err != nil {
		return nil, err
	}
	return &s3Upload{sink: k, key: key, id: out.UploadId, record: k.records.add(key, value(out.UploadId))}, nil
}

func (k *s3Sink) marked(ctx context.Context, key string) (mark, identity string, err error) {
	out, err := k.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &k.bucket, Key: &key})
	if err != nil {
		return "", "", err
	}
	return out.Metadata[markKey], etag(value(out.ETag)), nil
}

func (k *s3Sink) remove(ctx context.Context, key, identity string) error {
	in := &s3.DeleteObjectInput{Bucket: &k.bucket, Key: &key}
	if identity != "" {
		in.IfMatch, _ = conditions(identity)
	}
	_, err := k.client.DeleteObject(ctx, in)
	return err
}

// abort drops an unfinished upload of a key.
func (k *s3Sink) abort(ctx context.Context, key, id string) error {
	_, err := k.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &k.bucket, Key: &key, UploadId: &id})
	return err
}

// s3Upload is a multipart upload.
type s3Upload struct {
	sink   *s3Sink
	key    string
	id     *string
	record string // name of its record; empty: none

	mu    sync.Mutex
	parts []types.CompletedPart
}

func (*s3Upload) serial() bool { return false }

func (u *s3Upload) part(ctx context.Context, n int, body []byte) error {
	number := new(int32(n + 1))
	out, err := u.sink.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &u.sink.bucket, Key: &u.key, UploadId: u.id, PartNumber: number, Body: bytes.NewReader(body), ContentLength: new(int64(len(body))),
	})
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.parts = append(u.parts, types.CompletedPart{
		PartNumber: number, ETag: out.ETag,
		ChecksumCRC32: out.ChecksumCRC32, ChecksumCRC32C: out.ChecksumCRC32C, ChecksumCRC64NVME: out.ChecksumCRC64NVME, ChecksumSHA1: out.ChecksumSHA1, ChecksumSHA256: out.ChecksumSHA256,
	})
	return nil
}

func (u *s3Upload) complete(ctx context.Context, over string) (identity string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	sortParts(u.parts)
	match, none := conditions(over)
	out, err := u.sink.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &u.sink.bucket, Key: &u.key, UploadId: u.id, IfMatch: match, IfNoneMatch: none,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: u.parts},
	})
	if err != nil {
		return "", err
	}
	return etag(value(out.ETag)), nil
}

func sortParts(parts []types.CompletedPart) {
	slices.SortFunc(parts, func(a, b types.CompletedPart) int { return int(*a.PartNumber - *b.PartNumber) })
}

func (u *s3Upload) abort(ctx context.Context) error { return u.sink.abort(ctx, u.key, *u.id) }
func (u *s3Upload) release()                        { u.sink.records.remove(u.record) }
