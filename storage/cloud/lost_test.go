package cloud

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// lossyS3 implements what writers use of S3: conditional writes, uploads in parts, and metadata.
// It loses responses: it carries a request out and breaks the connection.
type lossyS3 struct {
	url string

	mu      sync.Mutex
	objects map[string]lossyObject
	uploads map[string]lossyUpload
	serial  int

	lose   int    // number of coming requests to publish or delete an object whose response is lost
	lost   func() // is called after the first of them
	hide   int    // number of coming HEADs that find no object
	twice  bool   // requests that make an object visible arrive twice, and the second response is sent
	simple bool   // conditions are not implemented
	writes []string
}

type lossyObject struct {
	body []byte
	mark string
}

func (o lossyObject) etag() string { return fmt.Sprintf(`"%x"`, crc32.ChecksumIEEE(o.body)) }

type lossyUpload struct {
	key, mark string
	parts     map[int][]byte
}

func newLossyS3(t *testing.T) *lossyS3 {
	t.Helper()
	f := &lossyS3{objects: map[string]lossyObject{}, uploads: map[string]lossyUpload{}}
	f.url, _ = fakeS3(t, f.serve)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return f
}

// store returns a Store that finds the server.
func (f *lossyS3) store(t *testing.T) *store { return newStore(t, Options{Endpoint: f.url}) }

func (f *lossyS3) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	key, q := strings.TrimPrefix(r.URL.Path, "/bucket/"), r.URL.Query()
	f.mu.Lock()
	status, answer := f.answer(w.Header(), r, key, body)
	visible := r.Method == http.MethodPut && !q.Has("partNumber") || r.Method == http.MethodPost && q.Has("uploadId") || r.Method == http.MethodDelete && !q.Has("uploadId")
	lose := false
	if visible {
		f.writes = append(f.writes, fmt.Sprintf("%s %d", r.Method, status))
		if f.twice && status == http.StatusOK {
			status, answer = f.answer(w.Header(), r, key, body)
		}
		if lose = f.lose > 0; lose {
			f.lose--
		}
	}
	lost := f.lost
	if lose {
		f.lost = nil
	}
	f.mu.Unlock()
	if lose {
		if lost != nil {
			lost()
		}
		panic(http.ErrAbortHandler) // breaks the connection, without a word
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

// answer carries a request out.
func (f *lossyS3) answer(h http.Header, r *http.Request, key string, body []byte) (status int, answer []byte) {
	const mark = "X-Amz-Meta-" + markKey
	failed := func(status int, code string) (int, []byte) {
		return status, []byte("<Error><Code>" + code + "</Code><Message>said the fake</Message></Error>")
	}
	o, exists := f.objects[key]
	q := r.URL.Query()
	u, known := f.uploads[q.Get("uploadId")]
	condition, match := r.Header.Get("If-None-Match"), r.Header.Get("If-Match")
	switch {
	case condition != "" && condition != "*":
		return failed(http.StatusBadRequest, "InvalidArgument")
	case (condition != "" || match != "") && f.simple:
		return failed(http.StatusNotImplemented, "NotImplemented")
	case q.Has("uploadId") && !known:
		return failed(http.StatusNotFound, "NoSuchUpload")
	case match != "" && !exists:
		return failed(http.StatusNotFound, "NoSuchKey")
	case condition != "" && exists, match != "" && match != o.etag():
		return failed(http.StatusPreconditionFailed, "PreconditionFailed")
	}
	switch r.Method {
	case http.MethodHead:
		if f.hide > 0 {
			f.hide--
			exists = false
		}
		if !exists {
			return failed(http.StatusNotFound, "NoSuchKey")
		}
		h.Set(mark, o.mark)
		h.Set("ETag", o.etag())
		h.Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		h.Set("Content-Length", strconv.Itoa(len(o.body)))
		return http.StatusOK, nil
	case http.MethodDelete:
		if known {
			delete(f.uploads, q.Get("uploadId"))
		} else {
			delete(f.objects, key)
		}
		return http.StatusNoContent, nil
	case http.MethodPut:
		h.Set("ETag", lossyObject{body: body}.etag())
		if known {
			n, err := strconv.Atoi(q.Get("partNumber"))
			if err != nil {
				return failed(http.StatusBadRequest, "InvalidPart")
			}
			u.parts[n] = body
			return http.StatusOK, nil
		}
		f.objects[key] = lossyObject{body, r.Header.Get(mark)}
		return http.StatusOK, nil
	}
	if q.Has("uploads") {
		f.serial++
		id := fmt.Sprint("upload-", f.serial)
		f.uploads[id] = lossyUpload{key, r.Header.Get(mark), map[int][]byte{}}
		return http.StatusOK, []byte("<InitiateMultipartUploadResult><Key>" + key + "</Key><UploadId>" + id + "</UploadId></InitiateMultipartUploadResult>")
	}
	var in struct {
		Part []struct{ PartNumber int }
	}
	if err := xml.Unmarshal(body, &in); err != nil || !known {
		return failed(http.StatusBadRequest, "MalformedXML")
	}
	var whole []byte
	for _, p := range in.Part {
		whole = append(whole, u.parts[p.PartNumber]...)
	}
	f.objects[u.key] = lossyObject{whole, u.mark}
	delete(f.uploads, q.Get("uploadId"))
	return http.StatusOK, []byte("<CompleteMultipartUploadResult><Key>" + u.key + "</Key></CompleteMultipartUploadResult>")
}

// TestWriteLostResponse: a write that was carried out has succeeded, although its response is lost
// and the service refuses the next attempt; another process's object is never taken for it.
func TestWriteLostResponse(t *testing.T) {
	const key = "dir/a"
	rival := lossyObject{[]byte("of a rival"), "another mark"}
	content := noise(maxKept + 100)
	for _, c := range []struct {
		name     string
		before   bool // the rival's object is there
		set      func(f *lossyS3)
		put, all error // of an object in one request, and in parts, without replacing
		over     error // in parts, replacing
		kept     bool  // after an error, the object is the rival's
	}{
		{name: "nothing is lost", set: func(*lossyS3) {}},
		{name: "lost once", set: func(f *lossyS3) { f.lose = 1 }},
		{name: "lost twice", set: func(f *lossyS3) { f.lose = 2 }},
		{name: "sent twice on the way", set: func(f *lossyS3) { f.twice = true }},
		{name: "lost, and not visible at once", set: func(f *lossyS3) { f.lose, f.hide = 1, 1 }, all: storage.ErrAgain, over: storage.ErrAgain},
		{name: "lost, and removed", set: func(f *lossyS3) {
			f.lose, f.lost = 1, func() { f.set(key, nil) }
		}, all: storage.ErrAgain, over: storage.ErrAgain},
		{name: "lost, and replaced", kept: true, set: func(f *lossyS3) {
			f.lose, f.lost = 1, func() { f.set(key, &rival) }
		}, put: fs.ErrExist, all: storage.ErrAgain, over: storage.ErrAgain},
		{name: "after a rival", before: true, kept: true, set: func(*lossyS3) {}, put: fs.ErrExist, all: fs.ErrExist},
		{name: "lost, after a rival", before: true, kept: true, set: func(f *lossyS3) { f.lose = 1 }, put: fs.ErrExist, all: fs.ErrExist},
		{name: "without conditions", set: func(f *lossyS3) { f.simple = true }},
		{name: "without conditions, after a rival", before: true, kept: true, set: func(f *lossyS3) { f.simple = true }, put: fs.ErrExist, all: fs.ErrExist},
	} {
		for _, inParts := range []bool{false, true} {
			for _, replace := range []bool{false, true} {
				f := newLossyS3(t) // here: it sets the environment
				t.Run(fmt.Sprintf("%s/parts %v/replace %v", c.name, inParts, replace), func(t *testing.T) {
					t.Parallel()
					s := f.store(t)
					if c.before {
						f.set(key, &rival)
					}
					body, want := content[:100], c.put
					switch {
					case inParts && replace:
						body, want = content, c.over
					case inParts:
						body, want = content, c.all
					case replace:
						want = nil
					}
					w := create(t, t.Context(), s, "s3://bucket/"+key)
					if _, err := w.Write(body); err != nil {
						t.Fatal(err)
					}
					if inParts {
						if err := objects.Rest(w); err != nil {
							t.Fatal(err)
						}
					}
					c.set(f)
					err := w.Commit(replace)
					if !errors.Is(err, want) {
						t.Fatalf("Commit: %v, want %v, after %q", err, want, f.writes)
					}
					if err := w.Abort(); err != nil {
						t.Errorf("Abort: %v", err)
					}
					f.mu.Lock()
					defer f.mu.Unlock()
					o, exists := f.objects[key]
					switch {
					case err == nil && !bytes.Equal(o.body, body):
						t.Errorf("the object has %d other bytes, after %q", len(o.body), f.writes)
					case err == nil && len(f.objects) != 1:
						t.Errorf("%d objects", len(f.objects))
					case err != nil && c.kept && (!exists || !bytes.Equal(o.body, rival.body) || o.mark != rival.mark):
						t.Errorf("the rival's object is not what it was: %d bytes, mark %q", len(o.body), o.mark)
					}
					if len(f.uploads) > 0 {
						t.Errorf("%d unfinished uploads", len(f.uploads))
					}
				})
			}
		}
	}
}

// set puts an object there or, if it is nil, removes it.
func (f *lossyS3) set(key string, o *lossyObject) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o == nil {
		delete(f.objects, key)
		return
	}
	f.objects[key] = *o
}

// TestDeleteLostResponse: an object is deleted, although the response is lost, unless it is another
// one by now.
func TestDeleteLostResponse(t *testing.T) {
	for _, c := range []struct {
		name string
		lose int
		set  func(f *lossyS3) // after a response is lost, or before the request
		want error
		left bool
	}{
		{"nothing is lost", 0, func(*lossyS3) {}, nil, false},
		{"lost", 1, func(*lossyS3) {}, nil, false},
		{"lost twice", 2, func(*lossyS3) {}, nil, false},
		{"another object", 0, func(f *lossyS3) { f.set("a", &lossyObject{[]byte("others"), ""}) }, storage.ErrChanged, true},
		{"lost, and written again", 1, func(f *lossyS3) { f.set("a", &lossyObject{[]byte("others"), ""}) }, storage.ErrChanged, true},
		{"no object", 0, func(f *lossyS3) { f.set("a", nil) }, fs.ErrNotExist, false},
	} {
		f := newLossyS3(t)
		s := f.store(t)
		f.set("a", &lossyObject{[]byte("mine"), ""})
		o, err := s.Stat(t.Context(), "s3://bucket/a")
		if err != nil {
			t.Fatal(err)
		}
		if f.lose = c.lose; c.lose > 0 {
			f.lost = func() { c.set(f) }
		} else {
			c.set(f)
		}
		if err := s.Delete(t.Context(), o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if _, left := f.objects["a"]; left != c.left {
			t.Errorf("%s: an object is left: %v", c.name, left)
		}
	}
}

// TestRanges: every cloud and web server is asked for exactly the bytes that are read.
func TestRanges(t *testing.T) {
	const size = 5000
	content := noise(size)
	var asked string
	url, _ := fakeS3(t, func(w http.ResponseWriter, r *http.Request) {
		if asked = r.Header.Get("Range"); asked == "" {
			asked = r.Header.Get("X-Ms-Range") // Azure
		}
		var first, last int
		if _, err := fmt.Sscanf(asked, "bytes=%d-%d", &first, &last); err != nil || first >= size {
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		last = min(last, size-1)
		w.Header().Set("ETag", `"v"`)
		w.Header().Set("X-Goog-Generation", "7")
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, size))
		w.Header().Set("Content-Length", strconv.Itoa(last+1-first))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(content[first : last+1])
	})
	host := strings.TrimPrefix(url, "http://")
	for k, v := range map[string]string{
		"STORAGE_EMULATOR_HOST": host, "AZURE_STORAGE_ACCOUNT": "account", "AZURE_STORAGE_IS_LOCAL_EMULATOR": "true", "AZURE_STORAGE_DOMAIN": host,
		"AZURE_STORAGE_PROTOCOL": "http", "AZURE_STORAGE_KEY": "a2V5", "AZURE_STORAGE_SAS_TOKEN": "sig=x",
	} {
		t.Setenv(k, v)
	}
	s := newStore(t, Options{Endpoint: url, Retries: -1, Credentials: func(context.Context, string) (Credentials, error) {
		return Credentials{AccessKeyID: "id", SecretAccessKey: "s", Token: "ours"}, nil
	}})
	for _, scheme := range []string{schemeS3, schemeGS, schemeAzure, schemeHTTP} {
		b, err := s.bucketOf(t.Context(), place{scheme: scheme, bucket: "bucket"})
		if err != nil {
			t.Fatal(err)
		}
		key := "a"
		if scheme == schemeHTTP {
			key = url + "/a"
		}
		for _, c := range []struct {
			off, n int64
			want   string
		}{
			{0, 1, "bytes=0-0"}, {0, 5000, "bytes=0-4999"}, {10, 1, "bytes=10-10"}, {5, 100, "bytes=5-104"}, {4999, 1, "bytes=4999-4999"}, {4000, 1000, "bytes=4000-4999"},
		} {
			a, err := b.get(t.Context(), key, "", c.off, c.n)
			if err != nil {
				t.Fatalf("%s: %v", scheme, err)
			}
			got, err := io.ReadAll(a)
			if err := errors.Join(err, a.Close()); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, content[c.off:c.off+c.n]) || a.size != size {
				t.Errorf("%s: %d bytes from %d: %d bytes, of a size of %d", scheme, c.n, c.off, len(got), a.size)
			}
			if asked != c.want {
				t.Errorf("%s: %d bytes from %d: asked for %q, want %q", scheme, c.n, c.off, asked, c.want)
			}
		}
		if _, err := b.get(t.Context(), key, "", size, 1); err == nil || asked != "bytes=5000-5000" {
			t.Errorf("%s: after the end: asked for %q, %v", scheme, asked, err)
		}
	}
}

// body records whether it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

// TestRanged: an answer with another range than the one that was asked for, or with another length
// than its range, is not used.
func TestRanged(t *testing.T) {
	for _, c := range []struct {
		header      string
		length, off int64
		size        int64 // that is known; -2: an error
	}{
		{"bytes 5-9/100", 5, 5, 100},
		{"bytes 5-9/100", -1, 5, 100},
		{"bytes 0-0/1", 1, 0, 1},
		{"bytes 5000000000-5000000009/6000000000", 10, 5_000_000_000, 6_000_000_000},
		{"bytes 5-9/100", 4, 5, -2},
		{"bytes 5-9/100", 6, 5, -2},
		{"bytes 5-9/100", 0, 5, -2},
		{"bytes 4-9/100", 6, 5, -2},
		{"bytes 6-9/100", 4, 5, -2},
		{"bytes 6-9/100", -1, 5, -2},
		{"bytes 5-9/100", 5, 0, -2},
		{"bytes 0-4/100", 5, 5, -2},
		{"bytes 5-9/*", 5, 5, -2},
		{"bytes */100", 0, 5, -2},
		{"items 5-9/100", 5, 5, -2},
		{"5-9", 5, 5, -2},
		{"", 100, 0, 100},
		{"", -1, 0, -1},
		{"", 100, 5, -2},
		{"", 100, 1, -2},
	} {
		b := new(body)
		a, err := ranged(b, c.header, c.length, "v", c.off)
		what := fmt.Sprintf("%q of %d bytes for those from %d", c.header, c.length, c.off)
		switch {
		case c.size == -2 && (err == nil || !b.closed):
			t.Errorf("%s: %v, closed %v", what, err, b.closed)
		case c.size != -2 && (err != nil || b.closed || a.size != c.size || a.identity != "v" || a.ReadCloser != b):
			t.Errorf("%s: size %d, %v, closed %v", what, a.size, err, b.closed)
		}
	}
}
