package cloud

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// granted is a table of a catalog that grants credentials for its files.
type granted struct {
	catalog *catalog
	name    string
	path    string
	known   tableAnswer // without the metadata

	mu sync.Mutex // the catalog serves one goroutine
}

// tableAnswer is what a catalog answers about a table.
type tableAnswer struct {
	MetadataLocation string `json:"metadata-location"`
	Metadata         json.RawMessage
	Config           map[string]string
	Credentials      []vended `json:"storage-credentials"`
	location         name
}

// vended are credentials for what is below a prefix.
type vended struct {
	Prefix string
	Config map[string]string
}

// grant is access to the objects of a bucket whose keys are, or are below, one key.
type grant struct {
	place
	key    string            // empty: all
	props  map[string]string // as the catalog has sent them
	held   credentials
	bucket *bucket
}

// maxGrants bounds the credentials of a table, since each name is looked up in them.
const maxGrants = 100

// load asks for the table.
func (t *granted) load(ctx context.Context) (a tableAnswer, err error) {
	at, err := t.catalog.address(t.path)
	if err != nil {
		return a, err
	}
	if err = t.catalog.ask(ctx, t.what(), at, &a); errors.Is(err, fs.ErrNotExist) {
		var f *failure
		errors.As(err, &f)
		err = faults.WithHint(fmt.Errorf("%s: the catalog has no table %s: %s%w", t.catalog.at, t.name, f.said(), quiet.Error{Err: err}), "check the name and %s", restWarehouse)
	}
	if err != nil {
		return a, err
	}
	var metadata struct{ Location string }
	if string(a.Metadata) == "null" {
		a.Metadata = nil
	}
	if a.Metadata != nil {
		err = json.Unmarshal(a.Metadata, &metadata)
	}
	if err != nil || a.MetadataLocation == "" {
		return a, faults.Mismatch(t.at(), "the catalog's answer", "the table's metadata", "none")
	}
	a.location, _ = parse(metadata.Location) // else none is granted
	return a, nil
}

func (t *granted) what() string { return t.catalog.at.String() + ": table " + t.name }
func (t *granted) at() fault.At { return fault.At{File: t.what()} }

// grants returns the access to S3 that an answer gives. What it grants for other clouds is not
// used: their own credentials are.
func (t *granted) grants(a tableAnswer) (all []*grant, _ error) {
	if a.location.scheme != schemeS3 {
		return nil, nil
	}
	if len(a.Credentials) > maxGrants {
		return nil, faults.Unsupported(t.at(), "credentials for more than %d prefixes", maxGrants)
	}
	props := t.catalog.props
	for _, c := range append(a.Credentials, vended{}) { // the last stands for the table's settings alone
		scope, err := a.location, error(nil)
		if c.Prefix != "" && schemes[strings.TrimSuffix(c.Prefix, "://")] != schemeS3 {
			scope, err = parse(c.Prefix)
		}
		if err != nil || scope.scheme != schemeS3 || c.Config == nil && len(all) > 0 {
			continue
		}
		props = maps.Clone(t.catalog.props)
		for _, more := range []map[string]string{a.Config, c.Config} {
			if more["s3.access-key-id"] != "" { // of another key
				delete(props, "s3.session-token")
				delete(props, "s3.session-token-expires-at-ms")
			}
			maps.Copy(props, more)
		}
		if props["s3.access-key-id"] != "" {
			all = append(all, t.grant(scope, props))
		}
	}
	if g := longest(all, a.location); g != nil {
		all = append(all, t.grant(a.location, g.props)) // other tables may have others for the same prefix
	}
	if len(all) == 0 && props["s3.remote-signing-enabled"] == "true" {
		e := faults.Unsupported(t.at(), "remote signing, by which the catalog signs each request to S3").WithHint("let the catalog vend credentials")
		return nil, fmt.Errorf("%w%w", e, quiet.Error{Err: errors.ErrUnsupported})
	}
	return all, nil
}

// grant returns the access to what is at a name.
func (t *granted) grant(n name, props map[string]string) *grant {
	g := &grant{place: n.place, key: strings.TrimRight(n.key, "/"), props: props}
	now := Credentials{AccessKeyID: props["s3.access-key-id"], SecretAccessKey: props["s3.secret-access-key"], SessionToken: props["s3.session-token"]}
	if ms, err := strconv.ParseInt(props["s3.session-token-expires-at-ms"], 10, 64); err == nil { // else the service reports the end
		now.Expires = time.UnixMilli(ms)
	}
	g.held = credentials{bucket: g.place.String() + g.key, whole: accessKey, ask: func(ctx context.Context, _ string) (Credentials, error) { return t.again(ctx, n) }}
	g.held.keep(now, time.Now())
	return g
}

// again asks the catalog for other credentials.
func (t *granted) again(ctx context.Context, n name) (Credentials, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.known
	at, err := t.catalog.address(t.path + "/credentials")
	switch {
	case err != nil:
	case t.catalog.lists:
		err = t.catalog.ask(ctx, t.what(), at, &a)
	default:
		a, err = t.load(ctx)
	}
	if err != nil {
		return Credentials{}, err
	}
	all, err := t.grants(a)
	if g := longest(all, n); g != nil {
		return g.held.last, nil
	}
	return Credentials{}, cmp.Or(err, errors.New("the catalog grants none any more"))
}

// open makes the store read the table with the credentials of an answer.
func (t *granted) open(ctx context.Context, a tableAnswer) (any bool, err error) {
	t.known, t.known.Metadata, t.known.Credentials = a, nil, nil
	all, err := t.grants(a)
	if err != nil {
		return false, err
	}
	s := t.catalog.b.s
	for _, g := range all {
		if err := accessKey(g.held.last); err != nil {
			return false, &credentialsError{g.held.bucket, err}
		}
		g.bucket = &bucket{place: g.place, s: s, grant: g}
		if err := g.bucket.openS3(ctx); err != nil {
			return false, err
		}
	}
	s.granting.Lock()
	defer s.granting.Unlock()
	s.grants = append(slices.DeleteFunc(s.grants, func(old *grant) bool {
		return slices.ContainsFunc(all, func(g *grant) bool { return g.place == old.place && g.key == old.key })
	}), all...)
	return len(all) > 0, nil
}

// longest returns the grant with the longest key that holds for a name; nil: there is none.
func longest(all []*grant, n name) (best *grant) {
	for _, g := range all {
		if g.place == n.place && (g.key == "" || n.key == g.key || strings.HasPrefix(n.key, g.key+"/")) && (best == nil || len(g.key) >= len(best.key)) {
			best = g
		}
	}
	return best
}

// readOf returns the bucket from which a name is read: that of a grant, if one holds for the name.
// Outputs are never written with grants, so that no catalog can redirect them.
func (s *store) readOf(ctx context.Context, n name) (*bucket, error) {
	s.granting.RLock()
	g := longest(s.grants, n)
	s.granting.RUnlock()
	if g != nil {
		return g.bucket, nil
	}
	return s.bucketOf(ctx, n.place)
}

// configure sets what the catalog has said about the service.
func (g *grant) configure(c *s3.Options) {
	if g == nil {
		return
	}
	c.Credentials = &g.held // without a cache, which would keep those that were refused
	c.Region = cmp.Or(g.props["client.region"], g.props["s3.region"], c.Region)
	if at := g.props["s3.endpoint"]; at != "" {
		c.BaseEndpoint, c.UsePathStyle = &at, g.props["s3.path-style-access"] != "false"
		c.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	}
	if g.props["s3.path-style-access"] == "true" {
		c.UsePathStyle = true
	}
}

// renew reports whether a request that was refused may pass with other credentials of a catalog.
func (f *failure) renew() bool {
	switch f.status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden: // services disagree
		return f.grant != nil && f.grant.held.refused(f.began)
	}
	return false
}
