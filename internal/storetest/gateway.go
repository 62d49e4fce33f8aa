// Package storetest runs servers of object stores for tests, if environment
// variables name them:
//
//	BLOOMJOIN_S3GW      versitygw, for S3, with a proxy before it that fails as networks do
//	BLOOMJOIN_FAKEGCS   fake-gcs-server, for Google Cloud Storage
//	BLOOMJOIN_AZURITE   azurite-blob, for Azure Blob Storage
package storetest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/storetest/slowproxy"
)

// The credentials and the region of a [Gateway].
const (
	Access = "storetest"
	Secret = "storetest-secret"
	Region = "us-east-1"
)

// Gateway is an S3 server on this machine, reached through its proxy.
type Gateway struct {
	*slowproxy.Proxy
	URL    string // http://127.0.0.1:PORT, the endpoint
	Bucket string
	// Dir holds the bucket's objects as files, and what the server keeps about
	// unfinished uploads. Files put there by other means have no ETag.
	Dir string
}

// S3 starts a server with one empty bucket. Both end with the test, which is
// skipped where the server is not installed.
func S3(t testing.TB) *Gateway {
	t.Helper()
	program := os.Getenv("BLOOMJOIN_S3GW")
	if program == "" {
		t.Skip("BLOOMJOIN_S3GW names no versitygw (go install github.com/versity/versitygw/cmd/versitygw@v1.8.0)")
	}
	// The paths of sockets are short, so t.TempDir does not do.
	dir, err := os.MkdirTemp("", "s3-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	g := &Gateway{Bucket: "bucket", Dir: filepath.Join(dir, "data", "bucket")}
	socket := filepath.Join(dir, "socket")
	if err := os.Mkdir(filepath.Dir(g.Dir), 0o777); err != nil {
		t.Fatal(err)
	}
	env := []string{"ROOT_ACCESS_KEY_ID=" + Access, "ROOT_SECRET_ACCESS_KEY=" + Secret}
	serve(t, "unix", socket, env, program, "--port", socket, "--region", Region, "--quiet", "--keep-alive", "posix", filepath.Dir(g.Dir))
	if g.Proxy, err = slowproxy.New("unix:" + socket); err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := g.Server()
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		g.Close()
	})
	g.URL = "http://" + l.Addr().String()
	g.do(t, http.MethodPut, "", nil, nil)
	g.Reset()
	return g
}

// Env returns the environment in which programs find the server by themselves.
// HOME is replaced so that no files of the user's matter.
func (g *Gateway) Env(home string) []string {
	return []string{
		"AWS_ACCESS_KEY_ID=" + Access, "AWS_SECRET_ACCESS_KEY=" + Secret, "AWS_REGION=" + Region, "AWS_ENDPOINT_URL=" + g.URL,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		"HOME=" + home, "XDG_CACHE_HOME=" + filepath.Join(home, ".cache"),
	}
}

// Setenv sets [Gateway.Env] for the test, and restores it in the end.
func (g *Gateway) Setenv(t *testing.T) {
	t.Helper()
	for _, e := range g.Env(t.TempDir()) {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
}

// Name returns the URL of an object.
func (g *Gateway) Name(key string) string { return "s3://" + g.Bucket + "/" + key }

// Put writes an object without counting the request or meeting a fault.
func (g *Gateway) Put(t testing.TB, key string, b []byte) {
	t.Helper()
	g.do(t, http.MethodPut, key, nil, b)
}

// Get reads an object, like Put.
func (g *Gateway) Get(t testing.TB, key string) []byte {
	t.Helper()
	return g.do(t, http.MethodGet, key, nil, nil)
}

// All reads all objects. It leaves out those that are removed meanwhile, by a late request of a
// process that was killed.
func (g *Gateway) All(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, key := range g.Keys(t) {
		if b, status := g.send(t, http.MethodGet, key, nil, nil); status != http.StatusNotFound {
			all[key] = b
		}
	}
	return all
}

// Remove deletes an object, like Put.
func (g *Gateway) Remove(t testing.TB, key string) {
	t.Helper()
	g.do(t, http.MethodDelete, key, nil, nil)
}

// Keys returns the keys of all objects, in ascending order.
func (g *Gateway) Keys(t testing.TB) []string {
	t.Helper()
	return texts(g.do(t, http.MethodGet, "", url.Values{"list-type": {"2"}}, nil), "Key")
}

// Uploads returns the keys of the unfinished uploads.
func (g *Gateway) Uploads(t testing.TB) []string {
	t.Helper()
	return texts(g.do(t, http.MethodGet, "", url.Values{"uploads": {""}}, nil), "Key")
}

// texts returns what stands in the elements of that name.
func texts(xml []byte, element string) (all []string) {
	for _, part := range strings.Split(string(xml), "<"+element+">")[1:] {
		text, _, _ := strings.Cut(part, "</"+element+">")
		all = append(all, text)
	}
	return all
}

// do is send. The answer must not be a refusal.
func (g *Gateway) do(t testing.TB, method, key string, query url.Values, body []byte) []byte {
	t.Helper()
	b, status := g.send(t, method, key, query, body)
	if status/100 != 2 {
		t.Fatalf("%s %s: %d\n%s", method, key, status, b)
	}
	return b
}

// send sends a signed request to the server, past the proxy's faults, and returns
// the body of the answer.
func (g *Gateway) send(t testing.TB, method, key string, query url.Values, body []byte) (b []byte, status int) {
	t.Helper()
	u := &url.URL{Scheme: "http", Host: strings.TrimPrefix(g.URL, "http://"), Path: strings.TrimSuffix("/"+g.Bucket+"/"+key, "/"), RawQuery: query.Encode()}
	u.RawPath = strings.ReplaceAll(u.EscapedPath(), "=", "%3D") // signatures cover it so
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, u.String(), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	sign(req, body)
	resp, err := g.Direct(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err = io.ReadAll(resp.Body); err != nil {
		t.Fatalf("%s %s: %v", method, u, err)
	}
	return b, resp.StatusCode
}

// sign adds the signature of AWS, version 4.
func sign(req *http.Request, body []byte) {
	now := time.Now().UTC().Format("20060102T150405Z")
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Date", now)
	req.Header.Set("X-Amz-Content-Sha256", hash)
	const signed = "host;x-amz-content-sha256;x-amz-date"
	canonical := strings.Join([]string{
		req.Method, req.URL.EscapedPath(), req.URL.RawQuery,
		"host:" + req.URL.Host, "x-amz-content-sha256:" + hash, "x-amz-date:" + now, "", signed, hash,
	}, "\n")
	scope := now[:8] + "/" + Region + "/s3/aws4_request"
	sum = sha256.Sum256([]byte(canonical))
	key := []byte("AWS4" + Secret)
	for _, part := range append(strings.Split(scope, "/"), "AWS4-HMAC-SHA256\n"+now+"\n"+scope+"\n"+hex.EncodeToString(sum[:])) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	req.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%x", Access, scope, signed, key))
}
