package cloud

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	azblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// azureSink writes block blobs.
type azureSink struct{ client *container.Client }

// only is the condition that the blob has the identity.
func only(identity string) *azblob.AccessConditions {
	is := &azblob.ModifiedAccessConditions{}
	switch identity {
	case anyVersion:
	case "":
		is.IfNoneMatch = new(azcore.ETagAny)
	default:
		is.IfMatch = new(azcore.ETag(`"` + identity + `"`))
	}
	return &azblob.AccessConditions{ModifiedAccessConditions: is}
}

func azureMark(mark string) map[string]*string { return map[string]*string{markKey: &mark} }

func azureHeaders() *azblob.HTTPHeaders {
	return &azblob.HTTPHeaders{BlobContentType: new(contentType)}
}

func (k azureSink) put(ctx context.Context, key string, body []byte, mark, over string) (identity string, err error) {
	out, err := k.client.NewBlockBlobClient(key).Upload(ctx, streaming.NopCloser(bytes.NewReader(body)), &blockblob.UploadOptions{
		Metadata: azureMark(mark), HTTPHeaders: azureHeaders(), AccessConditions: only(over),
	})
	return etag(string(value(out.ETag))), err
}

func (k azureSink) begin(_ context.Context, key, mark string) (upload, error) {
	return &azureUpload{blob: k.client.NewBlockBlobClient(key), mark: mark}, nil
}

func (k azureSink) marked(ctx context.Context, key string) (mark, identity string, err error) {
	p, err := k.client.NewBlobClient(key).GetProperties(ctx, nil)
	if err != nil {
		return "", "", err
	}
	for name, value := range p.Metadata { // whose case is lost on the way
		if strings.EqualFold(name, markKey) && value != nil {
			mark = *value
		}
	}
	return mark, etag(string(value(p.ETag))), nil
}

func (k azureSink) remove(ctx context.Context, key, identity string) error {
	_, err := k.client.NewBlobClient(key).Delete(ctx, &azblob.DeleteOptions{AccessConditions: only(cmp.Or(identity, anyVersion))})
	return err
}

// azureUpload is a list of blocks. Blocks that are in no list are dropped by the
// service, when another writer commits the blob or a week later.
type azureUpload struct {
	blob *blockblob.Client
	mark string

	mu    sync.Mutex
	parts int
}

func (*azureUpload) serial() bool                { return false }
func (*azureUpload) abort(context.Context) error { return nil }
func (*azureUpload) release()                    {}

// block returns the name of a block, which no other writer uses. All names of a
// blob must have the same length.
func (u *azureUpload) block(n int) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s-%08d", u.mark, n))
}

func (u *azureUpload) part(ctx context.Context, n int, body []byte) error {
	u.mu.Lock()
	u.parts = max(u.parts, n+1)
	u.mu.Unlock()
	_, err := u.blob.StageBlock(ctx, u.block(n), streaming.NopCloser(bytes.NewReader(body)), nil)
	return err
}

func (u *azureUpload) complete(ctx context.Context, over string) (identity string, err error) {
	var blocks []string
	for n := range u.parts {
		blocks = append(blocks, u.block(n))
	}
	out, err := u.blob.CommitBlockList(ctx, blocks, &blockblob.CommitBlockListOptions{
		Metadata: azureMark(u.mark), HTTPHeaders: azureHeaders(), AccessConditions: only(over),
	})
	return etag(string(value(out.ETag))), err
}
