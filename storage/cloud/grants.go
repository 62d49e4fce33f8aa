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
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

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
func (c *catalog) load(ctx context.Context) (a tableAnswer, err error) {
	if err = c.ask(ctx, c.table, &a); errors.Is(err, fs.ErrNotExist) {
		var f *failure
		errors.As(err, &f)
		err = faults.WithHint(fmt.Errorf("%s: the catalog has no table %s: %s%w", c.at, c.name, f.said(), quiet.Error{Err: err}), "check the name and %s", restWarehouse)
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
		return a, faults.Mismatch(c.place(), "the catalog's answer", "the table's metadata", "none")
	}
	a.location, _ = parse(metadata.Location) // else none is granted
	return a, nil
}

// grants returns the access to S3 that an answer gives. What it grants for other clouds is not
// used: their own credentials are.
func (c *catalog) grants(a tableAnswer) (all []*grant, _ error) {
	if a.location.scheme != schemeS3 {
		return nil, nil
	}
	if len(a.Credentials) > maxGrants {
		return nil, faults.Unsupported(c.place(), "credentials for more than %d prefixes", maxGrants)
	}
	props := c.props
	for _, v := range append(a.Credentials, vended{}) { // the last stands for the table's settings alone
		scope, err := a.location, error(nil)
		if v.Prefix != "" && schemes[strings.TrimSuffix(v.Prefix, "://")] != schemeS3 {
			scope, err = parse(v.Prefix)
		}
		if err != nil || scope.scheme != schemeS3 || v.Config == nil && len(all) > 0 {
			continue
		}
		props = maps.Clone(c.props)
		for _, more := range []map[string]string{a.Config, v.Config} {
			if more["s3.access-key-id"] != "" { // of another key
				delete(props, "s3.session-token")
				delete(props, "s3.session-token-expires-at-ms")
			}
			maps.Copy(props, more)
		}
		if props["s3.access-key-id"] != "" {
			all = append(all, c.grant(scope, props))
		}
	}
	if g := longest(all, a.location); g != nil {
		all = append(all, c.grant(a.location, g.props)) // other tables may have others for the same prefix
	}
	if len(all) == 0 && props["s3.remote-signing-enabled"] == "true" {
		e := faults.Unsupported(c.place(), "remote signing, by which the catalog signs each request to S3").WithHint("let the catalog vend credentials")
		return nil, fmt.Errorf("%w%w", e, quiet.Error{Err: errors.ErrUnsupported})
	}
	return all, nil
}

// grant returns the access to what is at a name.
func (c *catalog) grant(n name, props map[string]string) *grant {
	g := &grant{place: n.place, key: strings.TrimRight(n.key, "/"), props: props}
	now := Credentials{AccessKeyID: props["s3.access-key-id"], SecretAccessKey: props["s3.secret-access-key"], SessionToken: props["s3.session-token"]}
	if ms, err := strconv.ParseInt(props["s3.session-token-expires-at-ms"], 10, 64); err == nil { // else the service reports the end
		now.Expires = time.UnixMilli(ms)
	}
	g.held = credentials{bucket: g.place.String() + g.key, whole: accessKey, ask: func(ctx context.Context, _ string) (Credentials, error) { return c.again(ctx, n) }}
	g.held.keep(now, time.Now())
	return g
}

// again asks the catalog for other credentials.
func (c *catalog) again(ctx context.Context, n name) (Credentials, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, err := c.known, error(nil)
	if c.lists {
		err = c.ask(ctx, c.table+"/credentials", &a)
	} else {
		a, err = c.load(ctx)
	}
	if err != nil {
		return Credentials{}, err
	}
	all, err := c.grants(a)
	if g := longest(all, n); g != nil {
		return g.held.last, nil
	}
	return Credentials{}, cmp.Or(err, errors.New("the catalog grants none any more"))
}

// open makes the store read the table with the credentials of an answer.
func (c *catalog) open(ctx context.Context, a tableAnswer) (any bool, err error) {
	c.known, c.known.Metadata, c.known.Credentials = a, nil, nil
	all, err := c.grants(a)
	if err != nil {
		return false, err
	}
	s := c.b.s
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
	at, style := g.props["s3.endpoint"], g.props["s3.path-style-access"]
	if at != "" {
		c.BaseEndpoint, c.RequestChecksumCalculation = &at, aws.RequestChecksumCalculationWhenRequired
	}
	if at != "" || style == "true" {
		c.UsePathStyle = style != "false"
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
