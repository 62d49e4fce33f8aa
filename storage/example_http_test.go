package storage_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/storage"
)

// web reads files over HTTP, from servers that support ranges and ETags.
type web struct{ http.Client }

// do sends a request and returns an error unless the status is want. The caller closes
// the body.
func (s *web) do(ctx context.Context, method, url string, header http.Header, want int) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	resp, err := s.Do(req)
	if err != nil || resp.StatusCode == want {
		return resp, err
	}
	resp.Body.Close()
	kind := map[int]error{http.StatusNotFound: fs.ErrNotExist, http.StatusPreconditionFailed: storage.ErrChanged}
	return nil, errors.Join(fmt.Errorf("%s %s: %s", method, url, resp.Status), kind[resp.StatusCode])
}

func (s *web) Stat(ctx context.Context, url string) (storage.Object, error) {
	resp, err := s.do(ctx, "HEAD", url, nil, http.StatusOK)
	if err != nil {
		return storage.Object{}, err
	}
	resp.Body.Close()
	return storage.Object{Name: url, Size: resp.ContentLength, Identity: resp.Header.Get("ETag")}, nil
}

// List cannot list, so objects are named one by one.
func (s *web) List(context.Context, string, func(storage.Object) error) error {
	return errors.ErrUnsupported
}

func (s *web) Open(ctx context.Context, o storage.Object) (_ storage.Reader, err error) {
	if o.Identity == "" {
		if o, err = s.Stat(ctx, o.Name); err != nil {
			return nil, err
		}
	}
	return &page{o, func(p []byte, off int64) (int, error) {
		end := min(off+int64(len(p)), o.Size)
		if off >= end {
			return 0, io.EOF
		}
		resp, err := s.do(ctx, "GET", o.Name, http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", off, end-1)}, "If-Match": {o.Identity}}, http.StatusPartialContent)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		n, err := io.ReadFull(resp.Body, p[:end-off])
		if err == nil && n < len(p) {
			err = io.EOF
		}
		return n, err
	}}, nil
}

type page struct {
	o    storage.Object
	read func(p []byte, off int64) (int, error)
}

func (r *page) Object() storage.Object                  { return r.o }
func (r *page) ReadAt(p []byte, off int64) (int, error) { return r.read(p, off) }
func (r *page) Close() error                            { return nil }

// A storage that reads over HTTP.
func Example_http() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "ids.csv", time.Time{}, strings.NewReader("user_id\n17\n42\n"))
	}))
	defer server.Close()
	ctx := context.Background()
	var s storage.Source = new(web)
	r, err := s.Open(ctx, storage.Object{Name: server.URL + "/ids.csv"})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	line := make([]byte, 2)
	if _, err := r.ReadAt(line, 8); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d bytes, %s at offset 8\n", r.Object().Size, line)
	// Output: 14 bytes, 17 at offset 8
}
