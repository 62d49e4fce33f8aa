package storage_test

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/listing"
	"github.com/bloomjoin/bloomjoin/storage"
)

// TestHTTP: the example's storage reads ranges of one version, and reports an object
// that is missing or has changed.
func TestHTTP(t *testing.T) {
	var etag atomic.Value
	etag.Store(`"v1"`)
	content := strings.Repeat("0123456789", 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", etag.Load().(string))
		http.ServeContent(w, r, "a", time.Time{}, strings.NewReader(content))
	}))
	defer server.Close()
	s := new(web)
	if one, _, err := listing.List(t.Context(), s, server.URL+"/a"); err != nil || len(one) != 1 || one[0].Rel != "a" {
		t.Errorf("a source that cannot list: %v, %v", one, err)
	}
	if _, _, err := listing.List(t.Context(), s, server.URL+"/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such object: %v", err)
	}
	r, err := s.Open(t.Context(), storage.Object{Name: server.URL + "/a"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(io.NewSectionReader(r, 0, r.Object().Size))
	if err != nil || string(b) != content {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	p := make([]byte, 20)
	if n, err := r.ReadAt(p, 9_990); n != 10 || !errors.Is(err, io.EOF) || string(p[:10]) != "0123456789" {
		t.Errorf("at the end: %d bytes, %v", n, err)
	}
	etag.Store(`"v2"`)
	if _, err := r.ReadAt(p, 0); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("after a change: %v", err)
	}
}
