package cloud

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/wording"
	"github.com/bloomjoin/bloomjoin/storage"
)

// fakeS3 answers all requests with handle, and remembers them.
func fakeS3(t *testing.T, handle http.HandlerFunc) (url string, last func() *http.Request) {
	var mu sync.Mutex
	var seen *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = r
		mu.Unlock()
		handle(w, r)
	}))
	t.Cleanup(server.Close)
	for _, e := range []string{"AWS_ACCESS_KEY_ID=AKIATEST", "AWS_SECRET_ACCESS_KEY=s", "AWS_REGION=", "AWS_DEFAULT_REGION=", "AWS_PROFILE=", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_EC2_METADATA_DISABLED=true"} {
		k, v, _ := strings.Cut(e, "=")
		t.Setenv(k, v)
	}
	return server.URL, func() *http.Request {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// Options reach the requests to S3.
func TestOptions(t *testing.T) {
	url, last := fakeS3(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v"`)
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		w.Header().Set("Content-Length", "5")
	})
	for _, c := range []struct {
		o     Options
		check func(r *http.Request) bool
	}{
		{Options{}, func(r *http.Request) bool { return strings.Contains(r.Header.Get("Authorization"), "/us-east-1/s3/") }},
		{Options{Region: "eu-west-1"}, func(r *http.Request) bool { return strings.Contains(r.Header.Get("Authorization"), "/eu-west-1/s3/") }},
		{Options{Anonymous: true}, func(r *http.Request) bool { return r.Header.Get("Authorization") == "" }},
		{Options{RequesterPays: true}, func(r *http.Request) bool {
			return r.Header.Get("X-Amz-Request-Payer") == "requester" && strings.Contains(r.Header.Get("Authorization"), "x-amz-request-payer")
		}},
	} {
		c.o.Endpoint = url
		s := made(c.o)
		o, err := s.Stat(t.Context(), "s3://bucket/a/b c")
		if err != nil || o.Size != 5 || o.Identity != "v" {
			t.Errorf("%+v: %+v, %v", c.o, o, err)
		}
		if r := last(); r.URL.Path != "/bucket/a/b c" || !c.check(r) {
			t.Errorf("%+v: %s, header %v", c.o, r.URL, r.Header)
		}
		if n := s.Stats().Requests; n != (Requests{Head: 1}) {
			t.Errorf("%+v", n)
		}
		_ = s.Close()
	}
	t.Setenv("AWS_ENDPOINT_URL", url)
	s := made(Options{})
	defer s.Close()
	if _, err := s.Stat(t.Context(), "s3a://bucket/x"); err != nil || last().URL.Path != "/bucket/x" {
		t.Errorf("%s, %v", last().URL, err)
	}
}

// The error of a bucket in another region names it.
func TestRegion(t *testing.T) {
	url, _ := fakeS3(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Amz-Bucket-Region", "eu-central-1")
		w.WriteHeader(http.StatusMovedPermanently)
	})
	s := made(Options{Endpoint: url})
	defer s.Close()
	for _, name := range []string{"s3://bucket/a", "s3://bucket/a/"} {
		_, err := s.Stat(t.Context(), name)
		if err == nil || errors.Is(err, storage.ErrAgain) || !strings.Contains(err.Error(), "another region") {
			t.Fatalf("%v", err)
		}
		if o := optionsOf(err); len(o) != 1 || o[0].Name != "Region" || o[0].Value != "eu-central-1" {
			t.Errorf("%v: options %v", err, o)
		}
	}
}

// optionsOf returns the options that an error names, in the order of its text.
func optionsOf(err error) (named []wording.Option) {
	faults.Words{Option: func(o wording.Option) string {
		named = append(named, o)
		return o.String()
	}}.Text(err)
	return named
}
