// Package slowproxy stands between a client and an object store and behaves like
// a network and a store that are slow and fail: it delays and limits answers,
// refuses requests, and cuts connections. It counts what passes.
//
// Tests use it, and measurements that run other programs through it. It passes
// the client's Host header on, since S3 signatures cover it.
package slowproxy

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Faults configures the delays and failures of a [Proxy]. The zero value has none. Whether a request fails depends on Seed, on the request and on
// how often it was seen before, not on the order of requests, so a run that
// makes the same requests meets the same faults.
type Faults struct {
	Delay time.Duration // before each answer's first byte
	Rate  int64         // bytes a second that a connection carries in each direction; 0: no limit
	// Fail is the share of requests that are refused, in turn with 503 SlowDown,
	// 500 InternalError and 503 ServiceUnavailable.
	Fail float64
	// Cut is the share of requests whose connection breaks at a random byte of
	// the request's or the answer's body.
	Cut float64
	// Hang is the share of requests that are never answered. Every other one is passed on
	// all the same, whole.
	Hang float64
	// Expire refuses all requests after the first Expire ones since Set with
	// ExpiredToken. 0: never.
	Expire int
	// Refuse, if not nil, is called before a request is passed on, by many
	// goroutines at once. If it returns a status, the request is refused with that
	// and the code, as S3 words it. It may also change objects in the store.
	Refuse func(r *http.Request) (status int, code string)
	// Only, if not nil, chooses the requests that Fail, Cut, Hang and Expire apply to.
	Only func(r *http.Request) bool
	Seed uint64
}

// Request describes a request that has passed.
type Request struct {
	Method string
	Path   string // with the bucket
	Query  string
	Range  string // the header's
	Status int    // 0: the connection was cut before the answer
	In     int64  // bytes of the request's body
	Out    int64  // bytes of the answer's body
	Fault  string // "", "cut", "hang", or the code of the refusal
	// When it came, and when the answer's last byte went out, in microseconds since 1970.
	Start, End int64
}

// Proxy is an [http.Handler] that passes requests on to one target. Its methods
// may be called at any time by many goroutines.
type Proxy struct {
	target *url.URL
	client *http.Transport

	mu     sync.Mutex
	faults Faults
	since  int            // requests since Set that Only chose
	seen   map[string]int // requests alike
	log    []*Request
	conns  map[net.Conn]*pace
}

// New returns a proxy for a server at http://HOST:PORT or unix:/PATH.
func New(target string) (*Proxy, error) {
	p := &Proxy{seen: map[string]int{}, conns: map[net.Conn]*pace{}, client: &http.Transport{
		MaxIdleConnsPerHost: 256, DisableCompression: true, ExpectContinueTimeout: time.Second,
	}}
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		p.client.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		target = "http://target"
	}
	var err error
	p.target, err = url.Parse(target)
	if err == nil && (p.target.Scheme != "http" || p.target.Host == "") {
		err = fmt.Errorf("target %s: want http://HOST:PORT or unix:/PATH", target)
	}
	return p, err
}

// Set changes the faults for the requests that come from now on.
func (p *Proxy) Set(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults, p.since, p.seen = f, 0, map[string]int{}
}

// Requests returns the requests since the last Reset that are complete. One is
// complete before the last bytes of its answer go out, so that a client that has
// the whole answer finds it here.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Request
	for _, r := range p.log {
		all = append(all, *r)
	}
	return all
}

// Reset forgets the requests.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = nil
}

// Close closes idle connections to the target.
func (p *Proxy) Close() { p.client.CloseIdleConnections() }

// fate is the failure of one request, if any.
type fate struct {
	refuse string // a code of S3's
	status int
	cut    int64 // after so many bytes of the body; negative: never
	answer bool  // the answer's body is cut, not the request's
	hang   bool  // there is no answer
}

// wait waits for the end of a request that is not answered.
func (f fate) wait(r *http.Request, done *Request) {
	if f.hang {
		done.Fault = "hang"
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
}

// fate decides what happens to a request.
func (p *Proxy) fate(r *http.Request) (Faults, fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, what := p.faults, fate{cut: -1}
	if f.Only != nil && !f.Only(r) {
		return f, what
	}
	p.since++
	if f.Expire > 0 && p.since > f.Expire {
		return f, fate{refuse: "ExpiredToken", status: http.StatusBadRequest, cut: -1}
	}
	query := r.URL.Query()
	query.Del("uploadId") // each run has others
	alike := r.Method + " " + r.URL.Path + "?" + query.Encode() + " " + r.Header.Get("Range")
	h := fnv.New64a()
	h.Write([]byte(alike))
	random := rand.New(rand.NewPCG(f.Seed, h.Sum64()+uint64(p.seen[alike])))
	p.seen[alike]++
	switch dice := random.Float64(); {
	case dice < f.Fail:
		what.status = http.StatusServiceUnavailable
		switch random.IntN(3) {
		case 0:
			what.refuse = "SlowDown"
		case 1:
			what.refuse = "ServiceUnavailable"
		case 2:
			what.refuse, what.status = "InternalError", http.StatusInternalServerError
		}
	case dice < f.Fail+f.Cut:
		what.cut = random.Int64N(64 << 10)
		if random.IntN(2) == 0 {
			what.cut = random.Int64N(8 << 20) // deep within large bodies
		}
		what.answer = r.ContentLength <= 0 || random.IntN(2) == 0
		if !what.answer {
			what.cut %= r.ContentLength
		}
	case dice >= 1-f.Hang:
		if what.hang = true; random.IntN(2) == 0 {
			what.refuse = "hang" // not passed on
		}
	}
	return f, what
}

// ServeHTTP implements [http.Handler].
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, what := p.fate(r)
	pace := p.pace(r)
	done := &Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Range: r.Header.Get("Range"), Fault: what.refuse, Start: time.Now().UnixMicro()}
	complete := sync.OnceFunc(func() {
		done.End = time.Now().UnixMicro()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.log = append(p.log, done)
	})
	defer complete()
	first := time.Now().Add(f.Delay)
	if f.Refuse != nil {
		if status, code := f.Refuse(r); status != 0 {
			done.Fault, what.refuse, what.status = code, code, status
		}
	}
	if what.refuse != "" {
		done.In, _ = io.Copy(io.Discard, r.Body)
		what.wait(r, done)
		sleep(r.Context(), time.Until(first))
		done.Status = what.status
		refuse(w, r, what)
		return
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = p.target.Scheme, p.target.Host, ""
	out.Header.Del("Connection")
	body := &limited{r: r.Body, ctx: r.Context(), pace: &pace.in, rate: f.Rate, left: -1}
	if !what.answer {
		body.left = what.cut
	}
	out.Body = io.NopCloser(body)
	if r.ContentLength == 0 {
		out.Body = http.NoBody
	}
	resp, err := p.client.RoundTrip(out)
	done.In = body.n.Load()
	if err != nil {
		done.Fault = "cut"
		panic(http.ErrAbortHandler) // as if the target's connection were the client's
	}
	defer resp.Body.Close()
	what.wait(r, done)
	sleep(r.Context(), time.Until(first))
	maps.Copy(w.Header(), resp.Header)
	w.Header().Del("Connection")
	if resp.ContentLength >= 0 {
		w.Header().Set("Content-Length", fmt.Sprint(resp.ContentLength))
	}
	answer := &limited{r: resp.Body, ctx: r.Context(), pace: &pace.out, rate: f.Rate, left: -1}
	answer.read = func(n int64) {
		if n == resp.ContentLength {
			done.Out = n
			complete()
		}
	}
	if what.answer {
		answer.left = what.cut
		if resp.ContentLength > 0 {
			answer.left %= resp.ContentLength
		}
	}
	if answer.left == 0 || what.answer && resp.ContentLength <= 0 {
		done.Fault = "cut" // the server did it, but the client gets no answer
		panic(http.ErrAbortHandler)
	}
	done.Status = resp.StatusCode
	w.WriteHeader(resp.StatusCode)
	n, err := io.CopyBuffer(struct{ io.Writer }{w}, answer, make([]byte, 64<<10))
	p.mu.Lock()
	defer p.mu.Unlock()
	if done.Out = n; err != nil {
		done.Fault = "cut"
		panic(http.ErrAbortHandler)
	}
}

// refuse answers as S3 does.
func refuse(w http.ResponseWriter, r *http.Request, what fate) {
	body := fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>`+"\n"+`<Error><Code>%s</Code><Message>refused by the proxy</Message><RequestId>0</RequestId></Error>`, what.refuse)
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(what.status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, body)
	}
}

// errCut ends a body.
var errCut = errors.New("the proxy cuts the connection")

// limited reads a body at a connection's rate, up to where it is cut.
type limited struct {
	r    io.Reader
	ctx  context.Context
	pace *clock
	rate int64
	left int64         // bytes before the cut; negative: no cut
	n    atomic.Int64  // bytes read; the transport may still be reading when it has the answer
	read func(n int64) // if not nil, learns of all bytes read before they are passed on
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left == 0 {
		return 0, errCut
	}
	if l.left > 0 {
		b = b[:min(int64(len(b)), l.left)]
	}
	n, err := l.r.Read(b)
	total := l.n.Add(int64(n))
	if n > 0 && l.read != nil {
		l.read(total)
	}
	if l.left > 0 {
		l.left -= int64(n)
	}
	if l.rate > 0 {
		l.pace.wait(l.ctx, time.Duration(float64(n)/float64(l.rate)*float64(time.Second)))
	}
	return n, err
}

// clock is the time at which a connection will have sent all bytes passed to it.
type clock struct{ at time.Time }

// wait adds to the time that the connection is busy, and sleeps until then.
// Sleeps of less than a millisecond add up first.
func (c *clock) wait(ctx context.Context, d time.Duration) {
	now := time.Now()
	if c.at.Before(now.Add(-10 * time.Millisecond)) {
		c.at = now
	}
	c.at = c.at.Add(d)
	if ahead := c.at.Sub(now); ahead > time.Millisecond {
		sleep(ctx, ahead)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// pace is the state of a connection, which serves one request at a time.
type pace struct{ in, out clock }

type connKey struct{}

// pace returns the state of a request's connection.
func (p *Proxy) pace(r *http.Request) *pace {
	c, ok := r.Context().Value(connKey{}).(net.Conn)
	if !ok {
		return new(pace)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns[c] == nil {
		p.conns[c] = new(pace)
	}
	return p.conns[c]
}

// Server returns a server of the proxy. It distinguishes connections, which
// Rate needs.
func (p *Proxy) Server() *http.Server {
	return &http.Server{
		Handler:           p,
		ReadHeaderTimeout: time.Minute,
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState: func(c net.Conn, s http.ConnState) {
			if s == http.StateClosed {
				p.mu.Lock()
				defer p.mu.Unlock()
				delete(p.conns, c)
			}
		},
	}
}

// Direct sends a request to the target as it is: without faults, and uncounted.
// The caller closes the answer's body.
func (p *Proxy) Direct(req *http.Request) (*http.Response, error) {
	host := req.URL.Host
	req = req.Clone(req.Context())
	req.Host, req.URL.Scheme, req.URL.Host = host, p.target.Scheme, p.target.Host
	return p.client.RoundTrip(req)
}
