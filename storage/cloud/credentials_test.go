package cloud

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/storage"
)

// Each cloud gets the credentials of Options.Credentials, instead of those of the
// environment, and is asked for once.
func TestCredentials(t *testing.T) {
	url, last := fakeS3(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v"`)
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		if strings.Contains(r.URL.Path, "/b/") { // Google
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"name":"a","size":"5","generation":"7","updated":"2006-01-02T15:04:05Z"}`)) // the client reports it
			return
		}
		w.Header().Set("Content-Length", "5")
	})
	host := strings.TrimPrefix(url, "http://")
	for k, v := range map[string]string{
		"STORAGE_EMULATOR_HOST": host, "AZURE_STORAGE_ACCOUNT": "account", "AZURE_STORAGE_IS_LOCAL_EMULATOR": "true", "AZURE_STORAGE_DOMAIN": host,
		"AZURE_STORAGE_PROTOCOL": "http", "AZURE_STORAGE_KEY": "a2V5", "AZURE_STORAGE_SAS_TOKEN": "sig=x",
	} {
		t.Setenv(k, v)
	}
	for bucket, want := range map[string]string{"s3://one": "Credential=AKIAOURS/", "gs://two": "Bearer ours", "azblob://three": "Bearer ours"} {
		asked := 0
		s := made(Options{Endpoint: url, Credentials: func(_ context.Context, of string) (Credentials, error) {
			if asked++; of != bucket {
				t.Errorf("asked for %s, want %s", of, bucket)
			}
			return Credentials{AccessKeyID: "AKIAOURS", SecretAccessKey: "s", SessionToken: "session", Token: "ours"}, nil
		}})
		for range 3 {
			if _, err := s.Stat(t.Context(), bucket+"/a"); err != nil {
				t.Fatalf("%s: %v", bucket, err)
			}
			if got := last().Header.Get("Authorization"); !strings.Contains(got, want) || strings.Contains(last().URL.RawQuery, "sig=") {
				t.Errorf("%s: %s, want %q", last().URL, got, want)
			}
			if got := last().Header.Get("X-Amz-Security-Token"); bucket == "s3://one" && got != "session" {
				t.Errorf("session token %q", got)
			}
		}
		if asked != 1 {
			t.Errorf("%s: asked %d times", bucket, asked)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// New credentials are asked for before the old ones expire. If that fails, the old ones are used
// until they do.
func TestCredentialsEnd(t *testing.T) {
	var asked int
	var valid time.Duration
	var failed error
	c := &credentials{bucket: "s3://b", whole: token, ask: func(context.Context, string) (Credentials, error) {
		asked++
		return Credentials{Token: "t", Expires: time.Now().Add(valid)}, failed
	}}
	get := func(wantAsked int, wantErr string) time.Time {
		t.Helper()
		got, renew, err := c.get(t.Context())
		if asked != wantAsked || err == nil && (wantErr != "" || got.Token != "t") || err != nil && (wantErr == "" || !strings.Contains(err.Error(), wantErr)) {
			t.Errorf("asked %d times, %q, %v; want %d times, %q", asked, got.Token, err, wantAsked, wantErr)
		}
		return renew
	}
	valid = time.Hour
	if left := time.Until(get(1, "")); left > time.Hour-maxMargin || left < time.Hour-2*maxMargin {
		t.Errorf("to be renewed in %v", left)
	}
	get(1, "")
	c.renew = time.Now().Add(-time.Second)
	get(2, "")
	c.renew, failed = time.Now().Add(-time.Second), errors.New("not now")
	get(3, "")
	c.last.Expires = time.Now().Add(-time.Second)
	get(4, "s3://b: no credentials: not now")
	failed, valid = nil, -time.Minute
	get(5, "they have expired at 2")
	if _, _, err := c.get(t.Context()); !errors.Is(err, storage.ErrAgain) {
		t.Errorf("%v, want one that may pass", err)
	}
	valid = 10 * time.Second
	if left := time.Until(get(7, "")); left > 8*time.Second || left < 7*time.Second {
		t.Errorf("to be renewed in %v", left)
	}
}

// A request fails at once if there are no credentials, or only incomplete ones.
func TestNoCredentials(t *testing.T) {
	url, _ := fakeS3(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(url, "http://"))
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	failed := errors.New("the vault is sealed")
	for _, name := range []string{"s3://b/a", "gs://b/a", "abfss://b@account.dfs.core.windows.net/a"} {
		var asked atomic.Int64
		bucket, _, _ := strings.Cut(name, "/a")
		s := made(Options{Endpoint: url, Credentials: func(context.Context, string) (Credentials, error) {
			asked.Add(1)
			return Credentials{}, failed
		}})
		if _, err := s.Stat(t.Context(), name); !errors.Is(err, failed) || errors.Is(err, storage.ErrAgain) || err.Error() != bucket+": no credentials: the vault is sealed" {
			t.Errorf("%s: %v", name, err)
		}
		if asked.Load() != 1 {
			t.Errorf("%s: asked %d times", name, asked.Load())
		}
		incomplete := made(Options{Endpoint: url, Credentials: func(context.Context, string) (Credentials, error) {
			return Credentials{AccessKeyID: "AKIA"}, nil
		}})
		if _, err := incomplete.Stat(t.Context(), name); err == nil || !strings.Contains(err.Error(), "no credentials: want a") {
			t.Errorf("%s: %v", name, err)
		}
		for _, s := range []*store{s, incomplete} {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
