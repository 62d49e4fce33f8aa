package flags

import (
	"reflect"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/storage/cloud"
)

// Settings of the store are checked before anything is opened.
func TestStoreOptions(t *testing.T) {
	for setting, want := range map[string]string{
		"regon=x":          "unknown setting regon (did you mean region?)",
		"colour=x":         "unknown setting colour: want one of region, endpoint,",
		"region":           "want NAME=VALUE, as region=eu-central-1",
		"region=":          "want a value, as region=eu-central-1",
		"anonymous=maybe":  "want true or false, as anonymous=true",
		"requests=0":       "want a whole number from 1 to 10000, as requests=64",
		"retries=-1":       "want a whole number from 0 to 10000, as retries=12",
		"endpoint=http://": "",

		"credentials-url=127.0.0.1:80":             "want a URL, as credentials-url=http://127.0.0.1:8080/",
		"credentials-url=http://user:pass@[::1]/":  "want a URL",
		"credentials-url=http://example.com/":      "want https, or http on this machine",
		"credentials-url=http://127.example.com/":  "want https, or http on this machine",
		"credentials-url=ftp://127.0.0.1/":         "want https, or http on this machine",
		"credentials-url=https://example.com/a?b=": "",
		"credentials-url=http://localhost:80":      "",
		"credentials-url=http://[::1]:80/":         "",
	} {
		if _, err := StoreOptions([]string{setting}, 0); want != "" && (err == nil || !strings.Contains(err.Error(), want)) || want == "" && err != nil {
			t.Errorf("%s: %v, want %q", setting, err, want)
		}
	}
	settings := []string{
		"region=r", "endpoint=http://e?a=b", "profile=p", "credentials-url=http://127.0.0.1:1/", "path-style=true", "requester-pays=1",
		"sse=aws:kms", "kms-key=k", "requests=7", "retries=0",
	}
	got, err := StoreOptions(settings, 7)
	if err != nil {
		t.Fatal(err)
	}
	want := cloud.Options{
		Region: "r", Endpoint: "http://e?a=b", Profile: "p", PathStyle: true, RequesterPays: true,
		SSE: "aws:kms", KMSKey: "k", Requests: 7, Retries: -1, Memory: 7,
	}
	if got.Credentials == nil {
		t.Error("credentials-url is not set")
	}
	got.Credentials = nil                                                      // functions cannot be compared
	if !reflect.DeepEqual(got, want) || len(settings) != len(storeFlags())-1 { // without anonymous
		t.Errorf("options %+v, want %+v", got, want)
	}
	both := []string{"anonymous=true", "credentials-url=http://127.0.0.1:1/"}
	if _, err := StoreOptions(both, 0); err == nil || !strings.Contains(err.Error(), "exclude each other") {
		t.Error(err)
	}
	if _, err := StoreOptions([]string{"region=a", "region=b"}, 0); err == nil || !strings.Contains(err.Error(), "set twice") {
		t.Error(err)
	}
}
