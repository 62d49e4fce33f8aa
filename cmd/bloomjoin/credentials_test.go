package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/storetest"
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
		exit         int
	}{
		{200, `{"access_key_id": "a", "secret_access_key": "b"}`, "s3://x", cloud.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, "", 0},
		{200, `{"access_key_id": "a", "secret_access_key": "b", "session_token": "c", "expires_at": "2030-01-02T03:04:05+01:00", "more": 1}`, "s3://x",
			cloud.Credentials{AccessKeyID: "a", SecretAccessKey: "b", SessionToken: "c", Expires: time.Date(2030, 1, 2, 2, 4, 5, 0, time.UTC)}, "", 0},
		{200, `{"token": "t", "expires_at": null}`, "gs://x", cloud.Credentials{Token: "t"}, "", 0},
		{200, `{"token": "t"}`, "abfss://c@a.dfs.core.windows.net", cloud.Credentials{Token: "t"}, "", 0},
		{200, `{"token": "t"}`, "s3://x", cloud.Credentials{}, "the answer for s3://x has no access_key_id", exitFailed},
		{200, `{"access_key_id": "a"}`, "s3://x", cloud.Credentials{}, "has no secret_access_key", exitFailed},
		{200, `{}`, "gs://x", cloud.Credentials{}, "has no token", exitFailed},
		{200, `token`, "gs://x", cloud.Credentials{}, "another form", exitFailed},
		{200, `{"token": "t", "expires_at": "tomorrow"}`, "gs://x", cloud.Credentials{}, "another form", exitFailed},
		{200, `{"token": "` + strings.Repeat("x", mostCredentials) + `"}`, "gs://x", cloud.Credentials{}, "at most 64 KiB", exitFailed},
		{403, "not\n yours\xff", "gs://x", cloud.Credentials{}, "403 Forbidden: not yours", exitFailed},
		{302, "", "gs://x", cloud.Credentials{}, "302 Found", exitFailed},
		{500, strings.Repeat("long ", 1000), "gs://x", cloud.Credentials{}, "500 Internal Server Error: long long", exitTryAgain},
		{503, "", "gs://x", cloud.Credentials{}, "503 Service Unavailable", exitTryAgain},
	} {
		status, body = c.status, c.body
		creds, err := askCredentials(t, server.URL+"/path?a=hidden%20one", c.bucket)
		if c.text == "" {
			if err != nil || !creds.Expires.Equal(c.want.Expires) || creds.AccessKeyID != c.want.AccessKeyID || creds.SecretAccessKey != c.want.SecretAccessKey ||
				creds.SessionToken != c.want.SessionToken || creds.Token != c.want.Token {
				t.Errorf("%s: %v", c.body, err)
			}
		} else if err == nil || !strings.HasPrefix(err.Error(), server.URL+"/path: ") || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "hidden") ||
			len(err.Error()) > 1000 || exitCode(t.Context(), err) != c.exit {
			t.Errorf("%d %.50s: %v, want %q", c.status, c.body, err, c.text)
		}
		if got.URL.Path != "/path" || got.URL.Query().Get("url") != c.bucket || got.URL.Query().Get("a") != "hidden one" || got.Header.Get("Authorization") != "Bearer secret-token" {
			t.Errorf("asked %s with %q", got.URL, got.Header)
		}
	}
	server.Close()
	if _, err := askCredentials(t, server.URL, "gs://x"); err == nil || exitCode(t.Context(), err) != exitTryAgain || strings.Contains(err.Error(), "url=") {
		t.Errorf("%v, want one that may pass", err)
	}
}

// A run takes the credentials of its buckets from --store-option credentials-url, and not
// from the environment.
func TestCredentialsOfARun(t *testing.T) {
	g := storetest.S3(t)
	g.Setenv(t)
	bucketAt(t, "s3://"+g.Bucket)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAWRONG")
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; r.URL.Query().Get("url") != "s3://"+g.Bucket {
			http.Error(w, "no such bucket", http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"access_key_id": storetest.Access, "secret_access_key": storetest.Secret}) // the client reports it
	}))
	t.Cleanup(server.Close)
	command := func(args ...string) (string, int) {
		var out, said bytes.Buffer
		code := run(append(args, "--store-option", "credentials-url="+server.URL), strings.NewReader(""), &out, &said)
		return said.String(), code
	}
	if said, code := command("join", "--ids", g.Name("airports-tx.csv"), "--on", "origin=iata", "-o", g.Name("rows.parquet"), g.Name("logs/")); code != exitDone || asked != 1 {
		t.Errorf("exit code %d, asked %d times: %s", code, asked, said)
	}
	if said, code := command("inspect", "s3://other/a.parquet"); code != exitFailed || !strings.Contains(said, "s3://other: no credentials: "+server.URL+": 404 Not Found: no such bucket") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// Credentials are in no text.
func TestCredentialsAreNotShown(t *testing.T) {
	c := cloud.Credentials{AccessKeyID: "AKIA", SecretAccessKey: "hidden", SessionToken: "hidden", Token: "hidden"}
	if text := fmt.Sprintf("%v %+v %#v %s", c, c, c, c); strings.Contains(text, "hidden") || strings.Contains(text, "AKIA") {
		t.Error(text)
	}
}
