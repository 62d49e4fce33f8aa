package cloud

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Stats counts what a Store has done so far.
type Stats struct {
	Requests     Requests `json:"requests"` // retries included
	BytesRead    int64    `json:"bytes_read"`
	BytesWritten int64    `json:"bytes_written"`
	Retries      int64    `json:"retries"`   // requests that were sent again
	Throttles    int64    `json:"throttles"` // answers that asked for fewer requests (429, 503)
}

// Requests counts requests by kind.
type Requests struct {
	List   int64 `json:"list"`
	Head   int64 `json:"head"`
	Get    int64 `json:"get"`
	Put    int64 `json:"put"`
	Part   int64 `json:"part"` // a part of an upload
	Delete int64 `json:"delete"`
	Other  int64 `json:"other"` // begins, ends and lists uploads
}

// Stats implements [Store].
func (s *store) Stats() Stats {
	c := &s.stats
	n := func(k kind) int64 { return c.requests[k].Load() }
	return Stats{
		Requests:  Requests{n(list), n(head), n(get), n(put), n(part), n(del), n(other)},
		BytesRead: c.read.Load(), BytesWritten: c.written.Load(),
		Retries: c.retries.Load(), Throttles: c.throttles.Load(),
	}
}

// kind is a kind of request.
type kind uint8

const (
	other kind = iota
	list
	head
	get
	put
	part
	del
	kinds
)

type counters struct {
	requests                          [kinds]atomic.Int64
	read, written, retries, throttles atomic.Int64
}

// call follows the requests that an SDK sends for one call. It is in the context of
// the call, because SDKs hide status and header in errors of their own.
type call struct {
	kind    kind
	status  atomic.Int32              // of the last response; 0: none
	after   atomic.Int64              // the last response's Retry-After, in ns
	region  atomic.Pointer[string]    // the bucket's, according to the last response; nil: unknown
	refused atomic.Pointer[time.Time] // since when the last host has refused connections and answered nothing; nil: it has not
}

type callKey struct{}

// withCall returns a context for one call of an SDK.
func withCall(ctx context.Context, k kind) (context.Context, *call) {
	c := &call{kind: k}
	return context.WithValue(ctx, callKey{}, c), c
}

// transport counts requests and bytes, and notes what calls need.
type transport struct {
	base     http.RoundTripper
	stats    *counters
	answered sync.Map // hosts that did
	refusing sync.Map // other hosts: since when, as *time.Time
}

// refusedSince returns since when a host refuses connections. What is long past is
// forgotten.
func (t *transport) refusedSince(host string) *time.Time {
	now := time.Now()
	first, _ := t.refusing.LoadOrStore(host, &now)
	since := first.(*time.Time)
	if now.Sub(*since) > patience {
		t.refusing.Store(host, &now)
		since = &now
	}
	return since
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, _ := req.Context().Value(callKey{}).(*call)
	if c == nil {
		c = new(call)
	}
	c.status.Store(0)
	// If a connection turns out to be closed, the request is sent again on another.
	var sent atomic.Int64
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		t.stats.requests[c.kind].Add(1)
		if sent.Add(1) > 1 {
			t.stats.retries.Add(1)
		}
	}}
	resp, err := t.base.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	_, before := t.answered.Load(req.URL.Host)
	c.refused.Store(nil)
	if !before && errors.Is(err, syscall.ECONNREFUSED) {
		c.refused.Store(t.refusedSince(req.URL.Host))
	}
	if err != nil {
		return nil, err
	}
	if !before {
		t.answered.Store(req.URL.Host, true)
	}
	if req.ContentLength > 0 {
		t.stats.written.Add(req.ContentLength)
	}
	c.status.Store(int32(resp.StatusCode))
	if region := resp.Header.Get("X-Amz-Bucket-Region"); region != "" {
		c.region.Store(&region)
	}
	c.after.Store(int64(retryAfter(resp.Header.Get("Retry-After"))))
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		t.stats.throttles.Add(1)
	}
	resp.Body = &countedBody{resp.Body, t.stats}
	return resp, nil
}

func (t *transport) CloseIdleConnections() {
	if b, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		b.CloseIdleConnections()
	}
}

// retryAfter parses the header of that name: seconds or a time.
func retryAfter(text string) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 16); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

type countedBody struct {
	io.ReadCloser
	stats *counters
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.stats.read.Add(int64(n))
	return n, err
}

// newClient returns a client for many requests to few hosts. It speaks HTTP/1.1,
// so that each request has a connection and its bandwidth for itself.
func newClient(requests int, stats *counters) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	base := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 60 * time.Second,
		ExpectContinueTimeout: time.Second, // a large object that is refused need not be sent
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConns:          4 * requests,
		MaxIdleConnsPerHost:   requests,
		ReadBufferSize:        64 << 10,
		WriteBufferSize:       64 << 10,
		DisableCompression:    true, // ranges are those of the bytes as stored
		Protocols:             protocols,
	}
	return &http.Client{Transport: &transport{base: base, stats: stats}}
}
