package cloud

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
	gcp "golang.org/x/oauth2/google"
)

// google is a bucket of Google Cloud Storage, by its JSON API.
type google struct {
	client *http.Client
	host   string // with its scheme
	bucket string // with the API's version, as in /storage/v1/b/bucket/o
}

func (b *bucket) openGoogle(ctx context.Context) error {
	transport := b.s.http.Transport
	if project := os.Getenv("GOOGLE_CLOUD_PROJECT"); project != "" && b.s.opts.RequesterPays {
		transport = payer{transport, project}
	}
	emulator := os.Getenv("STORAGE_EMULATOR_HOST")
	if c := b.credentials(token); c != nil {
		transport = bearer{transport, c}
	} else if emulator == "" && !b.s.opts.Anonymous {
		// The tokens are used for as long as the Store, not as ctx.
		found, err := gcp.FindDefaultCredentials(context.WithoutCancel(ctx), "https://www.googleapis.com/auth/cloud-platform")
		if err != nil {
			return b.failed(new(call), "", err)
		}
		transport = bearer{transport, found.TokenSource}
	}
	host := "https://storage." + cmp.Or(os.Getenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN"), "googleapis.com")
	if emulator != "" {
		scheme, rest, ok := strings.Cut(emulator, "://")
		if !ok {
			scheme, rest = "http", emulator
		}
		rest, _, _ = strings.Cut(rest, "/")
		host = scheme + "://" + rest
	}
	g := google{&http.Client{Transport: transport}, host, "/storage/v1/b/" + escape(b.place.bucket) + "/o"}
	b.cloud, b.sink = g, g
	return nil
}

// bearer sends tokens along.
type bearer struct {
	http.RoundTripper
	source oauth2.TokenSource
}

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := await(req.Context(), b.source.Token)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // not sent
		}
		return nil, err
	}
	req = req.Clone(req.Context())
	token.SetAuthHeader(req)
	return b.RoundTripper.RoundTrip(req)
}

// payer names the project that pays for requests.
type payer struct {
	http.RoundTripper
	project string
}

func (p payer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("X-Goog-User-Project", p.project)
	return p.RoundTripper.RoundTrip(req)
}

// escape returns a key as one element of a path.
func escape(key string) string { return strings.ReplaceAll(url.QueryEscape(key), "+", "%20") }

// queried returns a URL with a query of names and values. It leaves out empty values.
func queried(base string, pairs ...string) string {
	query := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			query.Set(pair[0], pair[1])
		}
	}
	if len(query) == 0 {
		return base
	}
	return base + "?" + query.Encode()
}

// object returns the address of an object, see queried.
func (g google) object(key string, pairs ...string) string {
	return queried(g.host+g.bucket+"/"+escape(key), pairs...)
}

// send sends a request. The answer has status 200 or one of those given; its body has to be
// closed.
func (g google) send(req *http.Request, statuses ...int) (*http.Response, error) {
	resp, err := g.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK || slices.Contains(statuses, resp.StatusCode) {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	e := &googleError{status: resp.StatusCode}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return nil, e
	}
	var said struct {
		Error struct {
			Message string
			Errors  []struct{ Reason string }
		}
	}
	if json.Unmarshal(text, &said) == nil {
		if e.text = said.Error.Message; len(said.Error.Errors) > 0 {
			e.reason = said.Error.Errors[0].Reason
		}
	} else if line := strings.TrimSpace(string(text)); len(line) < 1000 && !strings.ContainsAny(line, "<\n") {
		e.text = line // downloads
	}
	return nil, e
}

// googleError is an answer with another status than those wanted.
type googleError struct {
	status       int
	reason, text string
}

func (e *googleError) Error() string { return http.StatusText(e.status) }

func (google) code(err error) (code, text string) {
	var e *googleError
	if errors.As(err, &e) {
		return e.reason, e.text
	}
	return "", ""
}

// maxAnswer bounds answers in JSON: 1,000 keys of 1 KiB, escaped, take less.
const maxAnswer = 64 << 20

// call sends a request with a body of JSON, or none, and decodes the answer into out unless
// that is nil.
func (g google) call(ctx context.Context, method, url string, body []byte, out any) (http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json; charset=UTF-8")
	}
	resp, err := g.send(req, http.StatusNoContent)
	if err != nil {
		return nil, err
	}
	return resp.Header, decode(resp, out)
}

// decode reads an answer to its end, so that its connection is used again.
func decode(resp *http.Response, out any) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err := errors.Join(err, resp.Body.Close()); err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("%w: %w", err, io.ErrUnexpectedEOF) // as a rule it was cut off
	}
	return nil
}

// googleObject describes an object.
type googleObject struct {
	Name       string
	Size       int64 `json:",string"`
	Updated    time.Time
	Generation string
	Metadata   map[string]string
}

func (o googleObject) entry() entry { return entry{o.Name, o.Size, o.Updated, o.Generation, false} }

func (g google) page(ctx context.Context, prefix, delimiter, token string, most int) (entries []entry, next string, err error) {
	var out struct {
		Items         []googleObject
		Prefixes      []string
		NextPageToken string
	}
	from := queried(g.host+g.bucket, "prefix", prefix, "delimiter", delimiter, "pageToken", token, "maxResults", strconv.Itoa(most),
		"fields", "nextPageToken,prefixes,items(name,size,updated,generation)")
	_, err = g.call(ctx, http.MethodGet, from, nil, &out)
	for _, o := range out.Items {
		entries = append(entries, o.entry())
	}
	for _, dir := range out.Prefixes {
		entries = append(entries, entry{key: dir, dir: true})
	}
	return entries, out.NextPageToken, err
}

func (g google) attributes(ctx context.Context, key string) (o googleObject, err error) {
	_, err = g.call(ctx, http.MethodGet, g.object(key), nil, &o)
	if err == nil && o.Generation == "" {
		err = errors.New("the service describes the object without its generation")
	}
	return o, err
}

func (g google) head(ctx context.Context, key string) (entry, error) {
	o, err := g.attributes(ctx, key)
	return o.entry(), err
}

func (g google) get(ctx context.Context, key, identity string, off, n int64) (answer, error) {
	if _, err := strconv.ParseInt(identity, 10, 64); err != nil && identity != "" {
		return answer{}, fmt.Errorf("the identity %q is not a generation", identity)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.object(key, "alt", "media", "ifGenerationMatch", identity), nil)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", off, off+n-1))
	req.Header.Set("Accept-Encoding", "gzip") // as stored, if that is compressed
	resp, err := g.send(req, http.StatusPartialContent)
	if err != nil {
		return answer{}, err
	}
	return ranged(resp.Body, resp.Header.Get("Content-Range"), resp.ContentLength, resp.Header.Get("X-Goog-Generation"), off)
}
