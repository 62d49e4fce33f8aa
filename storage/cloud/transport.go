package cloud

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// call follows the requests that an SDK sends for one call. It is in the context of
// the call, because SDKs hide status and header in errors of their own.
type call struct {
	kind    kind
	attempt int // from 0
	began   time.Time
	status  atomic.Int32              // of the last response; 0: none
	after   atomic.Int64              // the last response's Retry-After, in ns
	region  atomic.Pointer[string]    // the bucket's, according to the last response; nil: unknown
	refused atomic.Pointer[time.Time] // since when the last host has refused connections and answered nothing; nil: it has not
}

type callKey struct{}

// withCall returns a context for one call of an SDK.
func withCall(ctx context.Context, k kind, attempt int) (context.Context, *call) {
	c := &call{kind: k, attempt: attempt, began: time.Now()}
	return context.WithValue(ctx, callKey{}, c), c
}

// transport counts requests and bytes, notes what calls need, and bounds how long an answer may
// take. Reads are sent for the second time before that.
type transport struct {
	base  http.RoundTripper
	s     *store
	hosts sync.Map // by name, of *host
}

const (
	// Answers that take longer than the limit are given up: at first firstLimit, later a multiple of
	// what nine of ten answers have taken. It doubles with each attempt. The last attempt waits
	// for mostLimit. These limits are without the time for sending the body.
	firstLimit = 10 * time.Second
	leastLimit = 2 * time.Second
	mostLimit  = time.Minute
	tailFactor = 10
	// hedgeShare is the part of the limit after which a read is sent for the second time.
	hedgeShare = 5
	// stall is how long an answer may take for its next bytes.
	stall = 30 * time.Second
	// firstRate is the speed of uploads, in bytes a second, before one was measured. Bodies may take
	// rateFactor times as long.
	firstRate  = 512 << 10
	buffered   = 4 << 20 // of a body may be under way when the system has taken its last byte
	rateFactor = 4
	fewBytes   = 64 << 10 // of a body that is too short to measure that
)

// errStalled means that no answer came in time, or that it did not go on.
var errStalled = errors.New("no answer in time")

// host is what is known of a host.
type host struct {
	mu       sync.Mutex
	refusing *time.Time      // since when it refuses connections and has answered nothing
	rate     float64         // of uploads; 0: unknown
	took     []time.Duration // by the last answers to requests without much of a body
}

// times is the number of answers that are remembered.
const times = 128

// refusedSince returns since when a host refuses connections; nil: it has answered before. What is
// long past is forgotten.
func (h *host) refusedSince() *time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); len(h.took) > 0 || h.rate > 0 {
		return nil
	} else if h.refusing == nil || now.Sub(*h.refusing) > patience {
		h.refusing = &now
	}
	return h.refusing
}

// limit returns how long an answer to a request with a body of n bytes may take.
func (h *host) limit(c *call, last bool, n int64) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	limit := firstLimit
	if took := slices.Sorted(slices.Values(h.took)); len(took) > 0 {
		limit = max(leastLimit, tailFactor*took[len(took)*9/10])
	}
	if limit = min(limit<<min(c.attempt, 5), mostLimit); last {
		limit = mostLimit
	}
	rate := h.rate
	if rate == 0 {
		rate = firstRate
	}
	return limit + time.Duration(rateFactor*float64(min(max(n, 0), buffered))/rate*float64(time.Second))
}

// note remembers how long the answer to a request with a body of n bytes has taken.
func (h *host) note(n int64, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n < fewBytes {
		h.took = append(h.took[max(len(h.took)-times+1, 0):], d)
		return
	}
	rate := float64(n) / max(d, 1).Seconds()
	if h.rate == 0 {
		h.rate = rate
	}
	h.rate += (rate - h.rate) / 8
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, _ := req.Context().Value(callKey{}).(*call)
	if c == nil {
		c = new(call)
	}
	c.status.Store(0)
	known, _ := t.hosts.LoadOrStore(req.URL.Host, new(host))
	h := known.(*host)
	resp, err := t.first(req, c, h)
	c.refused.Store(nil)
	if errors.Is(err, syscall.ECONNREFUSED) {
		c.refused.Store(h.refusedSince())
	}
	if err != nil {
		return nil, err
	}
	if req.ContentLength > 0 {
		t.s.stats.written.Add(req.ContentLength)
	}
	c.status.Store(int32(resp.StatusCode))
	if region := resp.Header.Get("X-Amz-Bucket-Region"); region != "" {
		c.region.Store(&region)
	}
	c.after.Store(int64(retryAfter(resp.Header.Get("Retry-After"))))
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		t.s.stats.throttles.Add(1)
		t.s.queue.Throttle()
	}
	return resp, nil
}

// first returns the first answer to a request. A read without an answer is sent for the second
// time, if a slot is free and the budget permits it.
func (t *transport) first(req *http.Request, c *call, h *host) (*http.Response, error) {
	limit := h.limit(c, c.attempt >= t.s.opts.Retries, req.ContentLength)
	if c.attempt == 0 {
		t.s.budget.spend(-budgetShare, true)
	}
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		ctx, cancel := context.WithCancelCause(req.Context())
		return t.send(req.WithContext(ctx), c, h, limit, cancel)
	}
	type answer struct {
		resp *http.Response
		err  error
		of   int // the index of its request
	}
	answers, over := make(chan answer), make(chan struct{})
	defer close(over)
	var requests []context.CancelCauseFunc
	send := func(done func()) {
		ctx, cancel := context.WithCancelCause(req.Context())
		of := len(requests)
		requests = append(requests, cancel)
		go func() {
			defer done()
			resp, err := t.send(req.WithContext(ctx), c, h, limit, cancel)
			select {
			case answers <- answer{resp, err, of}:
			case <-over: // the other one was first
				if err == nil {
					_ = resp.Body.Close()
				}
			}
		}()
	}
	send(func() {})
	hedge := time.NewTimer(limit / hedgeShare)
	defer hedge.Stop()
	for failed := 0; ; {
		select {
		case a := <-answers:
			if failed++; a.err != nil && failed < len(requests) {
				continue
			}
			for of, cancel := range requests {
				if of != a.of {
					cancel(nil)
				}
			}
			return a.resp, a.err
		case <-hedge.C:
			if !t.s.queue.TryAcquire() {
				hedge.Reset(limit / hedgeShare)
				continue
			}
			if _, ok := t.s.budget.spend(1, false); !ok {
				t.s.queue.Release()
				continue
			}
			t.s.stats.retries.Add(1)
			send(t.s.queue.Release)
		}
	}
}

// send sends a request once. It is cancelled if no answer comes within the limit after the last
// byte of its body, or the answer does not go on.
func (t *transport) send(req *http.Request, c *call, h *host, limit time.Duration, cancel context.CancelCauseFunc) (*http.Response, error) {
	ctx, begin := req.Context(), time.Now()
	timer := time.AfterFunc(limit, func() { cancel(errStalled) })
	if body := req.Body; body != nil && body != http.NoBody {
		req.Body = &sending{body, timer, limit}
	}
	// If a connection turns out to be closed, the request is sent again on another.
	var sent atomic.Int64
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		t.s.stats.requests[c.kind].Add(1)
		if sent.Add(1) > 1 {
			t.s.stats.retries.Add(1)
		}
	}}
	resp, err := t.base.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	timer.Stop()
	if err != nil {
		if context.Cause(ctx) == errStalled { //nolint:errorlint // the very one
			h.note(0, 2*limit/tailFactor) // at most, the limit doubles
			err = errStalled
		}
		cancel(nil)
		return nil, err
	}
	h.note(req.ContentLength, time.Since(begin))
	resp.Body = &countedBody{resp.Body, &t.s.stats, ctx, cancel, timer}
	return resp, nil
}

// sending is the body of a request, each byte of which puts off the end.
type sending struct {
	io.ReadCloser
	timer *time.Timer
	limit time.Duration
}

func (s *sending) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if n > 0 {
		s.timer.Reset(s.limit)
	}
	return n, err
}

// countedBody is the body of an answer.
type countedBody struct {
	io.ReadCloser
	stats  *counters
	ctx    context.Context //nolint:containedctx // of its request
	cancel context.CancelCauseFunc
	timer  *time.Timer // cancels
}

func (b *countedBody) Read(p []byte) (int, error) {
	b.timer.Reset(stall)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	b.stats.read.Add(int64(n))
	if err != nil && context.Cause(b.ctx) == errStalled { //nolint:errorlint // the very one
		err = errStalled
	}
	return n, err
}

func (b *countedBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
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

// newClient returns a client for many requests to few hosts. It speaks HTTP/1.1,
// so that each request has a connection and its bandwidth for itself.
func newClient(s *store) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	base := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second, // a large object that is refused need not be sent
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConns:          4 * s.opts.Requests,
		MaxIdleConnsPerHost:   s.opts.Requests,
		ReadBufferSize:        64 << 10,
		WriteBufferSize:       64 << 10,
		DisableCompression:    true, // ranges are those of the bytes as stored
		Protocols:             protocols,
	}
	return &http.Client{Transport: &transport{base: base, s: s}}
}
