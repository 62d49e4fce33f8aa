package store

import (
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
type azure struct{}

func (b *bucket) openAzure(ctx context.Context) error {
	o := azureblob.NewDefaultServiceURLOptions()
	if b.place.account != "" {
		account, domain, _ := strings.Cut(b.place.account, ".")
		o.AccountName, o.StorageDomain = account, "blob."+domain
	}
	if o.AccountName == "" {
		return b.invalid("the address names no account: use abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY, or set AZURE_STORAGE_ACCOUNT")
	}
	if b.s.opts.Anonymous {
		o.SASToken = ""
	}
	service, err := azureblob.NewServiceURL(o)
	if err != nil {
		return err
	}
	client, err := b.azureClient(string(service), o.AccountName)
	if err != nil {
		return b.failed(new(call), "", err)
	}
	b.cloud, b.sink = azure{}, azureSink{client}
	b.Bucket, err = azureblob.OpenBucket(ctx, client, nil)
	return err
}

// azureClient finds credentials in the environment in the order of Azure's own tools.
func (b *bucket) azureClient(service, account string) (*container.Client, error) {
	o := &container.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: b.s.http,
		Retry:     policy.RetryOptions{MaxRetries: -1}, // the Store counts and sends requests again itself
	}}
	base, query, _ := strings.Cut(service, "?")
	address := strings.TrimRight(base, "/") + "/" + b.place.bucket
	if query != "" {
		address += "?" + query
	}
	connection := os.Getenv("AZURE_STORAGE_CONNECTION_STRING")
	if connection == "" {
		connection = os.Getenv("AZURE_STORAGEBLOB_CONNECTIONSTRING")
	}
	accountKey := os.Getenv("AZURE_STORAGE_KEY")
	switch {
	case b.s.opts.Anonymous || query != "":
		return container.NewClientWithNoCredential(address, o)
	case accountKey != "":
		cred, err := azblobs.NewSharedKeyCredential(account, accountKey)
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

func (azure) beforeList(func(any) bool) error { return nil }

func (azure) listed(o *blob.ListObject) string {
	var item container.BlobItem
	if !o.As(&item) || item.Properties == nil || item.Properties.ETag == nil {
		return ""
	}
	return etag(string(*item.Properties.ETag))
}

func (azure) stated(a *blob.Attributes) string { return etag(a.ETag) }

func (azure) pin(as func(any) bool, identity string) error {
	var o *azblobs.DownloadStreamOptions
	if as(&o) && identity != "" {
		match := azcore.ETag(`"` + identity + `"`)
		o.AccessConditions = &azblob.AccessConditions{ModifiedAccessConditions: &azblob.ModifiedAccessConditions{IfMatch: &match}}
	}
	return nil
}

func (azure) read(r *blob.Reader) (string, bool) {
	var out azblob.DownloadStreamResponse
	if !r.As(&out) || out.ETag == nil {
		return "", false
	}
	return etag(string(*out.ETag)), true
}

func (azure) code(err error) (code, text string) {
	var e *azcore.ResponseError
	if errors.As(err, &e) {
		return e.ErrorCode, ""
	}
	return "", ""
}
