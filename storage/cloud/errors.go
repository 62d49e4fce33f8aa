package cloud

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// failure is a request that has failed.
type failure struct {
	what    string        // the object or prefix
	status  int           // of the response; 0: none came
	after   time.Duration // how long the service asks to wait
	code    string        // the service's name for the error
	text    string        // the service's message
	region  string        // where the bucket is; empty: unknown
	refused *time.Time    // see call
	err     error
	began   time.Time
	grant   *grant // that was used; nil: none
}

// failed describes a failed request.
func (b *bucket) failed(c *call, key string, err error) *failure {
	f := &failure{what: b.name(key), status: int(c.status.Load()), after: time.Duration(c.after.Load()), refused: c.refused.Load(), err: err, began: c.began, grant: b.grant}
	if b.cloud != nil { // else it could not be opened
		f.code, f.text = b.code(err)
	}
	if region := c.region.Load(); region != nil {
		f.region = *region
	}
	if b.place.scheme == schemeMem && errors.Is(err, fs.ErrNotExist) {
		f.status = http.StatusNotFound
	}
	return f
}

// Unwrap returns the cause and what kind of error it is, for errors.Is.
func (f *failure) Unwrap() []error {
	errs := []error{f.err}
	if f.status == http.StatusForbidden {
		errs = append(errs, fs.ErrPermission)
	}
	switch {
	case f.missing():
		errs = append(errs, fs.ErrNotExist)
	case f.passing():
		errs = append(errs, storage.ErrAgain)
	}
	return errs
}

// Cause returns the code of its cause; empty: the errors that it wraps have one.
func (f *failure) Cause() cause.Code {
	switch {
	case f.missing(), f.wrongRegion(), f.unknownHost():
		return cause.NoObject
	case f.expired(), f.noCredentials():
		return cause.Credentials
	case f.status == http.StatusUnauthorized || f.status == http.StatusForbidden:
		return cause.Denied
	}
	return ""
}

// Error returns the place, the problem in a few words, and the service's message.
func (f *failure) Error() string {
	what, _ := f.words()
	return address.Redact(f.what) + ": " + what + ": " + f.said()
}

// report returns the failure as callers see it, with a hint.
func (f *failure) report() error {
	if _, hint := f.words(); hint != "" {
		return faults.WithHint(f, "%s", hint)
	}
	return f
}

// said returns the service's message, or the cause if it sent none.
func (f *failure) said() string {
	switch {
	case f.status < 300: // an answer with other bytes than requested, or none
		return address.Redact(innermost(f.err).Error())
	case f.code == "" && f.text == "":
		return fmt.Sprintf("%d %s", f.status, http.StatusText(f.status))
	}
	parts := []string{fmt.Sprint(f.status)}
	for _, p := range []string{f.code, f.text} {
		if p != "" {
			parts = append(parts, address.Redact(p))
		}
	}
	return strings.Join(parts, " ")
}

// innermost returns the innermost error, which is the most specific and shortest.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		var op *net.OpError
		if next == nil || errors.As(err, &op) && !errors.As(next, &op) {
			return err
		}
		err = next
	}
}

func (f *failure) words() (what string, hint fault.Text) {
	switch {
	case f.code == "NoSuchBucket" || f.code == "ContainerNotFound":
		return "no such bucket", "check its name, and the {Endpoint} if there is one"
	case f.missing():
		return "no such object", "check the name"
	case lost(f):
		return "the upload no longer exists", "run again"
	case f.expired():
		return "the credentials have expired", "renew them and run again"
	case f.noCredentials():
		return "no credentials", "set those of the cloud, in the environment or its configuration files, or {Anonymous true} for public data"
	case f.wrongRegion():
		if f.region == "" {
			return "the bucket is in another region", "set {Region}"
		}
		return "the bucket is in another region", faults.Textf("set {Region %s}", f.region)
	case f.status == http.StatusUnauthorized || f.status == http.StatusForbidden:
		return "access denied", "check which credentials are in use, and what they permit"
	case f.status == http.StatusTooManyRequests || f.status == http.StatusServiceUnavailable || f.code == "SlowDown":
		return "too many requests", "run again later, or lower {Requests}"
	case errors.Is(f.err, errNoRanges), errors.Is(f.err, errCompressed):
		return "cannot be read", "download the file first"
	case f.status == 0 && f.passing():
		return "no connection", "run again when the network is back"
	case f.unknownHost():
		return "no such host", "check the address, the {Region} and the {Endpoint}"
	}
	return "the request failed", ""
}

// unknownHost reports whether the name of the host has no address.
func (f *failure) unknownHost() bool {
	var dns *net.DNSError
	return errors.As(f.err, &dns) && dns.IsNotFound
}

func (f *failure) missing() bool {
	return f.status == http.StatusNotFound && !lost(f)
}

// expired reports whether credentials were valid once.
func (f *failure) expired() bool {
	switch f.code {
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired", "InvalidAuthenticationInfo":
		return true
	}
	text := f.text + " " + f.err.Error()
	for _, part := range []string{"Request has expired", "SSO session has expired", "invalid_grant", "not valid in the specified time frame"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// noCredentials reports whether none were found, so that nothing was sent.
func (f *failure) noCredentials() bool {
	text := f.err.Error()
	for _, part := range []string{"no EC2 IMDS role found", "could not find default credentials", "DefaultAzureCredential: failed to acquire a token"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

func (f *failure) wrongRegion() bool {
	return f.status == http.StatusMovedPermanently || f.code == "AuthorizationHeaderMalformed" || f.code == "PermanentRedirect"
}

// passing reports whether a later attempt may succeed, with other credentials in
// some cases.
func (f *failure) passing() bool { return f.expired() || lost(f) || f.transient() }

// transient reports whether the same request may succeed if it is sent again.
func (f *failure) transient() bool {
	switch f.code { // also in answers 200 and those of services for credentials
	case "InternalError", "InternalFailure", "SlowDown", "ServiceUnavailable", "ServerBusy", "RequestTimeout", "Throttling", "ThrottlingException", "IDPCommunicationError":
		return true
	}
	switch f.status {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return true
	}
	if f.noCredentials() {
		return false
	}
	switch f.status {
	case 0, http.StatusOK, http.StatusCreated, http.StatusPartialContent, resumeIncomplete: // else the service has decided
		return broken(f.err)
	}
	return false
}

// broken reports whether err is a connection that failed, as opposed to one that
// will never be made.
func broken(err error) bool {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &dns):
		return !dns.IsNotFound
	case errors.As(err, &cert), errors.As(err, &authority):
		return false
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPIPE), errors.Is(err, errStalled), errors.Is(err, errNotKept):
		return true
	}
	return errors.As(err, &network)
}

// changed returns the error of an object that was replaced while it was read.
func changed(name string) error {
	return fmt.Errorf("%s: the object changed while it was read (run again when no process writes it)%w", address.Redact(name), quiet.Error{Err: storage.ErrChanged})
}

// invalid returns the error of a name or setting that cannot be used.
func (b *bucket) invalid(what string) error {
	return fmt.Errorf("%s: %s", b.place, what)
}
