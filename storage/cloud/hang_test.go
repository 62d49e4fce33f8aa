package cloud

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/storetest/slowproxy"
	"github.com/bloomjoin/bloomjoin/storage"
)

// network is a service whose nth answer, from 1, to a request takes some time; negative: for ever.
type network struct {
	takes func(n int) time.Duration
	asked atomic.Int32
	open  atomic.Int32 // bodies that are not closed
	body  func(ctx context.Context) io.Reader
}

func (f *network) RoundTrip(req *http.Request) (*http.Response, error) {
	n := int(f.asked.Add(1))
	if req.Body != nil {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return nil, err
		}
	}
	if d := f.takes(n); d >= 0 {
		select {
		case <-time.After(d):
			f.open.Add(1)
			var body io.Reader = strings.NewReader("x")
			if f.body != nil {
				body = f.body(req.Context())
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: closing{body, f}}, nil
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	<-req.Context().Done()
	return nil, req.Context().Err()
}

type closing struct {
	io.Reader
	f *network
}

func (c closing) Close() error {
	c.f.open.Add(-1)
	return nil
}

// asks sends a request to the service, and returns how long the answer has taken.
func (f *network) asks(t *testing.T, s *store, method string, attempt int, body io.Reader) (time.Duration, error) {
	t.Helper()
	ctx, _ := withCall(t.Context(), get, attempt)
	req, err := http.NewRequestWithContext(ctx, method, "http://host/key", body)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	resp, err := s.http.Transport.RoundTrip(req)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	return time.Since(begin), err
}

// over runs a test with a service, and a clock of its own. All bodies are closed in the end, and all
// slots free.
func (f *network) over(t *testing.T, test func(t *testing.T, s *store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := made(Options{Requests: 8})
		s.http.Transport.(*transport).base = f
		test(t, s)
		synctest.Wait()
		free := 0
		for s.queue.TryAcquire() {
			free++
		}
		if n := f.open.Load(); n != 0 || free != 8 {
			t.Errorf("%d bodies are open, %d slots free", n, free)
		}
	})
}

// A request that is not answered is given up, at first after ten seconds, and later after a multiple
// of what others have taken, which doubles with each attempt; the last one waits for a minute.
func TestHangs(t *testing.T) {
	f := &network{takes: func(int) time.Duration { return -1 }}
	f.over(t, func(t *testing.T, s *store) {
		want := func(method string, attempt int, d time.Duration) {
			t.Helper()
			if got, err := f.asks(t, s, method, attempt, nil); !errors.Is(err, errStalled) || got != d {
				t.Errorf("%s, attempt %d: %v after %v, want %v", method, attempt, err, got, d)
			}
		}
		want(http.MethodPut, 0, 10*time.Second)
		f.takes = func(int) time.Duration { return 30 * time.Millisecond }
		for range times {
			if _, err := f.asks(t, s, http.MethodPut, 0, nil); err != nil {
				t.Fatal(err)
			}
		}
		f.takes = func(int) time.Duration { return -1 }
		want(http.MethodPut, 0, 2*time.Second)
		want(http.MethodPut, 1, 4*time.Second)
		want(http.MethodPut, 3, 16*time.Second)
		want(http.MethodPut, 7, time.Minute)
		want(http.MethodPut, s.opts.Retries, time.Minute)
		// Those that hang do not count as much as answers do.
		for range times / 20 {
			want(http.MethodPut, 0, 2*time.Second)
		}
		if d, err := f.asks(t, s, http.MethodPut, 0, nil); !errors.Is(err, errStalled) || d > 4*time.Second {
			t.Errorf("after many that hang: %v, %v", d, err)
		}
	})
}

// A read without an answer is sent for the second time; what comes first counts. A write is not.
func TestHedge(t *testing.T) {
	f := &network{takes: func(int) time.Duration { return 30 * time.Millisecond }}
	f.over(t, func(t *testing.T, s *store) {
		for range times {
			if _, err := f.asks(t, s, http.MethodGet, 0, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			method string
			takes  []time.Duration
			want   time.Duration
			sent   int32
		}{
			{http.MethodGet, []time.Duration{-1, 30 * time.Millisecond}, 430 * time.Millisecond, 2},
			{http.MethodHead, []time.Duration{-1, 30 * time.Millisecond}, 430 * time.Millisecond, 2},
			{http.MethodGet, []time.Duration{600 * time.Millisecond, -1}, 600 * time.Millisecond, 2},
			{http.MethodGet, []time.Duration{500 * time.Millisecond, 100 * time.Millisecond}, 500 * time.Millisecond, 2}, // both at once
			{http.MethodPut, []time.Duration{600 * time.Millisecond}, 600 * time.Millisecond, 1},
		} {
			first := f.asked.Load()
			f.takes = func(n int) time.Duration { return c.takes[n-1-int(first)] }
			if d, err := f.asks(t, s, c.method, 0, nil); err != nil || d != c.want || f.asked.Load()-first != c.sent {
				t.Errorf("%s %v: %v, %v, %d requests", c.method, c.takes, d, err, f.asked.Load()-first)
			}
		}
		// Without a free slot, or a budget, there is no second one.
		f.takes = func(int) time.Duration { return 600 * time.Millisecond }
		alone := func(what string) {
			t.Helper()
			first := f.asked.Load()
			if _, err := f.asks(t, s, http.MethodGet, 0, nil); err != nil || f.asked.Load()-first != 1 {
				t.Errorf("%s: %v, %d requests", what, err, f.asked.Load()-first)
			}
		}
		n := 0
		for s.queue.TryAcquire() {
			n++
		}
		alone("no slot")
		for range n {
			s.queue.Release()
		}
		for range 2 * budgetAtOnce {
			s.budget.spend(1, true)
		}
		alone("no budget")
	})
}

// The body of a request may take long, as long as it moves; so may that of an answer.
func TestSlow(t *testing.T) {
	f := &network{takes: func(int) time.Duration { return 8 * time.Second }}
	f.over(t, func(t *testing.T, s *store) {
		slow := func(pause time.Duration) io.Reader {
			r, w := io.Pipe()
			go func() {
				for range 10 {
					time.Sleep(pause)
					if _, err := w.Write([]byte("x")); err != nil {
						return
					}
				}
				_ = w.Close()
			}()
			return r
		}
		if d, err := f.asks(t, s, http.MethodPut, 0, slow(9*time.Second)); err != nil || d != 98*time.Second {
			t.Errorf("a slow body: %v, %v", d, err)
		}
		f.body = func(context.Context) io.Reader { return slow(29 * time.Second) }
		if d, err := f.asks(t, s, http.MethodGet, 0, nil); err != nil || d != 298*time.Second {
			t.Errorf("a slow answer: %v, %v", d, err)
		}
		f.body = func(ctx context.Context) io.Reader { return until{ctx} }
		if d, err := f.asks(t, s, http.MethodGet, 0, nil); !errors.Is(err, errStalled) || d != 8*time.Second+stall {
			t.Errorf("an answer that does not go on: %v, %v", d, err)
		}
	})
}

// until is a body that never comes.
type until struct{ ctx context.Context }

func (u until) Read([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, u.ctx.Err()
}

// The budget permits a tenth of all requests, ten a second and a hundred at once.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b budget
		for range budgetAtOnce {
			if wait, _ := b.spend(1, true); wait > 0 {
				t.Fatal("a retry waits at first")
			}
		}
		if _, ok := b.spend(1, false); ok {
			t.Error("a hedge without a budget")
		}
		for range 11 {
			b.spend(-budgetShare, true)
		}
		_, one := b.spend(1, false)
		if _, two := b.spend(1, false); !one || two {
			t.Error("eleven requests do not permit one hedge")
		}
		for range 10 {
			b.spend(1, true)
		}
		if d, _ := b.spend(1, true); d < 950*time.Millisecond || d > 1150*time.Millisecond {
			t.Errorf("the eleventh of a second waits for %v", d)
		}
	})
}

// Whatever a call waits for, it ends with its context.
func TestCanceled(t *testing.T) {
	stop := make(chan struct{})
	url, _ := fakeS3(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/busy"):
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/body"):
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
		case r.URL.Query().Has("uploads"):
			_, _ = io.WriteString(w, "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(stop) })
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("STORAGE_EMULATOR_HOST", url)
	hang := func(context.Context, string) (Credentials, error) {
		<-stop
		return Credentials{}, errors.New("stopped")
	}
	stat := func(name string) func(context.Context, *store) error {
		return func(ctx context.Context, s *store) error {
			_, err := s.Stat(ctx, name)
			return err
		}
	}
	upload := func(size int) func(context.Context, *store) error {
		return func(ctx context.Context, s *store) error {
			w, err := s.Create(ctx, "s3://bucket/key", storage.CreateOptions{})
			if err != nil {
				return err
			}
			if _, err = w.Write(make([]byte, size)); err == nil {
				err = w.Commit(false)
			}
			return err
		}
	}
	for what, c := range map[string]struct {
		o    Options
		wait func(ctx context.Context, s *store) error
	}{
		"an answer":      {Options{}, stat("s3://bucket/key")},
		"a list":         {Options{}, func(ctx context.Context, s *store) error { return s.List(ctx, "s3://bucket/dir/", nil) }},
		"a pause":        {Options{}, stat("s3://bucket/busy")},
		"credentials":    {Options{Credentials: hang}, stat("s3://bucket/key")},
		"a token":        {Options{Credentials: hang}, stat("gs://bucket/key")},
		"an upload":      {Options{}, upload(100)},
		"parts":          {Options{}, upload(20 << 20)},
		"room for parts": {Options{Memory: 1}, upload(40 << 20)},
		"a delete": {Options{}, func(ctx context.Context, s *store) error {
			return s.Delete(ctx, storage.Object{Name: "s3://bucket/key"})
		}},
		"a staged object": {Options{}, func(ctx context.Context, s *store) error {
			_, _, err := s.Publish(ctx, "s3://bucket/key", `{"mark":"0123456789abcdef","upload":"u"}`)
			return err
		}},
		"a bucket that another opens": {Options{}, func(ctx context.Context, s *store) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			return stat("s3://bucket/key")(ctx, s)
		}},
		"credentials that another gets": {Options{Credentials: hang}, func(ctx context.Context, s *store) error {
			other, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() { _ = stat("s3://bucket/key")(other, s) }()
			time.Sleep(20 * time.Millisecond)
			return stat("s3://bucket/key")(ctx, s)
		}},
		"a slot": {Options{Requests: 1}, func(ctx context.Context, s *store) error {
			if err := s.queue.Acquire(ctx); err != nil {
				return err
			}
			defer s.queue.Release()
			return stat("s3://bucket/key")(ctx, s)
		}},
		"bytes": {Options{}, func(ctx context.Context, s *store) error {
			r, err := s.Open(ctx, storage.Object{Name: "s3://bucket/body", Size: 10, Identity: "e"})
			if err != nil {
				return err
			}
			_, err = r.ReadAt(make([]byte, 10), 0)
			return errors.Join(err, r.Close())
		}},
	} {
		t.Run(what, func(t *testing.T) {
			c.o.Endpoint = url
			s := made(c.o)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(100*time.Millisecond, cancel)
			begin := time.Now()
			if err := c.wait(ctx, s); !errors.Is(err, context.Canceled) || time.Since(begin) > 5*time.Second {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
		})
	}
}

// Of requests that hang, some are carried out. What was written is there once, as it was written.
func TestHangingWrites(t *testing.T) {
	g, s := gateway(t)
	w := create(t, t.Context(), s, "s3://"+g.Bucket+"/first") // so that answers are known
	if _, err := w.Write(noise(9 << 20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(false); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		for _, size := range []int{10, 9 << 20} {
			g.Set(slowproxy.Faults{Hang: 0.3, Seed: seed, Only: func(r *http.Request) bool { return r.Method == http.MethodPut || r.Method == http.MethodPost }})
			name := g.Bucket + "/" + strings.Repeat("x", int(seed)+1)
			body := []byte(strings.Repeat("content", size/7+1))
			w := create(t, t.Context(), s, "s3://"+name)
			if _, err := w.Write(body); err != nil {
				t.Fatal(err)
			}
			if err := w.Commit(size > 10); err != nil { // the first one is exclusive
				t.Errorf("seed %d, %d bytes: %v", seed, size, err)
			}
			g.Set(slowproxy.Faults{})
			if got, err := readAll(t, s, "s3://"+name); err != nil || !bytes.Equal(got, body) {
				t.Errorf("seed %d, %d bytes: got %d, %v", seed, size, len(got), err)
			}
		}
	}
}
