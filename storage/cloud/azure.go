package cloud

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	azblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// azure is Azure Blob Storage.
type azure struct{ *container.Client }

func (b *bucket) openAzure() error {
	connection := cmp.Or(os.Getenv("AZURE_STORAGE_CONNECTION_STRING"), os.Getenv("AZURE_STORAGEBLOB_CONNECTIONSTRING"))
	a := azureAccount(connection)
	if b.place.account != "" {
		account, domain, _ := strings.Cut(b.place.account, ".")
		a.name, a.domain = account, "blob."+domain
	}
	if a.name == "" {
		return b.invalid("the address names no account: use abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY, or set AZURE_STORAGE_ACCOUNT")
	}
	if b.s.opts.Anonymous || b.s.opts.Credentials != nil {
		a.query = ""
	}
	if a.protocol != "http" && a.protocol != "https" {
		return b.invalid("want http or https in AZURE_STORAGE_PROTOCOL, got " + a.protocol)
	}
	client, err := b.azureClient(a, connection)
	if err != nil {
		return b.failed(new(call), "", err)
	}
	b.cloud, b.sink = azure{client}, azureSink{client}
	return nil
}

// account is where a storage account is.
type account struct {
	name, domain, protocol string
	query                  string // a shared access signature; empty: none
	cdn, emulator          bool
}

// azureAccount returns what the environment, else a connection string, says of the account.
func azureAccount(connection string) account {
	set := func(name string) bool { v, _ := strconv.ParseBool(os.Getenv(name)); return v }
	a := account{
		os.Getenv("AZURE_STORAGE_ACCOUNT"), cmp.Or(os.Getenv("AZURE_STORAGE_DOMAIN"), "blob.core.windows.net"), os.Getenv("AZURE_STORAGE_PROTOCOL"),
		os.Getenv("AZURE_STORAGE_SAS_TOKEN"), set("AZURE_STORAGE_IS_CDN"), set("AZURE_STORAGE_IS_LOCAL_EMULATOR"),
	}
	for part := range strings.SplitSeq(connection, ";") {
		switch key, value, _ := strings.Cut(part, "="); key {
		case "AccountName":
			a.name = cmp.Or(a.name, value)
		case "DefaultEndpointsProtocol":
			a.protocol = cmp.Or(a.protocol, value)
		}
	}
	a.protocol = cmp.Or(a.protocol, "https")
	return a
}

// container returns the URL of a container.
func (a account) container(name string) string {
	host := a.name + "." + a.domain
	switch {
	case a.emulator || strings.HasPrefix(a.domain, "127.0.0.1") || strings.HasPrefix(a.domain, "localhost"):
		host = a.domain + "/" + a.name
	case a.cdn:
		host = a.domain
	}
	address := a.protocol + "://" + host + "/" + name
	if a.query != "" {
		address += "?" + a.query
	}
	return address
}

// azureClient finds credentials in the environment in the order of Azure's own tools,
// unless Options.Credentials has them.
func (b *bucket) azureClient(a account, connection string) (*container.Client, error) {
	o := &container.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: b.s.http,
		Retry:     policy.RetryOptions{MaxRetries: -1}, // the Store counts and sends requests again itself

		InsecureAllowCredentialWithHTTP: a.emulator,
	}}
	address := a.container(b.place.bucket)
	accountKey := os.Getenv("AZURE_STORAGE_KEY")
	if c := b.credentials(token); c != nil {
		return container.NewClient(address, c, o)
	}
	switch {
	case b.s.opts.Anonymous || a.query != "":
		return container.NewClientWithNoCredential(address, o)
	case accountKey != "":
		cred, err := container.NewSharedKeyCredential(a.name, accountKey)
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

func (a azure) page(ctx context.Context, prefix, delimiter, token string, most int) (entries []entry, next string, err error) {
	o := &container.ListBlobsHierarchyOptions{Prefix: &prefix, Marker: optional(token), MaxResults: new(int32(most))}
	out, err := a.NewListBlobsHierarchyPager(delimiter, o).NextPage(ctx)
	if err != nil {
		return nil, "", err
	}
	if out.Segment == nil {
		return nil, "", errors.New("the service lists nothing")
	}
	for _, dir := range out.Segment.BlobPrefixes {
		entries = append(entries, entry{key: value(dir.Name), dir: true})
	}
	for _, item := range out.Segment.BlobItems {
		e := entry{key: value(item.Name)}
		if p := item.Properties; p != nil {
			e.size, e.at, e.identity = value(p.ContentLength), value(p.LastModified), etag(string(value(p.ETag)))
			e.dir = value(p.ResourceType) == "directory" // of a hierarchical namespace
		}
		entries = append(entries, e)
	}
	return entries, value(out.NextMarker), nil
}

// value returns what a pointer leads to, the zero value if it is nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// lengthOf returns the length that an answer names, -1 if it names none.
func lengthOf(p *int64) int64 {
	if p == nil {
		return -1
	}
	return *p
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
	return ranged(out.Body, value(out.ContentRange), lengthOf(out.ContentLength), etag(string(value(out.ETag))), off)
}

func (azure) code(err error) (code, text string) {
	var e *azcore.ResponseError
	if errors.As(err, &e) {
		return e.ErrorCode, ""
	}
	return "", ""
}
