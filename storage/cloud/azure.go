package cloud

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	azblobs "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	azblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"
)

// azure is Azure Blob Storage.
type azure struct{ *container.Client }

func (b *bucket) openAzure(ctx context.Context) error {
	o := azureblob.NewDefaultServiceURLOptions()
	if b.place.account != "" {
		account, domain, _ := strings.Cut(b.place.account, ".")
		o.AccountName, o.StorageDomain = account, "blob."+domain
	}
	if o.AccountName == "" {
		return b.invalid("the address names no account: use abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY, or set AZURE_STORAGE_ACCOUNT")
	}
	if b.s.opts.Anonymous || b.s.opts.Credentials != nil {
		o.SASToken = ""
	}
	service, err := azureblob.NewServiceURL(o)
	if err != nil {
		return err
	}
	client, err := b.azureClient(string(service), o)
	if err != nil {
		return b.failed(new(call), "", err)
	}
	b.cloud, b.sink = azure{client}, azureSink{client}
	b.Bucket, err = azureblob.OpenBucket(ctx, client, nil)
	return err
}

// azureClient finds credentials in the environment in the order of Azure's own tools,
// unless Options.Credentials has them.
func (b *bucket) azureClient(service string, of *azureblob.ServiceURLOptions) (*container.Client, error) {
	o := &container.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: b.s.http,
		Retry:     policy.RetryOptions{MaxRetries: -1}, // the Store counts and sends requests again itself

		InsecureAllowCredentialWithHTTP: of.IsLocalEmulator,
	}}
	base, query, _ := strings.Cut(service, "?")
	address := strings.TrimRight(base, "/") + "/" + b.place.bucket
	if query != "" {
		address += "?" + query
	}
	connection := cmp.Or(os.Getenv("AZURE_STORAGE_CONNECTION_STRING"), os.Getenv("AZURE_STORAGEBLOB_CONNECTIONSTRING"))
	accountKey := os.Getenv("AZURE_STORAGE_KEY")
	if c := b.credentials(token); c != nil {
		return container.NewClient(address, c, o)
	}
	switch {
	case b.s.opts.Anonymous || query != "":
		return container.NewClientWithNoCredential(address, o)
	case accountKey != "":
		cred, err := azblobs.NewSharedKeyCredential(of.AccountName, accountKey)
		if err != nil {
			return nil, err
		}
		return container.NewClientWithSharedKeyCredential(address, cred, o)
	case connection != "":
		return container.NewClientFromConnectionString(connection, b.place.bucket, o)
	}
	cred, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, err
	}
	return container.NewClient(address, cred, o)
}

func (azure) beforeList(prefix string, as func(any) bool) error {
	var o *container.ListBlobsHierarchyOptions
	if as(&o) {
		o.Prefix = &prefix
	}
	return nil
}

func (azure) listed(o *blob.ListObject) entry {
	var dir container.BlobPrefix
	if o.As(&dir) && dir.Name != nil {
		return entry{key: *dir.Name, dir: true}
	}
	var item container.BlobItem
	if !o.As(&item) || item.Name == nil {
		return entry{dir: true}
	}
	e := entry{key: *item.Name, size: o.Size, at: o.ModTime}
	if p := item.Properties; p != nil {
		e.dir = p.ResourceType != nil && *p.ResourceType == "directory" // of a hierarchical namespace
		if p.ETag != nil {
			e.identity = etag(string(*p.ETag))
		}
	}
	return e
}

func (a azure) head(ctx context.Context, key string) (entry, error) {
	p, err := a.NewBlobClient(key).GetProperties(ctx, nil)
	if err != nil {
		return entry{}, err
	}
	if p.ContentLength == nil || p.ETag == nil || p.LastModified == nil {
		return entry{}, errors.New("the service describes the object without length, ETag or time")
	}
	return entry{key, *p.ContentLength, *p.LastModified, etag(string(*p.ETag)), false}, nil
}

func (a azure) get(ctx context.Context, key, identity string, off, n int64) (answer, error) {
	o := &azblob.DownloadStreamOptions{Range: azblob.HTTPRange{Offset: off, Count: n}}
	if identity != "" {
		match := azcore.ETag(`"` + identity + `"`)
		o.AccessConditions = &azblob.AccessConditions{ModifiedAccessConditions: &azblob.ModifiedAccessConditions{IfMatch: &match}}
	}
	out, err := a.NewBlobClient(key).DownloadStream(ctx, o)
	if err != nil {
		return answer{}, err
	}
	var contentRange, now string
	var length int64 = -1
	if out.ContentRange != nil {
		contentRange = *out.ContentRange
	}
	if out.ContentLength != nil {
		length = *out.ContentLength
	}
	if out.ETag != nil {
		now = etag(string(*out.ETag))
	}
	return ranged(out.Body, contentRange, length, now, off)
}

func (azure) code(err error) (code, text string) {
	var e *azcore.ResponseError
	if errors.As(err, &e) {
		return e.ErrorCode, ""
	}
	return "", ""
}
