package main

import (
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// kind is what a request costs a store.
type kind int

const (
	listing kind = iota
	reading
	writing
	kinds
)

func (k kind) String() string { return [kinds]string{"list", "read", "write"}[k] }

func kindOf(r *http.Request) kind {
	switch {
	case (r.Method == http.MethodGet || r.Method == http.MethodHead) && keyOf(r) == "":
		return listing
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		return reading
	}
	return writing
}

// keyOf returns the key that a request is about; empty: the bucket.
func keyOf(r *http.Request) string {
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return key
}

// model says when answers come, see the package comment.
type model struct {
	median, late [kinds]time.Duration
	rate, nic    float64
	perSecond    [kinds]float64
	partitions   int
	seed         uint64

	mu      sync.Mutex
	seen    map[uint64]uint64 // how often a request came
	shares  map[share]*bucket
	wire    bucket // of all connections
	counted map[string]*count
}

// share is what a partition takes of one kind of request.
type share struct {
	partition int
	kind      kind
}

// count describes the requests of a method.
type count struct {
	Requests int   `json:"requests"`
	Refused  int   `json:"refused,omitempty"`
	In       int64 `json:"bytes_in"`
	Out      int64 `json:"bytes_out"`
}

// newModel returns a store of one partition as S3's documentation and published measurements
// have it: answers to small requests within 100 to 200 ms at the latest, 85 to 90 MB/s a connection,
// 5,500 reads and 3,500 writes a second and prefix; and a network of 10 Gbit/s.
func newModel() *model {
	const ms = time.Millisecond
	return &model{
		median: [kinds]time.Duration{60 * ms, 30 * ms, 40 * ms}, late: [kinds]time.Duration{300 * ms, 180 * ms, 250 * ms},
		rate: 90e6, nic: 1250e6, perSecond: [kinds]float64{0, 5500, 3500}, partitions: 1, seed: 1,
		seen: map[uint64]uint64{}, shares: map[share]*bucket{}, counted: map[string]*count{},
	}
}

// bucket holds tokens that come back with time.
type bucket struct {
	left float64
	last time.Time
}

// take takes n tokens of rate a second, and says how long until they were there. most bounds what
// is kept.
func (b *bucket) take(now time.Time, n, rate, most float64) time.Duration {
	b.left = min(b.left+now.Sub(b.last).Seconds()*rate, most) - n
	b.last = now
	return time.Duration(max(-b.left, 0) / rate * 1e9)
}

// serve answers a request as late as the model says.
func (m *model) serve(w http.ResponseWriter, r *http.Request, s *store) {
	k := kindOf(r)
	c := m.count(r)
	if !m.admits(k, keyOf(r)) {
		m.add(func() { c.Refused++ })
		_, _ = io.Copy(io.Discard, r.Body)
		refuse(w, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
		return
	}
	r.Body = &paced{body: r.Body, m: m, count: &c.In}
	time.Sleep(m.delay(k, r))
	out := &pacedWriter{ResponseWriter: w, m: m, count: &c.Out}
	s.serve(out, r)
}

// admits reports whether the partition of a key takes another request.
func (m *model) admits(k kind, key string) bool {
	rate := m.perSecond[k]
	if rate == 0 {
		return true
	}
	at := share{int(hash(key) % uint64(m.partitions)), k}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.shares[at]
	if b == nil {
		b = &bucket{rate, time.Now()}
		m.shares[at] = b
	}
	if b.take(time.Now(), 1, rate, rate) == 0 {
		return true
	}
	b.left++
	return false
}

// delay returns the time to the first byte of an answer.
func (m *model) delay(k kind, r *http.Request) time.Duration {
	h := hash(r.Method + r.URL.String() + r.Header.Get("Range"))
	m.mu.Lock()
	m.seen[h]++
	random := rand.New(rand.NewPCG(m.seed, h+m.seen[h]))
	m.mu.Unlock()
	const z99 = 2.326
	sigma := math.Log(float64(m.late[k])/float64(m.median[k])) / z99
	return time.Duration(float64(m.median[k]) * math.Exp(sigma*random.NormFloat64()))
}

func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, s)
	return h.Sum64()
}

// pass waits until n bytes have passed a connection, and the network of all.
func (m *model) pass(n int, from time.Time) {
	until := from
	if m.rate > 0 {
		until = from.Add(time.Duration(float64(n) / m.rate * 1e9))
	}
	if m.nic > 0 {
		m.mu.Lock()
		now := time.Now()
		if wait := m.wire.take(now, float64(n), m.nic, m.nic/50); now.Add(wait).After(until) {
			until = now.Add(wait)
		}
		m.mu.Unlock()
	}
	time.Sleep(time.Until(until))
}

// chunk is how many bytes pass at once.
const chunk = 256 << 10

// paced is the body of a request.
type paced struct {
	body  io.ReadCloser
	m     *model
	count *int64
}

func (p *paced) Read(b []byte) (int, error) {
	from := time.Now()
	n, err := p.body.Read(b[:min(len(b), chunk)])
	p.m.add(func() { *p.count += int64(n) })
	p.m.pass(n, from)
	return n, err
}

func (p *paced) Close() error { return p.body.Close() }

// pacedWriter is the body of an answer.
type pacedWriter struct {
	http.ResponseWriter
	m     *model
	count *int64
}

func (p *pacedWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		from := time.Now()
		part := b[:min(len(b), chunk)]
		p.m.pass(len(part), from)
		var k int
		k, err = p.ResponseWriter.Write(part)
		p.m.add(func() { *p.count += int64(k) })
		n, b = n+k, b[len(part):]
	}
	return n, err
}

// count returns the count of a request's kind, after counting it.
func (m *model) count(r *http.Request) *count {
	what := r.Method
	switch q := r.URL.Query(); {
	case kindOf(r) == listing:
		what = "LIST"
	case q.Has("uploads"):
		what = "POST begin"
	case q.Has("partNumber"):
		what = "PUT part"
	case r.Method == http.MethodPost && q.Has("uploadId"):
		what = "POST complete"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.counted[what]
	if c == nil {
		c = new(count)
		m.counted[what] = c
	}
	c.Requests++
	return c
}

func (m *model) add(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// counts returns what has come since the last call.
func (m *model) counts() map[string]*count {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]*count{}
	for what, c := range m.counted {
		kept := *c
		all[what], *c = &kept, count{}
	}
	return all
}
