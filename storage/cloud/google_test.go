package cloud

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// fakeGoogle implements what the documentation of Google's JSON API says about uploads, and
// makes requests fail.
type fakeGoogle struct {
	t       *testing.T
	trouble func(n int) string // of the n-th request to a session, from 0; "": none

	mu       sync.Mutex
	objects  map[string]googleStored
	sessions map[string]*googleSession
	requests int      // to sessions
	spans    []string // their Content-Range
	written  int64    // the last generation
}

type googleStored struct {
	body       []byte
	mark       string
	generation int64
}

type googleSession struct {
	key, condition string
	object         googleStored
	complete       bool
}

func newFakeGoogle(t *testing.T, trouble func(n int) string) *fakeGoogle {
	t.Helper()
	f := &fakeGoogle{t: t, trouble: trouble, objects: map[string]googleStored{}, sessions: map[string]*googleSession{}}
	server := httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(server.Close)
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(server.URL, "http://"))
	return f
}

func (f *fakeGoogle) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	path := r.URL.EscapedPath()
	key, err := url.PathUnescape(strings.TrimPrefix(path, "/storage/v1/b/bucket/o/"))
	if err != nil || strings.Contains(strings.TrimPrefix(path, "/storage/v1/b/bucket/o/"), "/") && !strings.HasPrefix(path, "/upload/") {
		f.refuse(w, http.StatusBadRequest, "invalid")
		return
	}
	q := r.URL.Query()
	switch {
	case q.Get("upload_id") != "":
		f.session(w, r, f.sessions[q.Get("upload_id")], body)
	case q.Get("uploadType") == "multipart":
		_, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
		var about, content []byte
		for i, to := range []*[]byte{&about, &content} {
			part, err := parts.NextPart()
			if err == nil {
				*to, err = io.ReadAll(part)
			}
			if err != nil {
				f.t.Errorf("part %d: %v", i, err)
			}
		}
		o := f.about(about)
		o.body = content
		f.publish(w, q.Get("name"), q.Get("ifGenerationMatch"), o, about)
	case q.Get("uploadType") == "resumable":
		id := fmt.Sprint(len(f.sessions))
		f.sessions[id] = &googleSession{key: q.Get("name"), condition: q.Get("ifGenerationMatch"), object: f.about(body)}
		w.Header().Set("Location", "http://"+r.Host+r.URL.Path+"?upload_id="+id)
	case r.Method == http.MethodGet && f.objects[key].generation > 0:
		_ = json.NewEncoder(w).Encode(f.describe(key))
	default:
		f.refuse(w, http.StatusNotFound, "notFound")
	}
}

func (f *fakeGoogle) refuse(w http.ResponseWriter, status int, reason string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"code":%d,"message":"said the fake","errors":[{"reason":%q}]}}`, status, reason)
}

func (f *fakeGoogle) describe(key string) map[string]any {
	o := f.objects[key]
	return map[string]any{
		"name": key, "size": strconv.Itoa(len(o.body)), "generation": strconv.FormatInt(o.generation, 10), "updated": "2006-01-02T15:04:05Z",
		"metadata": map[string]string{markKey: o.mark},
	}
}

func (f *fakeGoogle) about(text []byte) googleStored {
	var said struct{ Metadata map[string]string }
	if err := json.Unmarshal(text, &said); err != nil {
		f.t.Errorf("%q: %v", text, err)
	}
	return googleStored{mark: said.Metadata[markKey]}
}

// publish makes an object visible, if the condition is met and the sum that the text has is right.
func (f *fakeGoogle) publish(w http.ResponseWriter, key, condition string, o googleStored, text []byte) {
	sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(o.body, crc32.MakeTable(crc32.Castagnoli)))
	if !bytes.Contains(text, []byte(base64.StdEncoding.EncodeToString(sum))) {
		f.t.Errorf("%q: not the sum of %d bytes", text, len(o.body))
		f.refuse(w, http.StatusBadRequest, "invalid")
		return
	}
	if condition != "" && condition != strconv.FormatInt(f.objects[key].generation, 10) {
		f.refuse(w, http.StatusPreconditionFailed, "conditionNotMet")
		return
	}
	f.written++
	o.generation = f.written
	f.objects[key] = o
	_ = json.NewEncoder(w).Encode(f.describe(key))
}

func (f *fakeGoogle) session(w http.ResponseWriter, r *http.Request, s *googleSession, body []byte) {
	if s == nil {
		f.refuse(w, http.StatusNotFound, "notFound")
		return
	}
	if r.Method == http.MethodDelete {
		delete(f.sessions, r.URL.Query().Get("upload_id"))
		w.WriteHeader(499)
		return
	}
	span := r.Header.Get("Content-Range")
	f.spans = append(f.spans, span)
	trouble := f.trouble(f.requests)
	f.requests++
	switch trouble {
	case "cut":
		panic(http.ErrAbortHandler)
	case "gone":
		delete(f.sessions, r.URL.Query().Get("upload_id"))
		w.WriteHeader(http.StatusGone)
		return
	case "early":
		return
	case "busy":
		w.Header().Set("Retry-After", "0")
		f.refuse(w, http.StatusServiceUnavailable, "backendError")
		return
	case "rival":
		f.written++
		f.objects[s.key] = googleStored{[]byte("a rival's"), "other", f.written}
	}
	var from, to, total int
	if _, err := fmt.Sscanf(span, "bytes %d-%d/%d", &from, &to, &total); err != nil {
		total = -1
		if _, err := fmt.Sscanf(span, "bytes */%d", &total); err == nil || span == "bytes */*" {
			from, to = len(s.object.body), len(s.object.body)-1
		} else if _, err := fmt.Sscanf(span, "bytes %d-%d/*", &from, &to); err != nil || (to+1-from)%(256<<10) != 0 {
			f.t.Errorf("the span %q", span)
		}
	}
	if from != len(s.object.body) && !s.complete || to+1-from != len(body) {
		f.t.Errorf("%q with %d bytes, after %d", span, len(body), len(s.object.body))
		f.refuse(w, http.StatusBadRequest, "invalid")
		return
	}
	switch trouble {
	case "none":
		body = nil
	case "half":
		body = body[:len(body)/2/(256<<10)*(256<<10)]
	}
	s.object.body = append(s.object.body[:from:from], body...)
	answer := httptest.NewRecorder()
	switch {
	case s.complete || total == len(s.object.body):
		if !s.complete {
			f.publish(answer, s.key, s.condition, s.object, []byte(r.Header.Get("X-Goog-Hash")))
		}
		s.complete = true
	default:
		if n := len(s.object.body); n > 0 {
			answer.Header().Set("Range", fmt.Sprintf("bytes=0-%d", n-1))
		}
		answer.WriteHeader(http.StatusPermanentRedirect)
	}
	switch trouble {
	case "lost and gone":
		delete(f.sessions, r.URL.Query().Get("upload_id"))
		fallthrough
	case "lost":
		panic(http.ErrAbortHandler)
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// A resumable upload survives whatever happens to one of its requests, and the next one.
func TestGoogleResumes(t *testing.T) {
	const kib = 1 << 10
	for _, sizes := range [][]int{{256 * kib}, {100 * kib}, {512*kib + 5}, {300 * kib, 300 * kib, 1}, {100 * kib, 100 * kib, 100 * kib}, {1024 * kib, 512 * kib}} {
		for _, trouble := range []string{"", "none", "half", "cut", "lost", "busy", "half lost", "none cut"} {
			for at := range 4 {
				what := fmt.Sprintf("%d bytes, %q at %d", sizes, trouble, at)
				f := newFakeGoogle(t, func(n int) string {
					if words := strings.Fields(trouble); n >= at && n < at+len(words) {
						return words[n-at]
					}
					return ""
				})
				s := newStore(t, Options{})
				b, err := s.bucketOf(t.Context(), place{scheme: schemeGS, bucket: "bucket"})
				if err != nil {
					t.Fatal(err)
				}
				u, err := b.begin(t.Context(), "a", "mark")
				if err != nil {
					t.Fatal(err)
				}
				content, at := noise(2<<20), 0
				for n, size := range sizes {
					part := bytes.Clone(content[at : at+size])
					at += size
					if err := s.do(t.Context(), b, 0, "a", func(ctx context.Context) error { return u.part(ctx, n, part) }); err != nil {
						t.Errorf("%s: part %d: %v", what, n, err)
					}
					clear(part) // it is used again
				}
				if err := s.do(t.Context(), b, 0, "a", func(ctx context.Context) error {
					_, err := u.complete(ctx, "")
					return err
				}); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if o := f.objects["a"]; !bytes.Equal(o.body, content[:at]) || o.mark != "mark" {
					t.Errorf("%s: %d other bytes, after %q", what, len(o.body), f.spans)
				}
			}
		}
	}
}

// Rivals, and sessions that end too early, are errors; an object whose answer was lost is not.
func TestGoogleLost(t *testing.T) {
	for _, c := range []struct {
		trouble string
		want    error
		left    int // sessions
	}{
		{"", nil, 1}, {"lost", nil, 1}, {"lost and gone", nil, 0}, {"gone", storage.ErrAgain, 0}, {"rival", fs.ErrExist, 0},
	} {
		f := newFakeGoogle(t, func(n int) string {
			if n == 0 {
				return c.trouble
			}
			return ""
		})
		s := newStore(t, Options{})
		w := create(t, t.Context(), s, "gs://bucket/a")
		if err := errors.Join(write(w, noise(maxKept+1)), objects.Rest(w)); err != nil {
			t.Fatal(err)
		}
		says(t, c.trouble, w.Commit(false), c.want)
		if err := w.Abort(); err != nil {
			t.Errorf("%s: Abort: %v", c.trouble, err)
		}
		if len(f.sessions) != c.left {
			t.Errorf("%s: %d sessions are left", c.trouble, len(f.sessions))
		}
		w = create(t, t.Context(), s, "gs://bucket/a")
		if err := errors.Join(write(w, noise(maxKept+1)), objects.Rest(w)); err != nil {
			t.Fatal(err)
		}
		if _, there := f.objects["a"]; there {
			says(t, c.trouble+", again", w.Commit(false), fs.ErrExist)
		}
		says(t, c.trouble+", at last", errors.Join(w.Commit(true), w.Abort()), nil)
	}
	f := newFakeGoogle(t, func(int) string { return "gone" })
	s := newStore(t, Options{})
	w := create(t, t.Context(), s, "gs://bucket/a")
	err := errors.Join(write(w, noise(firstPart+1)), objects.Rest(w))
	says(t, "a part", err, storage.ErrAgain, "gs://bucket/a: the upload no longer exists: 410")
	if err := w.Abort(); err != nil || len(f.objects) > 0 {
		t.Errorf("%d objects, %v", len(f.objects), err)
	}
	f.trouble = func(int) string { return "early" }
	w = create(t, t.Context(), s, "gs://bucket/a")
	if err := errors.Join(write(w, noise(firstPart+1)), objects.Rest(w)); err == nil || !strings.Contains(err.Error(), "complete: true") || w.Abort() != nil {
		t.Errorf("an upload that ends early: %v", err)
	}
}

// Objects have the names that they are given, and answers the meaning that the API gives them.
func TestGoogleAnswers(t *testing.T) {
	f := newFakeGoogle(t, nil)
	s := newStore(t, Options{})
	for _, key := range []string{"a/b c", "ü/%2F?x=1&y#z", "a+b/../c//d", "name=[*]"} {
		w := create(t, t.Context(), s, "gs://bucket/"+key)
		if err := errors.Join(write(w, []byte(key)), w.Commit(false)); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if o, err := s.Stat(t.Context(), "gs://bucket/"+key); err != nil || o.Size != int64(len(key)) || o.Identity != fmt.Sprint(f.written) || o.ModTime.Year() != 2006 {
			t.Errorf("%s: %+v, %v", key, o, err)
		}
		says(t, key, create(t, t.Context(), s, "gs://bucket/"+key).Commit(false), fs.ErrExist)
	}
	var answer http.HandlerFunc
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	defer server.Close()
	t.Setenv("STORAGE_EMULATOR_HOST", server.URL+"/ignored")
	s = newStore(t, Options{Retries: 1})
	open := func() error {
		r, err := s.Open(t.Context(), storage.Object{Name: "gs://other/a", Identity: "7", Size: 10})
		if err == nil {
			_, err = r.ReadAt(make([]byte, 10), 0)
			_ = r.Close()
		}
		return err
	}
	for _, c := range []struct {
		status int
		body   string
		want   error
		text   string
	}{
		{403, "x has no access", fs.ErrPermission, "gs://other/a: access denied: 403 x has no access"},
		{401, `{"error":{"message":"Anonymous caller"}}`, nil, "access denied: 401 Anonymous caller"},
		{412, "", storage.ErrChanged, "the object changed"},
		{404, "No such object", storage.ErrChanged, "the object changed"},
		{503, "<html>", storage.ErrAgain, "too many requests: 503"},
		{429, `{"error":{"message":"slow down","errors":[{"reason":"rateLimitExceeded"}]}}`, storage.ErrAgain, "429 rateLimitExceeded slow down"},
		{200, "0123456789", nil, ""},
	} {
		answer = func(w http.ResponseWriter, r *http.Request) {
			if q := r.URL.Query(); r.URL.Path != "/storage/v1/b/other/o/a" || q.Get("alt") != "media" || q.Get("ifGenerationMatch") != "7" || r.Header.Get("Accept-Encoding") != "gzip" {
				t.Errorf("%s, %v", r.URL, r.Header)
			}
			w.Header().Set("X-Goog-Generation", "7")
			w.Header().Set("Content-Encoding", "gzip") // as stored, the bytes are no gzip
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}
		before := s.Stats()
		err := open()
		if c.text == "" && err != nil || c.text != "" && (err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%d: %v, want %q", c.status, err, c.text)
		}
		if n := s.Stats().Retries - before.Retries; (n > 0) != errors.Is(err, storage.ErrAgain) {
			t.Errorf("%d: sent again %d times", c.status, n)
		}
	}
	answer = func(w http.ResponseWriter, r *http.Request) { // in two pages, the first of which is cut off once
		q := r.URL.Query()
		if q.Get("pageToken") == "" {
			w.Header().Set("Content-Length", "1000")
			if s.Stats().Retries == 0 {
				_, _ = io.WriteString(w, `{"items":[`)
				return
			}
			w.Header().Del("Content-Length")
			_, _ = io.WriteString(w, `{"items":[{"name":"d/b","size":"5","generation":"9","updated":"2006-01-02T15:04:05Z"}],"prefixes":["d/a/"],"nextPageToken":"t&"}`)
			return
		}
		if q.Get("pageToken") != "t&" || q.Get("prefix") != "d/" || q.Get("maxResults") != "1000" {
			t.Errorf("%v", q)
		}
		_, _ = io.WriteString(w, `{"items":[{"name":"d/c","size":"6","generation":"10"}]}`)
	}
	s = newStore(t, Options{})
	b, err := s.bucketOf(t.Context(), place{scheme: schemeGS, bucket: "other"})
	if err != nil {
		t.Fatal(err)
	}
	var got []entry
	if err := b.list(t.Context(), "d/", "/", pageSize, func(e entry) bool { got = append(got, e); return true }); err != nil {
		t.Fatal(err)
	}
	want := []entry{{key: "d/a/", dir: true}, {"d/b", 5, time.Date(2006, 1, 2, 15, 4, 5, 0, time.UTC), "9", false}, {key: "d/c", size: 6, identity: "10"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}
