package cloud

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// Settings of catalogs. They come from the environment alone, since names of tables are logged.
const (
	restToken      = "BLOOMJOIN_REST_TOKEN"      // sent as it is
	restCredential = "BLOOMJOIN_REST_CREDENTIAL" // ID:SECRET, for which a server grants tokens
	restTokens     = "BLOOMJOIN_REST_OAUTH2_URI" // that server
	restScope      = "BLOOMJOIN_REST_SCOPE"
	restWarehouse  = "BLOOMJOIN_REST_WAREHOUSE"
	restSigV4      = "BLOOMJOIN_REST_SIGV4" // the service of AWS for which requests are signed
	restRegion     = "BLOOMJOIN_REST_REGION"
)

const (
	maxTable   = 256 << 20 // bytes
	maxProblem = 64 << 10  // bytes of an answer that reports an error
	maxQuoted  = 300       // bytes of its text
)

// catalog is an Iceberg REST catalog.
type catalog struct {
	web
	b     *bucket  // for requests, which need no slot of the queue: others wait for them
	at    *url.URL // without /v1
	props map[string]string
	lists bool // the catalog has addresses for credentials alone

	credential, service, region string
	aws                         aws.CredentialsProvider // nil: requests are not signed

	token   string
	renew   time.Time // when to ask for another token; zero: never
	secrets []string  // which no error may quote
}

// LoadTable asks an Iceberg REST catalog for a table. Reads of the table's files then use the
// credentials that it has granted, until another table of the same place is loaded.
func (s *store) LoadTable(ctx context.Context, at, table string) (*objects.CatalogTable, error) {
	stopped.Needs(ctx, "Store.LoadTable")
	c, err := s.catalogAt(ctx, at)
	if err != nil {
		return nil, err
	}
	levels, err := c.levels(table)
	if err == nil {
		err = c.configure(ctx)
	}
	if err != nil {
		return nil, err
	}
	t := &granted{catalog: c, name: table, path: "namespaces/" + strings.Join(levels[:len(levels)-1], cmp.Or(c.props["namespace-separator"], "%1F")) + "/tables/" + levels[len(levels)-1]}
	answer, err := t.load(ctx)
	if err == nil {
		err = t.open(ctx, answer)
	}
	if err != nil {
		return nil, err
	}
	return &objects.CatalogTable{MetadataLocation: answer.MetadataLocation, Metadata: answer.Metadata}, nil
}

// catalogAt returns the catalog at an address, to which no request was sent yet.
func (s *store) catalogAt(ctx context.Context, given string) (*catalog, error) {
	at, err := catalogURL("the address of a catalog", withoutVersion(given))
	if err != nil {
		return nil, err
	}
	c := &catalog{web: web{s.http}, at: at, credential: os.Getenv(restCredential), service: os.Getenv(restSigV4), region: os.Getenv(restRegion), token: os.Getenv(restToken)}
	c.b = &bucket{place: place{scheme: schemeHTTP, bucket: at.Host}, s: s, cloud: c, free: true}
	var set []string
	for _, name := range []string{restToken, restCredential, restSigV4} {
		if os.Getenv(name) != "" {
			set = append(set, name)
		}
	}
	if len(set) > 1 {
		return nil, faults.Mismatch(c.place(), "settings of catalogs", "one of them", strings.Join(set, " and "))
	}
	if strings.ContainsFunc(c.token+c.credential, unicode.IsControl) {
		return nil, faults.Mismatch(c.place(), set[0], "a line without control characters", "others")
	}
	_, secret, _ := strings.Cut(c.credential, ":")
	c.secrets = []string{c.token, cmp.Or(secret, c.credential)}
	if c.service != "" {
		err = c.signs(ctx)
	}
	return c, err
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

// withoutVersion drops the end of an address that all requests have.
func withoutVersion(given string) string {
	return strings.TrimSuffix(strings.TrimRight(given, "/"), "/v1")
}

func (c *catalog) place() fault.At { return fault.At{File: c.at.String()} }

// levels returns the parts of a table's name, as they stand in an address. The last is the table.
func (c *catalog) levels(table string) (all []string, err error) {
	wrong := faults.Mismatch(c.place(), "the name of a table", `NAMESPACE.TABLE, with parts that have dots in double quotes`, table)
	for rest, more := table, true; more; {
		var part string
		if in, quoted := strings.CutPrefix(rest, `"`); quoted {
			if part, rest, quoted = strings.Cut(in, `"`); !quoted || rest != "" && rest[0] != '.' {
				return nil, wrong
			}
			rest, more = strings.CutPrefix(rest, ".")
		} else {
			part, rest, more = strings.Cut(rest, ".")
		}
		if strings.Trim(part, ".") == "" || strings.ContainsFunc(part, unicode.IsControl) || strings.Contains(part, `"`) {
			return nil, wrong
		}
		all = append(all, url.PathEscape(part))
	}
	if len(all) < 2 {
		return nil, wrong
	}
	return all, nil
}

// configure asks for the catalog's settings.
func (c *catalog) configure(ctx context.Context) error {
	query := ""
	if w := os.Getenv(restWarehouse); w != "" {
		query = "?warehouse=" + url.QueryEscape(w)
	}
	var answer struct {
		Defaults, Overrides map[string]string
		Endpoints           []string
	}
	if err := c.ask(ctx, c.at.String(), c.at.String()+"/v1/config"+query, &answer); err != nil {
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
	domain := strings.TrimSuffix(c.at.Hostname(), ".cn")
	if os.Getenv(restSigV4) == "" && (!strings.HasSuffix(domain, ".amazonaws.com") || c.props["rest.sigv4-enabled"] != "true" || c.token+c.credential != "") {
		return nil
	}
	c.service = cmp.Or(answer.Overrides["rest.signing-name"], c.service, answer.Defaults["rest.signing-name"], "glue")
	c.region = cmp.Or(answer.Overrides["rest.signing-region"], c.region, answer.Defaults["rest.signing-region"])
	if c.aws == nil {
		return c.signs(ctx)
	}
	return nil
}

// signs finds the credentials for signatures of AWS.
func (c *catalog) signs(ctx context.Context) error {
	cfg, err := c.b.awsConfig(ctx)
	if err != nil {
		return err
	}
	c.aws, c.region = cfg.Credentials, cmp.Or(c.region, cfg.Region)
	return nil
}

// address returns that of a part of the catalog.
func (c *catalog) address(path string) (string, error) {
	prefix := c.props["prefix"]
	if prefix != "" {
		prefix += "/"
	}
	all := c.at.String() + "/v1/" + prefix + path
	if u, err := url.Parse(all); err != nil || u.Host != c.at.Host || strings.ContainsAny(all, "?#") {
		return "", faults.Mismatch(c.place(), "the catalog's settings", "parts of an address", "other characters")
	}
	return all, nil
}

// ask requests JSON. If the token is refused, another one is tried. what is for errors.
func (c *catalog) ask(ctx context.Context, what, address string, to any) error {
	for again := c.credential != ""; ; again = false {
		sign, err := c.signer(ctx)
		if err != nil {
			return err
		}
		err = c.send(ctx, what, address, nil, sign, to)
		var f *failure
		if !errors.As(err, &f) || f.status != http.StatusUnauthorized && f.status != statusExpired {
			return err
		}
		if sign == nil {
			return faults.WithHint(f, "set %s, %s or %s", restToken, restCredential, restSigV4)
		}
		if !again {
			return err
		}
		c.token = ""
	}
}

// statusExpired is the status of answers to requests with an expired token.
const statusExpired = 419

// signer returns what puts credentials into a request; nil: there are none.
func (c *catalog) signer(ctx context.Context) (func(*http.Request) error, error) {
	if c.aws != nil {
		keys, err := c.aws.Retrieve(ctx)
		if err != nil {
			return nil, c.b.failed(new(call), c.at.String(), err).report()
		}
		none := sha256.Sum256(nil) // the body
		return func(r *http.Request) error {
			r.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(none[:]))
			return v4.NewSigner().SignHTTP(r.Context(), keys, r, hex.EncodeToString(none[:]), c.service, c.region, time.Now())
		}, nil
	}
	if c.credential != "" && (c.token == "" || !c.renew.IsZero() && time.Now().After(c.renew)) {
		if err := c.login(ctx); err != nil {
			return nil, err
		}
	}
	token := c.token
	if token == "" {
		return nil, nil
	}
	return func(r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}, nil
}

// login asks for a token.
func (c *catalog) login(ctx context.Context) error {
	at, err := catalogURL(restTokens, cmp.Or(os.Getenv(restTokens), c.at.String()+"/v1/oauth/tokens"))
	if err != nil {
		return err
	}
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {cmp.Or(os.Getenv(restScope), "catalog")}, "client_secret": {c.credential}}
	if id, secret, ok := strings.Cut(c.credential, ":"); ok {
		form.Set("client_id", id)
		form.Set("client_secret", secret)
	}
	var answer struct {
		Token string  `json:"access_token"`
		Valid float64 `json:"expires_in"` // seconds
	}
	if err := c.send(ctx, at.String(), at.String(), form, nil, &answer); err != nil {
		return err
	}
	if answer.Token == "" || strings.ContainsFunc(answer.Token, unicode.IsControl) {
		return faults.Corrupt(fault.At{File: at.String()}, "the answer has no token that can be sent")
	}
	c.token, c.renew = answer.Token, time.Time{}
	if valid := time.Duration(min(answer.Valid, 1e9) * float64(time.Second)); valid > 0 {
		c.renew = time.Now().Add(valid - min(maxMargin, valid/5))
	}
	c.secrets = append(c.secrets, c.token)
	return nil
}

// send sends a request for JSON, again if it has failed for a reason that may pass.
func (c *catalog) send(ctx context.Context, what, address string, form url.Values, sign func(*http.Request) error, to any) error {
	return c.b.s.do(ctx, c.b, other, what, func(ctx context.Context) error {
		method := http.MethodGet
		if form != nil {
			method = http.MethodPost
		}
		req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
		if err != nil {
			return err
		}
		if form != nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		req.Header.Set("X-Iceberg-Access-Delegation", "vended-credentials")
		client := http.Client{Transport: signing{c.client.Transport, req.URL.Host, sign}, CheckRedirect: redirects}
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

// redirects follows redirects of GET requests, from which nobody else on the way can read more.
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
	e := &catalogError{status: status}
	var says struct {
		Error       json.RawMessage
		Description string `json:"error_description"` // of servers that grant tokens
	}
	_ = json.Unmarshal(body, &says) // other texts leave e empty
	if json.Unmarshal(says.Error, &e.says) != nil {
		_ = json.Unmarshal(says.Error, &e.says.Type)
		e.says.Message = says.Description
	}
	e.says.Type, e.says.Message = c.quoted(e.says.Type), c.quoted(e.says.Message)
	return e
}

// quoted returns a text from outside as errors may have it: short, on one line, without secrets.
func (c *catalog) quoted(text string) string {
	for _, secret := range c.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, address.Redacted)
		}
	}
	if len(text) > maxQuoted {
		text = text[:maxQuoted] + "..."
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		text = strconv.Quote(text)
	}
	return text
}

// catalogError is an answer that reports an error.
type catalogError struct {
	status int
	says   struct{ Type, Message string }
}

func (e *catalogError) Error() string { return http.StatusText(e.status) }

func (*catalog) code(err error) (code, text string) {
	var e *catalogError
	if errors.As(err, &e) {
		return e.says.Type, e.says.Message
	}
	return "", ""
}

// noTable says of a failure that the catalog has no such table, if that is what it means.
func (c *catalog) noTable(table string, err error) error {
	var f *failure
	if !errors.As(err, &f) || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return faults.WithHint(fmt.Errorf("%s: the catalog has no table %s: %s%w", c.at, table, f.said(), quiet.Error{Err: err}), "check the name and %s", restWarehouse)
}
