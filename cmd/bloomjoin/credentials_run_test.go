package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/storetest"
	"github.com/bloomjoin/bloomjoin/storage/cloud"
)

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
	if said, code := command("join", "--ids", g.Name("airports-tx.csv"), "--on", "origin=iata", "-o", g.Name("rows.parquet"), g.Name("logs/")); code != session.ExitDone || asked != 1 {
		t.Errorf("exit code %d, asked %d times: %s", code, asked, said)
	}
	if said, code := command("inspect", "s3://other/a.parquet"); code != session.ExitFailed || !strings.Contains(said, "s3://other: no credentials: "+server.URL+": 404 Not Found: no such bucket") {
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
