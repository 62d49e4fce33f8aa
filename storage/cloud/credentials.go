package cloud

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/oauth2"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Credentials permit access to a bucket: for S3 an access key, for Google and Azure a token.
type Credentials struct {
	AccessKeyID, SecretAccessKey string
	SessionToken                 string    // of temporary access keys; else empty
	Token                        string    // an OAuth 2.0 access token
	Expires                      time.Time // zero: never
}

// String keeps credentials out of logs.
func (Credentials) String() string { return address.Redacted }

// GoString is String for %#v.
func (Credentials) GoString() string { return address.Redacted }

// maxMargin is how long before they expire credentials are renewed. Credentials that are valid
// for a short time are renewed after four fifths of it.
const maxMargin = time.Minute

// credentialsError reports that Options.Credentials has failed. Requests are not sent again
// for it.
type credentialsError struct {
	bucket string
	err    error
}

func (e *credentialsError) Error() string { return e.bucket + ": no credentials: " + e.err.Error() }
func (e *credentialsError) Unwrap() error { return e.err }

// credentials holds the credentials of a bucket, and asks Options.Credentials for new ones
// shortly before they expire.
type credentials struct {
	bucket string // its URL
	ask    func(ctx context.Context, bucket string) (Credentials, error)
	whole  func(Credentials) error // returns an error if a part is missing

	mu    sync.Mutex
	last  Credentials
	renew time.Time // when to ask again; zero: never
	there bool
	got   time.Time // when the last ones came
	tried time.Time // when they were last renewed because a service had refused them

	failed error     // of the last attempt to renew them
	ended  time.Time // when it failed
}

// credentials returns those of a catalog or of Options.Credentials, nil without.
func (b *bucket) credentials(whole func(Credentials) error) *credentials {
	if b.grant != nil {
		return &b.grant.held
	}
	if b.s.opts.Credentials == nil {
		return nil
	}
	return &credentials{bucket: strings.TrimRight(b.place.String(), "/"), ask: b.s.opts.Credentials, whole: whole}
}

// accessKey returns an error if the credentials have no access key.
func accessKey(c Credentials) error {
	if c.AccessKeyID == "" || c.SecretAccessKey == "" {
		return errors.New("want an access key and its secret")
	}
	return nil
}

// token returns an error if the credentials have no token.
func token(c Credentials) error {
	if c.Token == "" {
		return errors.New("want a token")
	}
	return nil
}

// get returns the credentials, and when to ask for them again.
func (c *credentials) get(ctx context.Context) (got Credentials, until time.Time, err error) {
	got, err = await(ctx, func() (Credentials, error) {
		got, until, err := c.now(ctx)
		got.Expires = until
		return got, err
	})
	return got, got.Expires, err
}

func (c *credentials) now(ctx context.Context) (Credentials, time.Time, error) {
	began := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.there && (c.renew.IsZero() || now.Before(c.renew)) {
		return c.last, c.renew, nil
	}
	if began.Before(c.ended) { // all that waited for one attempt share its error
		return Credentials{}, time.Time{}, c.failed
	}
	fresh, err := c.ask(ctx, c.bucket)
	if err == nil {
		err = c.whole(fresh)
	}
	if err == nil && !fresh.Expires.IsZero() && !fresh.Expires.After(now) {
		err = fmt.Errorf("they have expired at %s%w", fresh.Expires.UTC().Format(time.RFC3339), quiet.Error{Err: storage.ErrAgain})
	}
	switch {
	case err == nil:
		c.keep(fresh, now)
	case c.there && now.Before(c.last.Expires): // they are still valid for a moment
		return c.last, c.last.Expires, nil
	default:
		err = &credentialsError{c.bucket, err}
		if ctx.Err() == nil {
			c.failed, c.ended = err, time.Now()
		}
		return Credentials{}, time.Time{}, err
	}
	return c.last, c.renew, nil
}

// keep makes fresh the last ones, which came now.
func (c *credentials) keep(fresh Credentials, now time.Time) {
	c.last, c.renew, c.there, c.got = fresh, time.Time{}, true, now
	if valid := fresh.Expires.Sub(now); !fresh.Expires.IsZero() {
		c.renew = fresh.Expires.Add(-min(maxMargin, valid/5))
	}
}

// refused reports whether a request that a service has refused may pass with other credentials:
// newer ones, or those that the next call of get asks for. That is not more often than credentials
// are renewed otherwise.
func (c *credentials) refused(began time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if began.Before(c.got) {
		return true
	}
	if now.Sub(c.tried) < maxMargin {
		return false
	}
	c.tried, c.renew = now, now
	return true
}

// Retrieve implements [aws.CredentialsProvider].
func (c *credentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	got, until, err := c.get(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	return aws.Credentials{
		AccessKeyID: got.AccessKeyID, SecretAccessKey: got.SecretAccessKey, SessionToken: got.SessionToken,
		Source: "bloomjoin", CanExpire: !until.IsZero(), Expires: until,
	}, nil
}

// Token implements [oauth2.TokenSource] for Google.
func (c *credentials) Token() (*oauth2.Token, error) {
	got, _, err := c.get(context.Background())
	if err != nil {
		return nil, err
	}
	return &oauth2.Token{AccessToken: got.Token, TokenType: "Bearer"}, nil
}

// unknownValidity is how long the client of Azure keeps a token that never expires before
// it asks for it again.
const unknownValidity = time.Hour

// GetToken implements [azcore.TokenCredential].
func (c *credentials) GetToken(ctx context.Context, _ policy.TokenRequestOptions) (azcore.AccessToken, error) {
	got, until, err := c.get(ctx)
	if err != nil {
		return azcore.AccessToken{}, err
	}
	if until.IsZero() {
		until = time.Now().Add(unknownValidity)
	}
	return azcore.AccessToken{Token: got.Token, ExpiresOn: until}, nil
}
