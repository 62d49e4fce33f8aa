package cloud

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/storage"
)

// keyedS3 is a service of S3 whose objects each need one access key.
type keyedS3 struct {
	url     string
	content []byte
	mu      sync.Mutex
	keys    map[string]string    // that permit reading, by prefixes of paths
	ends    map[string]time.Time // of keys
	code    string               // of answers to keys that have ended
	used    map[string]int       // requests by key
}

func newKeyedS3(t *testing.T) *keyedS3 {
	k := &keyedS3{content: bytes.Repeat([]byte("0123456789"), 50_000), keys: map[string]string{}, ends: map[string]time.Time{}, code: "ExpiredToken", used: map[string]int{}}
	k.url, _ = fakeS3(t, k.serve)
	return k
}

func (k *keyedS3) serve(w http.ResponseWriter, r *http.Request) {
	_, key, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	key, _, _ = strings.Cut(key, "/")
	k.mu.Lock()
	k.used[key]++
	want, at := "", ""
	for path, other := range k.keys {
		if strings.HasPrefix(r.URL.Path, path) && len(path) > len(at) {
			want, at = other, path
		}
	}
	end, code := k.ends[key], k.code
	k.mu.Unlock()
	switch {
	case !end.IsZero() && time.Now().After(end):
	case key != want:
		code = "AccessDenied"
	default:
		w.Header().Set("ETag", `"v"`)
		http.ServeContent(w, r, "", time.Unix(0, 0), bytes.NewReader(k.content))
		return
	}
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprintf(w, `<Error><Code>%s</Code><Message>no</Message></Error>`, code)
}

// uses returns the requests by access key since the last call.
func (k *keyedS3) uses() map[string]int {
	k.mu.Lock()
	defer k.mu.Unlock()
	used := k.used
	k.used = map[string]int{}
	return used
}

// settings are those that a catalog sends for an access key.
func (k *keyedS3) settings(key string, more ...string) string {
	return `{"s3.access-key-id":"` + key + `","s3.secret-access-key":"x","s3.session-token":"y","s3.endpoint":"` + k.url + `","client.region":"eu-x-1"` + strings.Join(more, "") + `}`
}

// Tables of one bucket are read with credentials of their own, at once, and everything else as
// without a catalog.
func TestGrants(t *testing.T) {
	c, k := newCatalog(t), newKeyedS3(t)
	k.keys = map[string]string{"/b/t/": "AKIAONE", "/b/t2/": "AKIATWO", "/b/t/wide/": "AKIAWIDE", "/": "AKIATEST", "/b/deep/t/": "AKIADEEP", "/b/deep/u/": "AKIAALSO"}
	c.set("/v1/namespaces/db/tables/t", tableText("s3a://b/t/", `,"config":`+k.settings("AKIAONE")+`,"storage-credentials":[{"prefix":"s3://b/t/wide","config":`+k.settings("AKIAWIDE")+`},{"prefix":"s3","config":`+k.settings("AKIAONE")+`},{"prefix":"gs://b/t","config":{}}]`))
	c.set("/v1/namespaces/db/tables/t2", tableText("s3://b/t2", `,"config":`+k.settings("AKIATWO")))
	c.set("/v1/namespaces/db/tables/deep", tableText("s3://b/deep/t", `,"storage-credentials":[{"prefix":"s3://b/deep/","config":`+k.settings("AKIADEEP")+`}]`))
	c.set("/v1/namespaces/db/tables/also", tableText("s3://b/deep/u", `,"storage-credentials":[{"prefix":"s3://b/deep/","config":`+k.settings("AKIAALSO")+`}]`))
	s := newStore(t, Options{Endpoint: k.url})
	for _, table := range []string{"t", "t2", "deep", "also", "t", "t2", "also"} {
		if _, err := load(t, s, c.url, "db."+table); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.grants) != 8 {
		t.Errorf("%d grants", len(s.grants))
	}
	k.uses()
	var all sync.WaitGroup
	for name, key := range map[string]string{
		"s3://b/t/data/x": "AKIAONE", "s3a://b/t/x": "AKIAONE", "s3://b/t2/x": "AKIATWO", "s3://b/t/wide/x": "AKIAWIDE", "s3://b/t/wider": "AKIAONE",
		"s3://b/t3/x": "AKIATEST", "s3://b/u": "AKIATEST", "s3://c/t/x": "AKIATEST", "s3://b/deep/t/x": "AKIADEEP", "s3://b/deep/u/x": "AKIAALSO",
	} {
		all.Go(func() {
			if got, err := readAll(t, s, name); err != nil || !bytes.Equal(got, k.content) {
				t.Errorf("%s: %d bytes, %v, want key %s", name, len(got), err, key)
			}
		})
	}
	all.Wait()
	if used := slices.Sorted(maps.Keys(k.uses())); len(used) != 6 {
		t.Errorf("%q", used)
	}
	w := create(t, t.Context(), s, "s3://b/t/out")
	_, _ = w.Write([]byte("x")) // Commit reports it
	_ = w.Commit(true)          // the service has no objects to write
	if used := k.uses(); used["AKIATEST"] == 0 || len(used) > 1 {
		t.Errorf("written with %v", used)
	}
}

// The settings of a catalog's answer reach S3: region, style, session.
func TestGrantSettings(t *testing.T) {
	c := newCatalog(t)
	var last atomic.Pointer[http.Request]
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { last.Store(r) }))
	defer server.Close()
	fakeS3(t, func(http.ResponseWriter, *http.Request) { t.Error("sent to the service of the environment") })
	c.set("/v1/config", `{"defaults":{"s3.endpoint":"`+server.URL+`","s3.region":"no"},"overrides":{"s3.region":"moon-1"}}`)
	for style, path := range map[string]string{"": "/b/t/x", "true": "/b/t/x"} {
		c.set("/v1/namespaces/db/tables/t", tableText("s3://b/t", `,"config":{"s3.access-key-id":"AKIA","s3.secret-access-key":"x","s3.session-token":"of-`+style+`","s3.path-style-access":"`+style+`"}`))
		s := newStore(t, Options{Retries: -1, Anonymous: true})
		if _, err := load(t, s, c.url, "db.t"); err != nil {
			t.Fatal(err)
		}
		_, _ = s.Stat(t.Context(), "s3://b/t/x") // the answer is of no use
		r := last.Load()
		if r == nil || r.URL.Path != path || !strings.Contains(r.Header.Get("Authorization"), "/moon-1/s3/") || r.Header.Get("X-Amz-Security-Token") != "of-"+style {
			t.Errorf("%q: %+v", style, r)
		}
	}
}

// Credentials end while an object is read: before, the catalog grants others, with a token that has
// ended, too.
func TestGrantEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		known  bool // the catalog says when they end
		direct bool // it has an address for credentials alone
		code   string
	}{
		"time":        {known: true},
		"direct":      {known: true, direct: true},
		"expired":     {code: "ExpiredToken"},
		"invalid":     {code: "InvalidToken", direct: true},
		"denied":      {code: "AccessDenied"},
		"unknown key": {code: "InvalidAccessKeyId"},
	} {
		t.Run(name, func(t *testing.T) {
			c, k := newCatalog(t), newKeyedS3(t)
			k.code = tt.code
			t.Setenv(restCredential, "a:b")
			var logins, keys atomic.Int64
			c.set("/v1/oauth/tokens", func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"access_token":"token-%d"}`, logins.Add(1))
			})
			c.refused = func(r *http.Request) int {
				if strings.Contains(r.URL.Path, "/tables/") && r.Header.Get("Authorization") != fmt.Sprintf("Bearer token-%d", keys.Load()+1) {
					return 401
				}
				return 0
			}
			settings := func() string {
				key := fmt.Sprintf("AKIA%d", keys.Add(1))
				end := time.Now().Add(300 * time.Millisecond)
				k.mu.Lock()
				k.ends[key], k.keys["/b/t/"] = end, key
				k.mu.Unlock()
				if tt.known {
					return k.settings(key, fmt.Sprintf(`,"s3.session-token-expires-at-ms":"%d"`, end.UnixMilli()))
				}
				return k.settings(key)
			}
			table := "/v1/namespaces/db/tables/t"
			c.set(table, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, tableText("s3://b/t", `,"config":`+settings())) // the client reports it
			})
			if tt.direct {
				c.set("/v1/config", `{"endpoints":["GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"]}`)
				c.set(table+"/credentials", func(w http.ResponseWriter, _ *http.Request) {
					fmt.Fprintf(w, `{"storage-credentials":[{"prefix":"s3://b/","config":%s}]}`, settings())
				})
			}
			s := newStore(t, Options{Requests: 1}) // the catalog is asked while a request to S3 is under way
			if _, err := load(t, s, c.url, "db.t"); err != nil {
				t.Fatal(err)
			}
			r, err := s.Open(t.Context(), storage.Object{Name: "s3://b/t/x"})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			p := make([]byte, 10_000)
			for i := range 10 {
				off := int64(i) * 10_000
				if _, err := r.ReadAt(p, off); err != nil || !bytes.Equal(p, k.content[off:][:len(p)]) {
					t.Fatalf("after %d reads: %v", i, err)
				}
				time.Sleep(50 * time.Millisecond)
				if !tt.known && keys.Load() == 2 {
					break // they are renewed once a minute
				}
			}
			if keys.Load() < 2 || logins.Load() < 2 {
				t.Errorf("%d keys, %d logins", keys.Load(), logins.Load())
			}
			asked := strings.Count(strings.Join(c.paths(), "\n"), "/credentials")
			if tt.direct != (asked > 0) {
				t.Errorf("asked for credentials alone %d times", asked)
			}
		})
	}
}

// What stays refused is an error, after one attempt with other credentials.
func TestGrantDenied(t *testing.T) {
	c, k := newCatalog(t), newKeyedS3(t)
	n := 0
	c.set("/v1/namespaces/db/tables/t", func(w http.ResponseWriter, _ *http.Request) {
		n++
		_, _ = io.WriteString(w, tableText("s3://b/t", `,"config":`+k.settings(fmt.Sprintf("AKIA%d", n)))) // the client reports it
	})
	s := newStore(t, Options{})
	if _, err := load(t, s, c.url, "db.t"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.Stat(t.Context(), "s3://b/t/x"); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "AccessDenied") {
			t.Error(err)
		}
	}
	if n != 2 {
		t.Errorf("asked %d times", n)
	}
}

// If the catalog grants none any more, reads fail with its reason.
func TestGrantGone(t *testing.T) {
	c, k := newCatalog(t), newKeyedS3(t)
	table := "/v1/namespaces/db/tables/t"
	old := fmt.Sprintf(`,"s3.session-token-expires-at-ms":"%d"`, time.Now().Add(-time.Hour).UnixMilli())
	c.set(table, tableText("s3://b/t", `,"config":`+k.settings("AKIA", old)))
	s := newStore(t, Options{Retries: -1})
	for answer, want := range map[string]string{
		tableText("s3://b/t", `,"config":`+k.settings("AKIA", old)): "s3://b/t: no credentials: they have expired at",
		tableText("s3://b/t", ""):                                   "s3://b/t: no credentials: the catalog grants none any more",
		tableText("s3://b/t", `,"config":{"s3.access-key-id":"A"}`): "s3://b/t: no credentials: want an access key",
		"{": "not that of an Iceberg REST catalog",
	} {
		if _, err := load(t, s, c.url, "db.t"); err != nil {
			t.Fatal(err)
		}
		first := c.answers[table]
		c.set(table, answer)
		if _, err := s.Stat(t.Context(), "s3://b/t/x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		c.set(table, first)
	}
	if used := k.uses(); len(used) > 0 {
		t.Errorf("sent %v", used)
	}
}

// A catalog that fails is asked as often as Options.Retries says, whatever the number of reads.
func TestGrantFails(t *testing.T) {
	c, k := newCatalog(t), newKeyedS3(t)
	old := fmt.Sprintf(`,"s3.session-token-expires-at-ms":"%d"`, time.Now().Add(-time.Hour).UnixMilli())
	c.set("/v1/namespaces/db/tables/t", tableText("s3://b/t", `,"config":`+k.settings("AKIA", old)))
	s := newStore(t, Options{Retries: 2})
	if _, err := load(t, s, c.url, "db.t"); err != nil {
		t.Fatal(err)
	}
	c.paths()
	var arrived sync.WaitGroup
	arrived.Add(8)
	c.refused = func(*http.Request) int {
		time.Sleep(200 * time.Millisecond) // all reads wait by now
		return http.StatusServiceUnavailable
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			arrived.Done()
			arrived.Wait()
			_, err := s.Stat(t.Context(), "s3://b/t/x")
			if !errors.Is(err, storage.ErrAgain) || !strings.Contains(err.Error(), "503") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	r, err := s.Open(t.Context(), storage.Object{Name: "s3://b/t/x", Size: 1 << 20, Identity: "v"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.ReadAt(make([]byte, 10), 0); !errors.Is(err, storage.ErrAgain) || !strings.Contains(err.Error(), "503") {
		t.Error(err)
	}
	if got := len(c.paths()); got != 6 {
		t.Errorf("%d requests, want 3 for all and 3 for the last", got)
	}
}
