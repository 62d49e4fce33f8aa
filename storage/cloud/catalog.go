package cloud

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// Settings of catalogs. They come from the environment alone, since names of tables are logged.
const (
	restURI        = "BLOOMJOIN_REST_URI"        // of the catalog that lists of inputs may name
	restToken      = "BLOOMJOIN_REST_TOKEN"      // sent as it is
	restCredential = "BLOOMJOIN_REST_CREDENTIAL" // ID:SECRET, for which a server grants tokens
	restTokens     = "BLOOMJOIN_REST_OAUTH2_URI" // that server
	restScope      = "BLOOMJOIN_REST_SCOPE"
	restWarehouse  = "BLOOMJOIN_REST_WAREHOUSE"
	restSigV4      = "BLOOMJOIN_REST_SIGV4" // the service of AWS for which requests are signed
	restRegion     = "BLOOMJOIN_REST_REGION"
)

const (
	maxTable   = 256 << 20 // bytes of an answer
	maxProblem = 64 << 10  // bytes of an answer that reports an error
	maxQuoted  = 300       // bytes of its text
)

// catalog is an Iceberg REST catalog, with the table that it is asked for. One goroutine uses it at
// a time.
type catalog struct {
	mu    sync.Mutex // of the credentials that it is asked for later
	b     *bucket    // for requests
	at    *url.URL   // without /v1
	what  string     // the address as it was given, and the name of the table, for errors
	name  string     // of the table
	table string     // its address
	props map[string]string
	lists bool        // the catalog has addresses for credentials alone
	known tableAnswer // without the metadata

	how, setting string                  // one of the settings, and its value; empty: requests are not authorized
	tokens       credentials             // of which requests have one, unless they are signed
	secret, sent string                  // the part of the setting, and the last token, that no error may quote
	aws          aws.CredentialsProvider // nil: requests are not signed
	service      string
	region       string
}

// LoadTable asks an Iceberg REST catalog for a table. Reads of the table's files then use the
// credentials that it has granted, until another table of the same place is loaded.
func (s *store) LoadTable(ctx context.Context, at, table string, listed bool) (*objects.CatalogTable, error) {
	stopped.Needs(ctx, "Store.LoadTable")
	c, err := s.catalogAt(at)
	if err != nil {
		return nil, err
	}
	if _, named := s.named.Load(withoutVersion(at)); named {
		listed = false
	} else if !listed {
		s.named.Store(withoutVersion(at), true)
	}
	if own := withoutVersion(os.Getenv(restURI)); listed && own != withoutVersion(at) {
		return nil, faults.Mismatch(c.place(), "the catalog that a list of inputs names", "that of "+restURI, strconv.Quote(own)).
			WithHint("set %s to it, if it may have the credentials of your catalog", restURI)
	}
	levels := partsOf.FindAllString(table, -1)
	last := len(levels) - 1
	if last < 1 || strings.Join(levels, ".") != table {
		return nil, faults.Mismatch(c.place(), "the name of a table", "NAMESPACE.TABLE, with double quotes around parts that have dots", table)
	}
	c.name, c.what = table, c.what+": table "+table
	for i, part := range levels {
		levels[i] = url.PathEscape(strings.Trim(part, `"`))
	}
	if err := c.configure(ctx); err != nil {
		return nil, err
	}
	namespace := strings.Join(levels[:last], cmp.Or(c.props["namespace-separator"], "%1F"))
	c.table = strings.TrimSuffix(c.at.String()+"/v1/"+c.props["prefix"], "/") + "/namespaces/" + namespace + "/tables/" + levels[last]
	if _, err := url.Parse(c.table); err != nil || strings.ContainsAny(c.table, "?#") {
		return nil, faults.Mismatch(c.place(), "the catalog's settings", "parts of an address", "other characters")
	}
	answer, err := c.load(ctx)
	if err != nil {
		return nil, err
	}
	grants, err := c.open(ctx, answer)
	return &objects.CatalogTable{MetadataLocation: answer.MetadataLocation, Metadata: answer.Metadata, Grants: grants}, err
}

// partsOf finds the parts of a table's name.
var partsOf = regexp.MustCompile(`"\.*[^".\pC][^"\pC]*"|[^".\pC]+`)

// catalogAt returns the catalog at an address, to which no request was sent yet.
func (s *store) catalogAt(given string) (*catalog, error) {
	at, err := catalogURL("the address of a catalog", withoutVersion(given))
	if err != nil {
		return nil, err
	}
	b := &bucket{place: place{scheme: schemeHTTP, bucket: at.Host}, s: s, cloud: web{s.http}, free: true}
	c := &catalog{b: b, at: at, what: at.String()}
	c.tokens = credentials{bucket: at.String(), ask: c.login, whole: token}
	for _, name := range []string{restToken, restCredential, restSigV4} {
		value := os.Getenv(name)
		switch {
		case value == "":
		case c.how != "":
			return nil, faults.Mismatch(c.place(), "settings of catalogs", "one of them", c.how+" and "+name)
		case strings.ContainsFunc(value, unicode.IsControl):
			return nil, faults.Mismatch(c.place(), name, "one line", "control characters")
		default:
			c.how, c.setting = name, value
		}
	}
	switch c.how {
	case restToken:
		c.tokens.keep(Credentials{Token: c.setting}, time.Now())
	case restCredential:
		c.secret = c.setting[strings.IndexByte(c.setting, ':')+1:]
	}
	return c, nil
}

// catalogURL parses an address to which secrets are sent, without quoting any.
func catalogURL(what, given string) (*url.URL, error) {
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, faults.Mismatch(fault.At{}, what, "https://HOST/PATH", "another text")
	}
	if u.User != nil || strings.ContainsAny(given, "?#") {
		return nil, faults.Mismatch(fault.At{File: u.Scheme + "://" + u.Host + u.Path}, what, "no user, password or query", "some").
			WithHint("set " + restToken + ", " + restCredential + ", " + restSigV4 + " or " + restWarehouse)
	}
	return u, nil
}

// withoutVersion drops the end that all addresses of requests have.
func withoutVersion(given string) string {
	return strings.TrimSuffix(strings.TrimRight(given, "/"), "/v1")
}

func (c *catalog) place() fault.At { return fault.At{File: c.what} }

// configure asks for the catalog's settings.
func (c *catalog) configure(ctx context.Context) error {
	if err := c.signs(ctx, nil); err != nil {
		return err
	}
	query := ""
	if w := os.Getenv(restWarehouse); w != "" {
		query = "?warehouse=" + url.QueryEscape(w)
	}
	var answer struct {
		Defaults, Overrides map[string]string
		Endpoints           []string
	}
	if err := c.ask(ctx, c.at.String()+"/v1/config"+query, &answer); err != nil {
		return err
	}
	c.props = map[string]string{}
	maps.Copy(c.props, answer.Defaults)
	maps.Copy(c.props, answer.Overrides)
	c.lists = slices.Contains(answer.Endpoints, "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials")
	if uri := c.props["uri"]; uri != "" {
		to, err := catalogURL("the address to which the catalog sends its clients", withoutVersion(uri))
		if err != nil {
			return err
		}
		if to.Host != c.at.Host || to.Scheme != c.at.Scheme {
			return faults.Unsupported(c.place(), "the catalog sends its clients to another host").WithHint("name the catalog by %s", to)
		}
		c.at = to
	}
	return c.signs(ctx, answer.Overrides)
}

// signs finds out how requests are signed for AWS, if they are. A catalog can change that, but not
// make a client sign, unless it is one of Amazon's.
func (c *catalog) signs(ctx context.Context, overrides map[string]string) error {
	amazons := strings.HasSuffix(strings.TrimSuffix(c.at.Hostname(), ".cn"), ".amazonaws.com")
	if c.how != restSigV4 && (c.how != "" || !amazons || overrides["rest.sigv4-enabled"] != "true") {
		return nil
	}
	cfg, err := c.b.awsConfig(ctx)
	c.aws, c.service = cfg.Credentials, cmp.Or(overrides["rest.signing-name"], c.setting, "glue")
	c.region = cmp.Or(overrides["rest.signing-region"], os.Getenv(restRegion), cfg.Region)
	return err
}

// ask requests JSON. If the token is refused, another one is tried.
func (c *catalog) ask(ctx context.Context, address string, to any) error {
	for again := c.how == restCredential; ; again = false {
		sign, err := c.signer(ctx)
		if err != nil {
			return err
		}
		err = c.send(ctx, c.what, address, nil, sign, to)
		var f *failure
		switch {
		case !errors.As(err, &f):
			return err
		case sign == nil && f.Cause() == cause.Denied:
			return faults.WithHint(f, "set %s, %s or %s", restToken, restCredential, restSigV4)
		case !again || f.status != http.StatusUnauthorized && f.status != statusExpired:
			return err
		}
		c.tokens.there = false
	}
}

// statusExpired is the status of answers to requests with an expired token.
const statusExpired = 419

// signer returns what puts credentials into a request; nil: there are none.
func (c *catalog) signer(ctx context.Context) (func(*http.Request) error, error) {
	if c.aws != nil {
		keys, err := c.aws.Retrieve(ctx)
		if err != nil {
			return nil, c.b.failed(new(call), c.what, err).report()
		}
		c.sent = keys.SessionToken
		return func(r *http.Request) error {
			r.Header.Set("X-Amz-Content-Sha256", noBody)
			return v4.NewSigner().SignHTTP(r.Context(), keys, r, noBody, c.service, c.region, time.Now())
		}, nil
	}
	if c.how == "" {
		return nil, nil
	}
	got, _, err := c.tokens.now(ctx)
	c.sent = got.Token
	return func(r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+got.Token)
		return nil
	}, err
}

// noBody is the SHA-256 of nothing.
const noBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// login asks for a token.
func (c *catalog) login(ctx context.Context, _ string) (got Credentials, _ error) {
	at, err := catalogURL(restTokens, cmp.Or(os.Getenv(restTokens), c.at.String()+"/v1/oauth/tokens"))
	if err != nil {
		return got, err
	}
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {cmp.Or(os.Getenv(restScope), "catalog")}, "client_secret": {c.secret}}
	if id, _, ok := strings.Cut(c.setting, ":"); ok {
		form.Set("client_id", id)
	}
	var answer struct {
		Token string  `json:"access_token"`
		Valid float64 `json:"expires_in"` // seconds
	}
	if err := c.send(ctx, at.String(), at.String(), form, nil, &answer); err != nil {
		return got, err
	}
	if answer.Token == "" || strings.ContainsFunc(answer.Token, unicode.IsControl) {
		return got, faults.Mismatch(fault.At{File: at.String()}, "the answer", "a token that can be sent", "none")
	}
	got.Token = answer.Token
	if answer.Valid > 0 {
		got.Expires = time.Now().Add(time.Duration(min(answer.Valid, 1e9) * float64(time.Second)))
	}
	return got, nil
}

// send sends a request for JSON, again if it has failed for a reason that may pass. what is for errors.
func (c *catalog) send(ctx context.Context, what, address string, form url.Values, sign func(*http.Request) error, to any) error {
	return c.b.s.do(ctx, c.b, other, what, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, strings.NewReader(form.Encode()))
		if err != nil {
			return err
		}
		if form != nil {
			req.Method = http.MethodPost
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		req.Header.Set("X-Iceberg-Access-Delegation", "vended-credentials")
		client := http.Client{Transport: signing{c.b.s.http.Transport, req.URL.Host, sign}, CheckRedirect: redirects}
		resp, err := client.Do(req)
		if known := (*fault.Error)(nil); errors.As(err, &known) {
			return known // the text around it has an address, perhaps with secrets
		}
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }() // read, or refused
		return c.read(what, resp, to)
	})
}

// read decodes an answer.
func (c *catalog) read(what string, resp *http.Response, to any) error {
	limit := int64(maxTable)
	if resp.StatusCode != http.StatusOK {
		limit = maxProblem
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	at := fault.At{File: what}
	switch {
	case resp.StatusCode != http.StatusOK:
		return c.problem(resp.StatusCode, body)
	case err != nil:
		return err
	case len(body) > maxTable:
		return faults.Wanted(faults.Unsupported(at, "the catalog's answer"), "at most 256 MiB", "more")
	}
	if err := json.Unmarshal(body, to); err != nil {
		return faults.Corrupt(at, "the answer is not that of an Iceberg REST catalog: %s", c.quoted(err.Error())).WithHint("check the address")
	}
	return nil
}

// redirects follows redirects of GET requests, except those that leave encryption.
func redirects(req *http.Request, via []*http.Request) error {
	last := via[len(via)-1]
	if len(via) < 10 && last.Method == http.MethodGet && (last.URL.Scheme == "http" || req.URL.Scheme == "https") {
		return nil
	}
	return faults.Unsupported(fault.At{File: last.URL.Scheme + "://" + last.URL.Host}, "a redirect of this kind").WithHint("name the address to which it leads")
}

// signing puts credentials into requests, those after a redirect included, but not into those to
// other hosts.
type signing struct {
	http.RoundTripper
	host string
	sign func(*http.Request) error
}

func (t signing) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.sign != nil && r.URL.Host == t.host {
		r = r.Clone(r.Context())
		if err := t.sign(r); err != nil {
			return nil, err
		}
	}
	return t.RoundTripper.RoundTrip(r)
}

// problem returns the error that an answer reports.
func (c *catalog) problem(status int, body []byte) error {
	var says struct {
		Error       json.RawMessage
		Description string `json:"error_description"` // of servers that grant tokens
	}
	var e struct{ Type, Message string }
	_ = json.Unmarshal(body, &says) // other texts leave e empty
	if json.Unmarshal(says.Error, &e) != nil {
		_ = json.Unmarshal(says.Error, &e.Type)
		e.Message = says.Description
	}
	refused := &webError{status: status}
	refused.says.Code, refused.says.Message = c.quoted(e.Type), c.quoted(e.Message)
	return refused
}

// quoted returns a text from outside as errors may have it: short, on one line, without secrets.
func (c *catalog) quoted(text string) string {
	for _, secret := range []string{c.sent, c.secret} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, address.Redacted)
		}
	}
	text = strconv.Quote(text[:min(len(text), maxQuoted)])
	return text[1 : len(text)-1]
}
