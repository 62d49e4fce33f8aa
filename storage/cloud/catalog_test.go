package cloud

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// restCatalog is a catalog and the server of its tokens.
type restCatalog struct {
	url     string
	mu      sync.Mutex
	seen    []*http.Request
	forms   []url.Values
	refused func(r *http.Request) int // the status; 0: none
	answers map[string]any            // by path: a text, or a function of http.Handler
}

// newCatalog returns a catalog without settings that knows the table db.t, and clears the environment.
func newCatalog(t *testing.T) *restCatalog {
	t.Helper()
	for _, name := range []string{restToken, restCredential, restTokens, restScope, restWarehouse, restSigV4, restRegion} {
		t.Setenv(name, "")
	}
	c := &restCatalog{answers: map[string]any{
		"/v1/config":                         `{"defaults":{},"overrides":{}}`,
		"/v1/namespaces/db/tables/t":         tableText("s3://b/t", ""),
		"/v1/oauth/tokens":                   `{"access_token":"granted-1","token_type":"bearer","expires_in":3600}`,
		"/p/v1/config":                       `{"overrides":{"prefix":"a%20b"},"unknown":[1]}`,
		"/p/v1/a%20b/namespaces/db/tables/t": tableText("s3://b/t", ""),
	}}
	server := httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// tableText is an answer about a table; more are other fields, which begin with a comma.
func tableText(location, more string) string {
	return `{"metadata-location":"` + location + `/metadata/1.json","metadata":{"location":"` + location + `","format-version":2}` + more + `}`
}

func (c *restCatalog) serve(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // of POST requests alone
	c.mu.Lock()
	c.seen, c.forms = append(c.seen, r), append(c.forms, r.PostForm)
	refused, answer := c.refused, c.answers[r.URL.EscapedPath()]
	c.mu.Unlock()
	if refused != nil {
		if status := refused(r); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	switch a := answer.(type) {
	case string:
		_, _ = io.WriteString(w, a) // the client reports it
	case func(http.ResponseWriter, *http.Request):
		a(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"message":"Table does not exist","type":"NoSuchTableException","code":404}}`)
	}
}

func (c *restCatalog) set(path string, answer any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[path] = answer
}

// paths returns the requests since the last call, with what they were authorized by.
func (c *restCatalog) paths() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.seen {
		by, _, _ := strings.Cut(r.Header.Get("Authorization"), ",")
		all = append(all, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+by))
	}
	c.seen = nil
	return all
}

func load(t *testing.T, s *store, at, table string) (*objects.CatalogTable, error) {
	t.Helper()
	return objects.LoadTable(t.Context(), s, at, table, false)
}

// A catalog that a list of inputs names gets no request unless the environment names it, too.
func TestCatalogOfList(t *testing.T) {
	c := newCatalog(t)
	t.Setenv(restToken, "abc")
	for own, want := range map[string]int{"": 0, c.url + "2": 0, c.url + "/v1/": 2, c.url: 2} {
		t.Setenv(restURI, own)
		_, err := newStore(t, Options{}).LoadTable(t.Context(), c.url, "db.t", true)
		if got := len(c.paths()); got != want || (err == nil) != (want > 0) || err != nil && !strings.Contains(err.Error(), restURI) {
			t.Errorf("%q: %d requests, %v, want %d", own, got, err, want)
		}
	}
	// Nor does it need to, if the command line has named the catalog.
	t.Setenv(restURI, "")
	s := newStore(t, Options{})
	for _, listed := range []bool{false, true} {
		if _, err := s.LoadTable(t.Context(), c.url+"/v1", "db.t", listed); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.LoadTable(t.Context(), c.url+"2", "db.t", true); err == nil || !strings.Contains(err.Error(), restURI) {
		t.Error(err)
	}
}

// Requests are authorized as the environment says.
func TestCatalogAuth(t *testing.T) {
	c := newCatalog(t)
	fakeS3(t, func(http.ResponseWriter, *http.Request) {}) // clears the settings of AWS
	for name, tt := range map[string]struct {
		env  string
		at   string
		want []string
		form string
	}{
		"none":      {"", "", []string{"GET /v1/config", "GET /v1/namespaces/db/tables/t"}, ""},
		"prefix":    {restWarehouse + "=a b&c", "/p/v1/", []string{"GET /p/v1/config?warehouse=a+b%26c", "GET /p/v1/a%20b/namespaces/db/tables/t"}, ""},
		"token":     {restToken + "=abc", "/v1", []string{"GET /v1/config Bearer abc", "GET /v1/namespaces/db/tables/t Bearer abc"}, ""},
		"login":     {restCredential + "=me:a:b c", "", []string{"POST /v1/oauth/tokens", "GET /v1/config Bearer granted-1", "GET /v1/namespaces/db/tables/t Bearer granted-1"}, "client_id=me&client_secret=a%3Ab+c&grant_type=client_credentials&scope=catalog"},
		"secret":    {restCredential + "=abc\n" + restScope + "=PRINCIPAL_ROLE:ALL", "", []string{"POST /v1/oauth/tokens", "GET /v1/config Bearer granted-1", "GET /v1/namespaces/db/tables/t Bearer granted-1"}, "client_secret=abc&grant_type=client_credentials&scope=PRINCIPAL_ROLE%3AALL"},
		"elsewhere": {restCredential + "=a:b\n" + restTokens + "=" + c.url + "/idp", "/p", []string{"POST /idp", "GET /p/v1/config Bearer other", "GET /p/v1/a%20b/namespaces/db/tables/t Bearer other"}, "client_id=a&client_secret=b&grant_type=client_credentials&scope=catalog"},
		"sigv4":     {restSigV4 + "=glue\n" + restRegion + "=eu-x-1", "", []string{"GET /v1/config AWS4-HMAC-SHA256 Credential=AKIATEST/" + time.Now().UTC().Format("20060102") + "/eu-x-1/glue/aws4_request", "GET /v1/namespaces/db/tables/t AWS4-HMAC-SHA256 Credential=AKIATEST/" + time.Now().UTC().Format("20060102") + "/eu-x-1/glue/aws4_request"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.set("/idp", `{"access_token":"other"}`)
			for line := range strings.Lines(tt.env) {
				k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
				t.Setenv(k, v)
			}
			c.mu.Lock()
			c.forms = nil
			c.mu.Unlock()
			got, err := load(t, newStore(t, Options{}), c.url+tt.at, "db.t")
			if err != nil {
				t.Fatal(err)
			}
			if got.MetadataLocation != "s3://b/t/metadata/1.json" || string(got.Metadata) != `{"location":"s3://b/t","format-version":2}` {
				t.Errorf("%s %s", got.MetadataLocation, got.Metadata)
			}
			if paths := c.paths(); !slices.Equal(paths, tt.want) {
				t.Errorf("%q, want %q", paths, tt.want)
			}
			if form := c.forms[0].Encode(); form != tt.form {
				t.Errorf("form %s, want %s", form, tt.form)
			}
		})
	}
}

// Credentials are asked of the catalog by a header, and sent nowhere else than in theirs.
func TestCatalogHeader(t *testing.T) {
	c := newCatalog(t)
	c.set("/v1/namespaces/db/tables/t", func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("X-Iceberg-Access-Delegation"); got != "vended-credentials" {
			t.Errorf("%q", got)
		}
		_, _ = io.WriteString(w, tableText("s3://b/t", "")) // the client reports it
	})
	if _, err := load(t, newStore(t, Options{}), c.url, "db.t"); err != nil {
		t.Error(err)
	}
}

// Signatures of AWS are those of its documentation.
func TestCatalogSigV4(t *testing.T) {
	c := newCatalog(t)
	fakeS3(t, func(http.ResponseWriter, *http.Request) {})
	t.Setenv("AWS_SESSION_TOKEN", "session/token")
	t.Setenv("AWS_REGION", "us-west-9")
	t.Setenv(restSigV4, "s3tables")
	t.Setenv(restWarehouse, "arn:aws:s3tables:x")
	c.set("/v1/config", `{"overrides":{"prefix":"arn%3Aaws"},"defaults":{"rest.signing-region":"no","rest.signing-name":"no"}}`)
	c.set("/v1/arn%3Aaws/namespaces/a%1Fb/tables/t", tableText("s3://b/t", ""))
	if _, err := load(t, newStore(t, Options{}), c.url, "a.b.t"); err != nil {
		t.Fatal(err)
	}
	sum := func(text string) string { h := sha256.Sum256([]byte(text)); return hex.EncodeToString(h[:]) }
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	for i, canonical := range []string{"/v1/config\nwarehouse=arn%3Aaws%3As3tables%3Ax", "/v1/arn%253Aaws/namespaces/a%251Fb/tables/t\n"} {
		r := c.seen[i]
		at, headers := r.Header.Get("X-Amz-Date"), ""
		_, signed, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
		signed, signature, _ := strings.Cut(signed, ", Signature=")
		for _, name := range strings.Split(signed, ";") {
			value := r.Header.Get(name)
			if name == "host" {
				value = r.Host
			}
			headers += name + ":" + value + "\n"
		}
		if !strings.Contains(headers, "x-amz-security-token:session/token\n") || r.Header.Get("X-Amz-Content-Sha256") != sum("") {
			t.Errorf("signed %q", headers)
		}
		scope := at[:8] + "/us-west-9/s3tables/aws4_request"
		text := "AWS4-HMAC-SHA256\n" + at + "\n" + scope + "\n" + sum("GET\n"+canonical+"\n"+headers+"\n"+signed+"\n"+sum(""))
		key := []byte("AWS4s")
		for part := range strings.SplitSeq(scope, "/") {
			key = mac(key, part)
		}
		if want := hex.EncodeToString(mac(key, text)); signature != want {
			t.Errorf("%s: signature %s, want %s of\n%s", r.URL, signature, want, text)
		}
	}
}

// dialled makes all connections of a store lead to the catalog, whatever its name is.
func (c *restCatalog) dialled(s *store) {
	s.http.Transport.(*transport).base.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(c.url, "http://"))
	}
}

// A catalog may say how requests to it are signed, but not make a client sign that was not asked to.
func TestCatalogSigns(t *testing.T) {
	c := newCatalog(t)
	fakeS3(t, func(http.ResponseWriter, *http.Request) {})
	c.set("/v1/config", `{"overrides":{"rest.sigv4-enabled":"true","rest.signing-name":"execute-api","rest.signing-region":"moon-1"}}`)
	const plain, signed = "GET /v1/namespaces/db/tables/t", "/moon-1/execute-api/aws4_request"
	for _, tt := range []struct{ at, env, value, want string }{
		{c.url, restSigV4, "", plain}, {c.url, restSigV4, "glue", signed},
		{"http://glue.moon-1.amazonaws.com", restSigV4, "", signed}, {"http://glue.moon-1.amazonaws.com.cn", restSigV4, "", signed},
		{"http://glue.moon-1.amazonaws.com.example", restSigV4, "", plain}, {"http://evil-amazonaws.com", restSigV4, "", plain},
		{"http://glue.moon-1.amazonaws.com", restToken, "x", plain + " Bearer x"},
	} {
		t.Run("", func(t *testing.T) {
			t.Setenv(tt.env, tt.value)
			s := newStore(t, Options{})
			c.dialled(s)
			if _, err := load(t, s, tt.at, "db.t"); err != nil {
				t.Fatal(err)
			}
			if got := c.paths()[1]; !strings.HasSuffix(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	c.set("/v1/config", `{"defaults":{"rest.sigv4-enabled":"true"},"overrides":{"rest.signing-name":"execute-api"}}`)
	s := newStore(t, Options{})
	c.dialled(s)
	if _, err := load(t, s, "http://glue.moon-1.amazonaws.com", "db.t"); err != nil || c.paths()[1] != plain {
		t.Errorf("signed though it was not asked for: %v", err)
	}
}

// A token that is refused is asked for once more; one that expires, before it does.
func TestCatalogTokenEnds(t *testing.T) {
	for _, status := range []int{401, 419} {
		c := newCatalog(t)
		n := 0
		c.set("/v1/oauth/tokens", func(w http.ResponseWriter, _ *http.Request) {
			n++
			fmt.Fprintf(w, `{"access_token":"token-%d","expires_in":3600}`, n)
		})
		good := "Bearer token-2"
		c.refused = func(r *http.Request) int {
			if strings.Contains(r.URL.Path, "/tables/") && r.Header.Get("Authorization") != good {
				return status
			}
			return 0
		}
		t.Setenv(restCredential, "a:b")
		s := newStore(t, Options{})
		_, err := load(t, s, c.url, "db.t")
		want := []string{"POST /v1/oauth/tokens", "GET /v1/config Bearer token-1", "GET /v1/namespaces/db/tables/t Bearer token-1", "POST /v1/oauth/tokens", "GET /v1/namespaces/db/tables/t Bearer token-2"}
		if got := c.paths(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d: %v, %q", status, err, got)
		}
		good = ""
		if _, err := load(t, s, c.url, "db.t"); err == nil || len(c.paths()) != 5 {
			t.Errorf("%d: refused twice: %v", status, err)
		}
		t.Setenv(restCredential, "")
		t.Setenv(restToken, "abc")
		if _, err := load(t, s, c.url, "db.t"); err == nil || len(c.paths()) != 2 {
			t.Errorf("%d: %v", status, err)
		}
	}
	c := newCatalog(t)
	t.Setenv(restCredential, "a:b")
	c.set("/v1/oauth/tokens", `{"access_token":"short","expires_in":0.05}`)
	c.set("/v1/config", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(60 * time.Millisecond)
		_, _ = io.WriteString(w, `{}`) // the client reports it
	})
	if _, err := load(t, newStore(t, Options{}), c.url, "db.t"); err != nil || c.paths()[2] != "POST /v1/oauth/tokens" {
		t.Errorf("%v", err)
	}
}

// Names have the parts that the catalog's separator joins.
func TestCatalogNames(t *testing.T) {
	c := newCatalog(t)
	for name, path := range map[string]string{
		"a.b.t":         "a%1Fb/tables/t",
		`"a.b".t`:       "a.b/tables/t",
		`a."b c"."t.1"`: "a%1Fb%20c/tables/t.1",
		"a.t?x#y/z":     "a/tables/t%3Fx%23y%2Fz",
		"..a.t":         "", "t": "", "": "", "a.": "", ".t": "", `"a.t`: "", `"a"b.t`: "", `a."..".t`: "", "a.\n.t": "", `a."".t`: "", `a"b.t`: "",
	} {
		if path != "" {
			c.set("/v1/namespaces/"+path, tableText("s3://b/t", ""))
		}
		if _, err := load(t, newStore(t, Options{}), c.url, name); (err == nil) != (path != "") {
			t.Errorf("%q: %v, %q", name, err, c.paths())
		}
	}
	c.set("/v1/config", `{"defaults":{"namespace-separator":"%2E"}}`)
	c.set("/v1/namespaces/a%2Eb/tables/t", tableText("s3://b/t", ""))
	if _, err := load(t, newStore(t, Options{}), c.url, "a.b.t"); err != nil {
		t.Error(err)
	}
}

const secret = "s3cret-t0ken"

// Addresses and settings that are refused, before anything is sent, with nothing secret in the error.
func TestCatalogRefused(t *testing.T) {
	c := newCatalog(t)
	host := strings.TrimPrefix(c.url, "http://")
	for _, tt := range []struct{ at, env, want string }{
		{"http://u:" + secret + "@" + host, "", "no user, password or query"},
		{"http://" + secret + "@" + host, "", "no user, password or query"},
		{c.url + "?token=" + secret, "", restToken},
		{c.url + "#" + secret, "", "no user, password or query"},
		{"http://" + secret + "%zz", "", "want https://HOST/PATH"},
		{"ftp://" + secret, "", "want https://HOST/PATH"},
		{"s3://" + secret, "", "want https://HOST/PATH"},
		{c.url, restToken + "=" + secret + "\n" + restCredential + "=" + secret, "want one of them, got " + restToken + " and " + restCredential},
		{c.url, restToken + "=" + secret + "\n" + restSigV4 + "=glue", "got " + restToken + " and " + restSigV4},
		{c.url, restToken + "=" + secret + "\r", restToken + ": want one line"},
		{c.url, restCredential + "=a:" + secret + "\tx", restCredential + ": want one line"},
		{c.url, restCredential + "=a:b\n" + restTokens + "=https://u:" + secret + "@h/x", restTokens},
	} {
		t.Run("", func(t *testing.T) {
			for line := range strings.SplitSeq(tt.env, "\n") {
				if k, v, ok := strings.Cut(line, "="); ok {
					t.Setenv(k, v)
				}
			}
			_, err := load(t, newStore(t, Options{}), tt.at, "db.t")
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), secret) || len(c.paths()) > 0 {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	if _, err := objects.LoadTable(t.Context(), storage.Local(), "https://u:"+secret+"@h", "a.b", false); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "storage/cloud") || strings.Contains(err.Error(), secret) {
		t.Error(err)
	}
}

// Answers that a hostile or broken catalog may send are errors.
func TestCatalogHostile(t *testing.T) {
	c := newCatalog(t)
	t.Setenv(restCredential, "me:"+secret)
	table := "/v1/namespaces/db/tables/t"
	many := strings.Repeat(`{"prefix":"s3://b/x"},`, maxGrants) + `{}`
	for _, tt := range []struct{ path, answer, want string }{
		{"/v1/config", `{"overrides":{"uri":"http://evil.example/x"}}`, "to another host"},
		{"/v1/config", `{"overrides":{"uri":"https://` + strings.TrimPrefix(c.url, "http://") + `"}}`, "to another host"},
		{"/v1/config", `{"overrides":{"uri":"http://u:p@x"}}`, "no user"},
		{"/v1/config", `{"overrides":{"prefix":"x?y"}}`, "other characters"},
		{"/v1/config", `{"overrides":{"prefix":"x\r\ny"}}`, "other characters"},
		{"/v1/config", `{"overrides":{"prefix":7}}`, "not that of an Iceberg REST catalog"},
		{"/v1/config", `[]`, "not that of an Iceberg REST catalog"},
		{"/v1/config", `<html>`, "not that of an Iceberg REST catalog"},
		{"/v1/oauth/tokens", `{"access_token":"a\r\nX-Evil: 1"}`, "want a token that can be sent"},
		{"/v1/oauth/tokens", `{"access_token":7}`, "not that of"},
		{"/v1/oauth/tokens", `{"expires_in":1e300}`, "want a token that can be sent"},
		{table, strings.Repeat(`{"a":`, 100_000), "not that of"},
		{table, strings.Repeat(`[`, 100_000), "not that of"},
		{table, `{"metadata":` + strings.Repeat(`[`, 100_000), "not that of"},
		{table, `{}`, "want the table's metadata"},
		{table, `null`, "want the table's metadata"},
		{table, `{"metadata-location":"s3://b/x","metadata":7}`, "want the table's metadata"},
		{table, `{"metadata-location":"s3://b/x","config":{"a":{}}}`, "not that of"},
		{table, `{"metadata-location":"s3://b/x","storage-credentials":{}}`, "not that of"},
		{table, tableText("s3://b/t", `,"storage-credentials":[`+many+`]`), "more than 100 prefixes"},
		{table, tableText("s3://b/t", `,"config":{"s3.access-key-id":"A"}`), "want an access key and its secret"},
		{table, tableText("s3://b/t", `,"config":{"s3.remote-signing-enabled":"true"}`), "remote signing"},
		{table, `{"metadata-location":"` + secret + `"`, "not that of"},
	} {
		old := c.answers[tt.path]
		c.set(tt.path, tt.answer)
		_, err := load(t, newStore(t, Options{Retries: -1}), c.url, "db.t")
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s %.60s: %v, want %q", tt.path, tt.answer, err, tt.want)
		}
		c.set(tt.path, old)
	}
	c.set(table, tableText("s3://b/t", `,"config":{"s3.remote-signing-enabled":"true"}`))
	if _, err := load(t, newStore(t, Options{}), c.url, "db.t"); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	for _, good := range []string{
		`{"metadata-location":"s3://b/x"}`, `{"metadata-location":"s3://b/x","metadata":null}`,
		tableText("gs://b/t", `,"storage-credentials":[{"prefix":"gs://b","config":{"gcs.oauth2.token":"x"}}]`),
		tableText("file:///t", `,"config":{"s3.remote-signing-enabled":"true","s3.access-key-id":"A"}`),
		tableText("s3://b/t", `,"storage-credentials":[{"prefix":"://","config":{"s3.access-key-id":"A"}},{"prefix":"hdfs://x","config":{"s3.access-key-id":"A"}}]`),
	} {
		c.set(table, good)
		if _, err := load(t, newStore(t, Options{}), c.url, "db.t"); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

// endless sends JSON that does not end.
func endless(w http.ResponseWriter, _ *http.Request) {
	block := append(bytes.Repeat([]byte(" "), 1<<20-1), '\n')
	for range maxTable>>20 + 16 {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// An answer is not read further than it may be long.
func TestCatalogHuge(t *testing.T) {
	c := newCatalog(t)
	c.set("/v1/config", endless)
	if _, err := load(t, newStore(t, Options{}), c.url, "db.t"); err == nil || !strings.Contains(err.Error(), "want at most 256 MiB") {
		t.Error(err)
	}
	c.set("/v1/config", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		endless(w, r)
	})
	s := newStore(t, Options{})
	if _, err := load(t, s, c.url, "db.t"); err == nil || s.Stats().BytesRead > 1<<20 {
		t.Errorf("%v, %d bytes", err, s.Stats().BytesRead)
	}
}

// Errors say what the catalog has said, in a short line without secrets, and whether another
// attempt may help.
func TestCatalogErrors(t *testing.T) {
	c := newCatalog(t)
	t.Setenv(restToken, secret)
	fail := func(status int, body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body) // the client reports it
		}
	}
	says := func(message string) string {
		b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "SomeException", "code": 7}}) // it can't fail
		return string(b)
	}
	for _, tt := range []struct {
		status int
		body   string
		kind   error
		want   string
	}{
		{404, says("no t"), fs.ErrNotExist, c.url + ": the catalog has no table db.t: 404 SomeException no t (check the name and " + restWarehouse + ")"},
		{404, "<html>", fs.ErrNotExist, "the catalog has no table db.t: 404 Not Found"},
		{403, says("you, with " + secret + ",\r\n may not\x1b[1m"), fs.ErrPermission, c.url + `: table db.t: access denied: 403 SomeException you, with REDACTED,\r\n may not\x1b[1m`},
		{401, says(strings.Repeat("x", 1000) + secret), nil, "access denied: 401 SomeException " + strings.Repeat("x", maxQuoted)},
		{401, says(strings.Repeat("x", maxQuoted-5) + secret), nil, strings.Repeat("x", maxQuoted-5) + "REDAC"},
		{503, says("later"), storage.ErrAgain, "too many requests: 503 SomeException later"},
		{429, "", storage.ErrAgain, "too many requests: 429"},
		{500, `{"error":7}`, storage.ErrAgain, "500 Internal Server Error"},
		{400, `{"error":"invalid_scope","error_description":"no ` + secret + `"}`, nil, "400 invalid_scope no REDACTED"},
		{204, "", nil, "the request failed: No Content"},
	} {
		c.set("/v1/namespaces/db/tables/t", fail(tt.status, tt.body))
		_, err := load(t, newStore(t, Options{Retries: -1}), c.url, "db.t")
		if err == nil || !strings.Contains(err.Error(), tt.want) || tt.kind != nil && !errors.Is(err, tt.kind) || strings.Contains(fmt.Sprintf("%+v", err), secret) {
			t.Errorf("%d: %v, want %q", tt.status, err, tt.want)
		}
	}
	t.Setenv(restToken, "")
	for _, status := range []int{401, 403} {
		c.set("/v1/namespaces/db/tables/t", fail(status, ""))
		if _, err := load(t, newStore(t, Options{}), c.url, "db.t"); err == nil || !strings.Contains(err.Error(), "(set "+restToken) {
			t.Error(err)
		}
	}
	n := 0
	c.set("/v1/namespaces/db/tables/t", func(w http.ResponseWriter, _ *http.Request) {
		if n++; n < 3 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, tableText("s3://b/t", "")) // the client reports it
	})
	start := time.Now()
	if _, err := load(t, newStore(t, Options{}), c.url, "db.t"); err != nil || time.Since(start) < 2*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

// Redirects lead to where they point, but credentials do not leave their host, and nothing leaves
// encryption.
func TestCatalogRedirects(t *testing.T) {
	c, other := newCatalog(t), newCatalog(t)
	other.url = strings.Replace(other.url, "127.0.0.1", "localhost", 1)
	t.Setenv(restToken, secret)
	to := func(where string, status int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, where, status) }
	}
	table := "/v1/namespaces/db/tables/t"
	c.set("/moved", tableText("s3://b/t", ""))
	c.set(table, to(c.url+"/moved", 308))
	if _, err := load(t, newStore(t, Options{}), c.url, "db.t"); err != nil || c.paths()[2] != "GET /moved Bearer "+secret {
		t.Error(err)
	}
	c.set(table, to(other.url+table, 307))
	if _, err := load(t, newStore(t, Options{}), c.url, "db.t"); err != nil {
		t.Error(err)
	}
	if got := other.paths(); len(got) != 1 || got[0] != "GET "+table {
		t.Errorf("%q", got)
	}
	c.set(table, to("/v1/namespaces/db/tables/t", 302))
	if _, err := load(t, newStore(t, Options{Retries: -1}), c.url, "db.t"); err == nil || strings.Contains(err.Error(), secret) {
		t.Error(err)
	}
	t.Setenv(restToken, "")
	t.Setenv(restCredential, "a:"+secret)
	for _, status := range []int{302, 307, 308} {
		c.set("/v1/oauth/tokens", to(other.url+"/v1/oauth/tokens?x="+secret, status))
		if _, err := load(t, newStore(t, Options{Retries: -1}), c.url, "db.t"); !errors.Is(err, fault.ErrUnsupported) || strings.Contains(err.Error(), secret) || len(other.paths()) > 0 {
			t.Errorf("%d: %v", status, err)
		}
	}
	t.Setenv(restCredential, "")
	safe := httptest.NewTLSServer(http.HandlerFunc(to(c.url+"/v1/config", 307)))
	defer safe.Close()
	s := newStore(t, Options{Retries: -1})
	base := s.http.Transport.(*transport).base.(*http.Transport)
	base.TLSClientConfig = safe.Client().Transport.(*http.Transport).TLSClientConfig
	base.TLSClientConfig.RootCAs.AddCert(&x509.Certificate{Raw: safe.Certificate().Raw})
	c.paths()
	if _, err := load(t, s, safe.URL, "db.t"); !errors.Is(err, fault.ErrUnsupported) || len(c.paths()) > 0 {
		t.Error(err)
	}
}

// A catalog that does not answer is left when the context ends.
func TestCatalogCancel(t *testing.T) {
	c := newCatalog(t)
	t.Setenv(restCredential, "a:b")
	for _, path := range []string{"/v1/oauth/tokens", "/v1/config", "/v1/namespaces/db/tables/t"} {
		old := c.answers[path]
		c.set(path, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		start := time.Now()
		if _, err := newStore(t, Options{}).LoadTable(ctx, c.url, "db.t", false); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 5*time.Second {
			t.Errorf("%s: %v after %v", path, err, time.Since(start))
		}
		cancel()
		c.set(path, old)
	}
}
