package flags

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/cloud"
)

// askCredentials asks the server at an address for the credentials of a bucket, as
// --store-option credentials-url does.
func askCredentials(t *testing.T, address, bucket string) (cloud.Credentials, error) {
	t.Helper()
	var o cloud.Options
	if err := setCredentials(&o, address); err != nil {
		t.Fatal(err)
	}
	return o.Credentials(t.Context(), bucket)
}

func TestCredentialsURL(t *testing.T) {
	var status int
	var body string
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		if status >= 300 && status < 400 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client reports it
	}))
	t.Cleanup(server.Close)
	t.Setenv(tokenEnv, "secret-token")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	for _, c := range []struct {
		status       int
		body, bucket string
		want         cloud.Credentials
		text         string // of the error
		again        bool
	}{
		{200, `{"access_key_id": "a", "secret_access_key": "b"}`, "s3://x", cloud.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, "", false},
		{200, `{"access_key_id": "a", "secret_access_key": "b", "session_token": "c", "expires_at": "2030-01-02T03:04:05+01:00", "more": 1}`, "s3://x",
			cloud.Credentials{AccessKeyID: "a", SecretAccessKey: "b", SessionToken: "c", Expires: time.Date(2030, 1, 2, 2, 4, 5, 0, time.UTC)}, "", false},
		{200, `{"token": "t", "expires_at": null}`, "gs://x", cloud.Credentials{Token: "t"}, "", false},
		{200, `{"token": "t"}`, "abfss://c@a.dfs.core.windows.net", cloud.Credentials{Token: "t"}, "", false},
		{200, `{"token": "t"}`, "s3://x", cloud.Credentials{}, "the answer for s3://x has no access_key_id", false},
		{200, `{"access_key_id": "a"}`, "s3://x", cloud.Credentials{}, "has no secret_access_key", false},
		{200, `{}`, "gs://x", cloud.Credentials{}, "has no token", false},
		{200, `token`, "gs://x", cloud.Credentials{}, "another form", false},
		{200, `{"token": "t", "expires_at": "tomorrow"}`, "gs://x", cloud.Credentials{}, "another form", false},
		{200, `{"token": "` + strings.Repeat("x", maxCredentials) + `"}`, "gs://x", cloud.Credentials{}, "at most 64 KiB", false},
		{403, "not\n yours\xff", "gs://x", cloud.Credentials{}, "403 Forbidden: not yours", false},
		{302, "", "gs://x", cloud.Credentials{}, "302 Found", false},
		{500, strings.Repeat("long ", 1000), "gs://x", cloud.Credentials{}, "500 Internal Server Error: long long", true},
		{503, "", "gs://x", cloud.Credentials{}, "503 Service Unavailable", true},
	} {
		status, body = c.status, c.body
		creds, err := askCredentials(t, server.URL+"/path?a=hidden%20one", c.bucket)
		if c.text == "" {
			if err != nil || !creds.Expires.Equal(c.want.Expires) || creds.AccessKeyID != c.want.AccessKeyID || creds.SecretAccessKey != c.want.SecretAccessKey ||
				creds.SessionToken != c.want.SessionToken || creds.Token != c.want.Token {
				t.Errorf("%s: %v", c.body, err)
			}
		} else if err == nil || !strings.HasPrefix(err.Error(), server.URL+"/path: ") || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "hidden") ||
			len(err.Error()) > 1000 || errors.Is(err, storage.ErrAgain) != c.again {
			t.Errorf("%d %.50s: %v, want %q", c.status, c.body, err, c.text)
		}
		if got.URL.Path != "/path" || got.URL.Query().Get("url") != c.bucket || got.URL.Query().Get("a") != "hidden one" || got.Header.Get("Authorization") != "Bearer secret-token" {
			t.Errorf("asked %s with %q", got.URL, got.Header)
		}
	}
	server.Close()
	if _, err := askCredentials(t, server.URL, "gs://x"); err == nil || !errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "url=") {
		t.Errorf("%v, want one that may pass", err)
	}
}
