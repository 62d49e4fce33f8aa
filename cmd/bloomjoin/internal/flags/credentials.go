package flags

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/cloud"
)

// tokenEnv is the environment variable with the token that --store-option credentials-url
// is asked with. It is not on the command line, which other users of a machine can see.
const tokenEnv = "BLOOMJOIN_CREDENTIALS_TOKEN"

// Bounds on an answer with credentials.
const (
	maxCredentials  = 64 << 10 // bytes
	maxRefusal      = 500      // bytes of the text of a refusal that are shown
	credentialsWait = 2 * time.Minute
)

// credentialsServer answers with the credentials of buckets, as JSON.
type credentialsServer struct {
	address *url.URL
	token   string
	client  *http.Client
}

// setCredentials makes the store ask a server for credentials.
func setCredentials(o *cloud.Options, value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errors.New("want a URL")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return errors.New("want https, or http on this machine")
	}
	s := &credentialsServer{address: u, token: os.Getenv(tokenEnv), client: &http.Client{
		Timeout:       credentialsWait,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would get the token
	}}
	if loopback(u.Hostname()) {
		s.client.Transport = &http.Transport{} // without a proxy
	}
	o.Credentials = s.ask
	return nil
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// String returns the address without its query, which may be a secret.
func (s *credentialsServer) String() string {
	return (&url.URL{Scheme: s.address.Scheme, Host: s.address.Host, Path: s.address.Path}).String()
}

// ask returns the credentials of a bucket.
func (s *credentialsServer) ask(ctx context.Context, bucket string) (cloud.Credentials, error) {
	body, err := s.get(ctx, bucket)
	if err != nil {
		return cloud.Credentials{}, fmt.Errorf("%s: %w", s, err)
	}
	var a struct {
		AccessKeyID     string     `json:"access_key_id"`
		SecretAccessKey string     `json:"secret_access_key"`
		SessionToken    string     `json:"session_token"`
		Token           string     `json:"token"`
		ExpiresAt       *time.Time `json:"expires_at"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return cloud.Credentials{}, fmt.Errorf("%s: the answer has another form: want a JSON object with strings, expires_at as 2026-01-02T15:04:05Z (change the program that answers)", s)
	}
	missing := ""
	switch s3 := strings.HasPrefix(bucket, "s3://"); {
	case s3 && a.AccessKeyID == "":
		missing = "access_key_id"
	case s3 && a.SecretAccessKey == "":
		missing = "secret_access_key"
	case !s3 && a.Token == "":
		missing = "token"
	}
	if missing != "" {
		return cloud.Credentials{}, fmt.Errorf("%s: the answer for %s has no %s, which it needs (change the program that answers)", s, bucket, missing)
	}
	c := cloud.Credentials{AccessKeyID: a.AccessKeyID, SecretAccessKey: a.SecretAccessKey, SessionToken: a.SessionToken, Token: a.Token}
	if a.ExpiresAt != nil {
		c.Expires = *a.ExpiresAt
	}
	return c, nil
}

// get returns the body of the answer.
func (s *credentialsServer) get(ctx context.Context, bucket string) ([]byte, error) {
	u := *s.address
	u.RawQuery = strings.TrimPrefix(u.RawQuery+"&url="+url.QueryEscape(bucket), "&")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("want a URL")
	}
	req.Header.Set("Accept", "application/json")
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	answer, err := s.client.Do(req)
	if whole := (*url.Error)(nil); errors.As(err, &whole) {
		err = whole.Err // without the address, whose query may be a secret
	}
	if err != nil {
		return nil, fmt.Errorf("%w (check that the program that answers is running)", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxCredentials+1))
	switch {
	case answer.StatusCode >= 500:
		return nil, fmt.Errorf("%s%w", refusal(answer, body), quiet.Error{Err: storage.ErrAgain})
	case answer.StatusCode != http.StatusOK:
		return nil, errors.New(refusal(answer, body))
	case err != nil:
		return nil, fmt.Errorf("%w%w", err, quiet.Error{Err: storage.ErrAgain})
	case len(body) > maxCredentials:
		return nil, fmt.Errorf("want an answer of at most %s", words.Bytes(int64(maxCredentials)))
	}
	return body, nil
}

// refusal returns the status and the text of an answer without credentials.
func refusal(answer *http.Response, body []byte) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body[:min(len(body), maxRefusal)]), "")), " ")
	return strings.TrimSuffix(answer.Status+": "+cmp.Or(text, "no text"), ": no text")
}
