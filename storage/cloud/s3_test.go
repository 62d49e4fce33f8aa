package cloud

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/storetest"
	"github.com/bloomjoin/bloomjoin/internal/storetest/slowproxy"
	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/storagetest"
)

// An S3 service keeps the promises of package storage.
func TestCheckS3(t *testing.T) {
	g := storetest.S3(t)
	g.Setenv(t)
	s := made(Options{})
	defer s.Close()
	storagetest.TestStorage(t, s, g.Name("dir"))
}

// s3Store returns a Store for a gateway with one object of 5 MB, whose content it
// returns.
func s3Store(t *testing.T, o Options) (*storetest.Gateway, *store, []byte) {
	g := storetest.S3(t)
	g.Setenv(t)
	content := make([]byte, 5_000_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content) // it never fails
	g.Put(t, "log/a", content)
	s := made(o)
	t.Cleanup(func() { _ = s.Close() })
	return g, s, content
}

// readAll lists an object and reads it whole, a part of it ahead.
func readAll(t *testing.T, s *store, name string) ([]byte, error) {
	t.Helper()
	listed, err := inputs(t.Context(), s, name)
	if err != nil {
		return nil, err
	}
	r, err := s.Open(t.Context(), listed[0])
	if err != nil {
		return nil, err
	}
	defer r.Close()
	defer objects.Prefetch(r, []storage.Range{{Off: 100, Len: 2_000_000}, {Off: 3_000_000, Len: 500_000}})()
	return io.ReadAll(io.NewSectionReader(r, 0, r.Object().Size))
}

// Requests that fail and answers that break off are retried and cause no error, as long
// as some succeed.
func TestFaults(t *testing.T) {
	g, s, content := s3Store(t, Options{})
	for seed := range uint64(3) {
		g.Set(slowproxy.Faults{Fail: 0.3, Cut: 0.3, Seed: seed})
		if got, err := readAll(t, s, g.Name("log/")); err != nil || !bytes.Equal(got, content) {
			t.Errorf("seed %d: %d bytes, %v", seed, len(got), err)
		}
	}
	if st := s.Stats(); st.Retries == 0 || st.Throttles == 0 || st.Requests.Get == 0 || st.Requests.List < 3 {
		t.Errorf("%+v", st)
	}
}

// Errors say what went wrong and whether another run may help.
func TestFailures(t *testing.T) {
	g, s, _ := s3Store(t, Options{Retries: 1})
	expect := func(what string, err, kind error, not error, texts ...string) {
		t.Helper()
		if !errors.Is(err, kind) || not != nil && errors.Is(err, not) {
			t.Errorf("%s: %v, want %v", what, err, kind)
		}
		for _, text := range texts {
			if err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", what, err, text)
			}
		}
	}
	_, err := readAll(t, s, "s3://no-such-bucket/a/")
	expect("no bucket", err, fs.ErrNotExist, storage.ErrAgain, "s3://no-such-bucket/a/: no such bucket: 404 NoSuchBucket")
	_, err = readAll(t, s, g.Name("none"))
	expect("no object", err, fs.ErrNotExist, storage.ErrAgain, g.Name("none"))

	refuse := func(status int, code string, only func(*http.Request) bool) {
		g.Set(slowproxy.Faults{Only: only, Refuse: func(*http.Request) (int, string) { return status, code }})
	}
	gets := func(r *http.Request) bool { return r.Method == http.MethodGet && r.Header.Get("Range") != "" }
	heads := func(r *http.Request) bool { return r.Method == http.MethodHead || gets(r) }
	var known *failure
	for _, only := range []func(*http.Request) bool{nil, gets, heads} {
		refuse(403, "AccessDenied", only)
		_, err = readAll(t, s, g.Name("log/a"))
		if !errors.As(err, &known) || errors.Is(err, storage.ErrAgain) || !strings.Contains(err.Error(), "log/a: access denied: 403 AccessDenied") {
			t.Errorf("denied: %v", err)
		}
		refuse(400, "ExpiredToken", only)
		_, err = readAll(t, s, g.Name("log/a"))
		expect("expired", err, storage.ErrAgain, nil, "log/a: the credentials have expired: 400 ExpiredToken")
		refuse(503, "SlowDown", only)
		before := s.Stats()
		_, err = readAll(t, s, g.Name("log/a"))
		expect("throttled", err, storage.ErrAgain, nil, "log/a: too many requests: 503")
		if after := s.Stats(); after.Retries-before.Retries < 1 || after.Throttles-before.Throttles < 2 {
			t.Errorf("%+v, then %+v", before, after)
		}
	}
	if _, err = readAll(t, s, g.Name("log/a")); optionsOf(err)[0].Name != "Requests" {
		t.Errorf("options of %v", err)
	}

	for _, name := range []string{"no service", "no host", "no credentials"} { // the last one takes them away
		o := Options{Retries: -1}
		switch name {
		case "no service":
			o.Endpoint = "http://127.0.0.1:1"
		case "no host":
			o.Endpoint = "http://no-such-host.invalid"
		default:
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "")
		}
		s := made(o)
		begin := time.Now()
		_, err := readAll(t, s, g.Name("log/a"))
		if err == nil || errors.Is(err, storage.ErrAgain) != (name == "no service") || time.Since(begin) > 20*time.Second {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %v", name, err)
		_ = s.Close()
	}
}

// An object that is replaced or deleted while it is read is an error that names it.
func TestChanged(t *testing.T) {
	g, s, content := s3Store(t, Options{})
	for _, change := range []func(){func() { g.Put(t, "log/a", content[1:]) }, func() { g.Remove(t, "log/a") }} {
		g.Put(t, "log/a", content)
		listed, err := inputs(t.Context(), s, g.Name("log"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Open(t.Context(), listed[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.ReadAt(make([]byte, 100), 0); err != nil {
			t.Fatal(err)
		}
		change()
		release := objects.Prefetch(r, []storage.Range{{Off: 1000, Len: 1000}})
		for _, off := range []int64{0, 1000, 4_999_000} { // direct, announced, the end
			if _, err := r.ReadAt(make([]byte, 100), off); !errors.Is(err, storage.ErrChanged) || !strings.Contains(err.Error(), g.Name("log/a")) {
				t.Errorf("at %d: %v", off, err)
			}
		}
		release()
		_ = r.Close()
	}
}

// Keys that SDKs and URLs would spell otherwise are read as they are.
func TestKeys(t *testing.T) {
	g, s, _ := s3Store(t, Options{})
	for _, key := range []string{"log/ts=2024-01-01 00%3A00/a+b", "log/ü/?#[x]", "log/a&b=c/'", "log/__0x2f__"} {
		w, err := s.Create(t.Context(), g.Name(key), storage.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(key))
		if err := w.Commit(false); err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if got, err := readAll(t, s, g.Name(key)); err != nil || string(got) != key {
			t.Errorf("%s: %q, %v", key, got, err)
		}
	}
	objects, err := inputs(t.Context(), s, g.Name("log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if r, err := s.Stat(t.Context(), o.Name); err != nil || r.Identity != o.Identity {
			t.Errorf("%+v: %+v, %v", o, r, err)
		}
	}
}

// A small object costs one request, with its footer and what is announced.
func TestRequests(t *testing.T) {
	g, s, content := s3Store(t, Options{})
	g.Put(t, "log/b", content[:200_000])
	listed, err := inputs(t.Context(), s, g.Name("log"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{2, 2} { // the end and an announced range; the end and all before it
		before := s.Stats()
		r, err := s.Open(t.Context(), listed[i])
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 8)
		for _, off := range []int64{8, 1000} {
			if _, err := r.ReadAt(b, r.Object().Size-off); err != nil {
				t.Fatal(err)
			}
		}
		release := objects.Prefetch(r, []storage.Range{{Off: 4, Len: 100}, {Off: 5000, Len: 100}})
		for _, off := range []int64{4, 5000} {
			if _, err := r.ReadAt(b, off); err != nil || !bytes.Equal(b, content[off:off+8]) {
				t.Errorf("%v", err)
			}
		}
		release()
		_ = r.Close()
		if n := total(s.Stats().Requests) - total(before.Requests); n != want {
			t.Errorf("%s: %d requests, want %d", listed[i].Name, n, want)
		}
	}
}
