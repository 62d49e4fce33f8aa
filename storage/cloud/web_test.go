package cloud

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// serve starts a web server with one file of 1 MB, /a/b%20c?x=1, whose header is set
// by head.
func serve(t *testing.T, head func(http.Header)) (url string, content []byte, requests *atomic.Int64) {
	content = bytes.Repeat([]byte("0123456789"), 100_000)
	requests = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		switch r.URL.Path {
		case "/a/b c":
			head(w.Header())
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		case "/empty":
			w.Header().Set("ETag", `"e"`)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(nil))
		case "/whole": // no ranges
			w.Header().Set("ETag", `"w"`)
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write(content)
		case "/small":
			w.Header().Set("ETag", `"s"`)
			_, _ = w.Write(content[:100])
		case "/chunked":
			w.Header().Set("ETag", `"c"`)
			for range 10 {
				_, _ = w.Write(content[:1000])
				w.(http.Flusher).Flush()
			}
		case "/expired":
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>`)
		case "/moved":
			http.Redirect(w, r, "/a/b%20c?x=1", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, content, requests
}

// Files are read over HTTP, pinned to an ETag or a time.
func TestWeb(t *testing.T) {
	for validator, values := range map[string][2]string{
		"ETag":          {`"v1"`, `"v2"`},
		"Last-Modified": {"Mon, 02 Jan 2006 15:04:05 GMT", "Mon, 02 Jan 2006 15:04:06 GMT"},
		"Etag":          {`W/"v1"`, `W/"v2"`}, // weak
	} {
		var value atomic.Value
		value.Store(values[0])
		url, content, _ := serve(t, func(h http.Header) { h.Set(validator, value.Load().(string)) })
		s := made(Options{Retries: -1})
		defer s.Close()
		for _, path := range []string{"/a/b%20c?x=1", "/moved"} {
			listed, err := inputs(t.Context(), s, url+path)
			if err != nil {
				t.Fatal(err)
			}
			if o := listed[0]; len(listed) != 1 || o.Name != url+path || o.Size != 1_000_000 || o.Identity != values[0] || o.Type != 0 {
				t.Errorf("%+v", o)
			}
			if rel := listed[0].Rel; path != "/moved" && rel != "b%20c" {
				t.Errorf("Rel %q", rel)
			}
			r, err := s.Open(t.Context(), listed[0])
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			release := objects.Prefetch(r, []storage.Range{{Off: 300_000, Len: 200_000}})
			all, err := io.ReadAll(io.NewSectionReader(r, 0, r.Object().Size))
			if err != nil || !bytes.Equal(all, content) {
				t.Errorf("%s %s: %d bytes, %v", validator, path, len(all), err)
			}
			release()
			if path == "/moved" {
				value.Store(values[1])
				if _, err := r.ReadAt(make([]byte, 10), 0); !errors.Is(err, storage.ErrChanged) {
					t.Errorf("%s: after a change: %v", validator, err)
				}
			}
		}
	}
}

// What cannot be read over HTTP is refused with a reason.
func TestWebErrors(t *testing.T) {
	url, _, _ := serve(t, func(http.Header) {})
	s := made(Options{Retries: -1})
	defer s.Close()
	read := func(path string) error {
		o, err := s.Stat(t.Context(), url+path)
		if err != nil {
			return err
		}
		r, err := s.Open(t.Context(), o)
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.Copy(io.Discard, io.NewSectionReader(r, 0, o.Size))
		return err
	}
	for path, want := range map[string]struct {
		kind error
		text string
	}{
		"/a/b%20c?x=1":             {text: "neither ETag nor Last-Modified"},
		"/nothing":                 {fs.ErrNotExist, "no such object"},
		"/whole":                   {text: "sends no ranges"},
		"/chunked":                 {text: "how long"},
		"/expired?X-Amz-Date=2026": {storage.ErrAgain, "X-Amz-Date=REDACTED: the credentials have expired: 403 AccessDenied Request has expired"},
		"/small":                   {},
		"/empty":                   {},
	} {
		err := read(path)
		if want.text == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want.text) || want.kind != nil && !errors.Is(err, want.kind) {
			t.Errorf("%s: %v, want %s", path, err, want.text)
		}
	}
	if _, err := s.Create(t.Context(), url+"/a", storage.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "writing over HTTP") {
		t.Errorf("Create: %v", err)
	}
	if err := s.Delete(t.Context(), storage.Object{Name: url + "/a"}); err == nil || !strings.Contains(err.Error(), "writing over HTTP") {
		t.Errorf("Delete: %v", err)
	}
}

// A server that does not keep to the protocol causes errors, never other bytes.
func TestWebLies(t *testing.T) {
	content, other := make([]byte, 3<<20), make([]byte, 3<<20)
	rand.NewChaCha8([32]byte{1}).Read(content)
	rand.NewChaCha8([32]byte{2}).Read(other)
	// Each answers the n-th request, from 0, for the bytes b. The header that
	// it has already written is right.
	for what, c := range map[string]struct {
		answer func(w http.ResponseWriter, n int64, off, end int)
		want   string // of an error; empty: it can be read
	}{
		"right": {func(w http.ResponseWriter, _ int64, off, end int) {
			_, _ = w.Write(content[off:end])
		}, ""},
		"long": {func(w http.ResponseWriter, _ int64, off, _ int) {
			_, _ = w.Write(content[off:])
		}, ""},
		"half": {func(w http.ResponseWriter, _ int64, off, end int) {
			end -= (end - off) / 2
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", off, end-1, len(content)))
			_, _ = w.Write(content[off:end])
		}, ""},
		"cut": {func(w http.ResponseWriter, n int64, off, end int) {
			w.Header().Set("Content-Length", strconv.Itoa(end-off))
			_, _ = w.Write(content[off:min(end, off+100_000)])
		}, ""},
		"nothing": {func(w http.ResponseWriter, n int64, off, end int) {
			if n == 0 {
				_, _ = w.Write(content[off:end])
			}
		}, "asked for the bytes from"},
		"another range": {func(w http.ResponseWriter, _ int64, off, end int) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", off+1, end, len(content)))
			_, _ = w.Write(content[off:end])
		}, "asked for the bytes from"},
		"another length": {func(w http.ResponseWriter, n int64, off, end int) {
			if n > 0 {
				w.Header().Set("Content-Length", strconv.Itoa((end-off)/2))
			}
			_, _ = w.Write(other[off:end])
		}, "asked for the bytes from"},
		"another version": {func(w http.ResponseWriter, n int64, off, end int) {
			if n > 0 {
				w.Header().Set("ETag", `"2"`)
			}
			_, _ = w.Write(other[off:end])
		}, "changed while it was read"},
		"another size": {func(w http.ResponseWriter, n int64, off, end int) {
			if n > 0 {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", off, end-1, len(content)+1))
			}
			_, _ = w.Write(other[off:end])
		}, "changed while it was read"},
		"no version": {func(w http.ResponseWriter, n int64, off, end int) {
			if n > 0 {
				w.Header().Del("ETag")
			}
			_, _ = w.Write(other[off:end])
		}, "changed while it was read"},
		"compressed": {func(w http.ResponseWriter, n int64, off, end int) {
			if n > 0 {
				w.Header().Set("Content-Encoding", "gzip")
			}
			_, _ = w.Write(other[off:end])
			w.(http.Flusher).Flush()
		}, "compresses what it sends"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var off, last int
				_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &off, &last)
				end := min(last+1, len(content))
				w.Header().Set("ETag", `"1"`)
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", off, end-1, len(content)))
				answer := &partial{ResponseWriter: w}
				c.answer(answer, requests.Add(1)-1, off, end)
			}))
			defer server.Close()
			s := made(Options{Retries: 2})
			defer s.Close()
			read := func() error {
				listed, err := inputs(t.Context(), s, server.URL+"/a.parquet?X-Amz-Signature=SECRET")
				if err != nil {
					return err
				}
				r, err := s.Open(t.Context(), listed[0])
				if err != nil {
					return err
				}
				defer r.Close()
				defer objects.Prefetch(r, []storage.Range{{Off: 10, Len: 1 << 20}, {Off: 2 << 20, Len: 100}})()
				var errs []error
				for _, g := range []storage.Range{{Off: 10, Len: 1000}, {Off: 1010, Len: 1<<20 - 1000}, {Off: 2 << 20, Len: 100}, {Off: 3<<20 - 100, Len: 100}, {Off: 1_500_000, Len: 300_000}} {
					b := make([]byte, g.Len)
					_, err := r.ReadAt(b, g.Off)
					if err == nil && (c.want != "" || !bytes.Equal(b, content[g.Off:g.Off+g.Len])) {
						t.Errorf("read %+v without an error", g)
					}
					errs = append(errs, err)
				}
				return errors.Join(errs...)
			}
			err := read()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET")) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// partial writes status 206.
type partial struct{ http.ResponseWriter }

func (p *partial) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusPartialContent)
	return p.ResponseWriter.Write(b)
}

func (p *partial) Flush() { p.ResponseWriter.(http.Flusher).Flush() }
