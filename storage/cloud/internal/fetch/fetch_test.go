package fetch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/bloomjoin/bloomjoin/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a source whose answers take time.
type fake struct {
	bytes   []byte
	latency time.Duration
	rate    float64 // bytes per second of one connection; 0: no limit

	mu    sync.Mutex
	asked []storage.Range
	open  int // answers that are not closed
	most  int // of open

	// fail returns the error of the nth request, and after how many bytes it comes.
	fail func(n int) (int64, error)
}

func newFake(size int) *fake {
	f := &fake{bytes: make([]byte, size), latency: 30 * time.Millisecond, rate: 80e6}
	_, _ = rand.NewChaCha8([32]byte{1}).Read(f.bytes) // it never fails
	return f
}

func (f *fake) Get(ctx context.Context, off, n int64, _ int) (io.ReadCloser, error) {
	f.mu.Lock()
	f.asked = append(f.asked, storage.Range{Off: off, Len: n})
	at := len(f.asked)
	f.open++
	f.most = max(f.most, f.open)
	f.mu.Unlock()
	a := &answer{f: f, ctx: ctx, rest: f.bytes[off : off+n], cut: -1}
	if f.fail != nil {
		if cut, err := f.fail(at); err != nil {
			a.cut, a.err = cut, err
		}
	}
	if err := pause(ctx, f.latency); err != nil || a.cut == 0 {
		a.Close()
		return nil, errors.Join(err, a.err)
	}
	return a, nil
}

// Again waits a second, ten times.
func (f *fake) Again(ctx context.Context, err error, attempt int, since time.Time) error {
	if attempt == 10 || errors.Is(err, errFinal) {
		return err
	}
	return pause(ctx, time.Second)
}

var errFinal = errors.New("final")

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answer is the body of a response.
type answer struct {
	f    *fake
	ctx  context.Context
	rest []byte
	cut  int64 // bytes before err; negative: none
	err  error
}

func (a *answer) Read(p []byte) (int, error) {
	if a.cut == 0 {
		return 0, a.err
	}
	if len(a.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 64<<10)], a.rest)
	if a.cut > 0 {
		n = int(min(int64(n), a.cut))
		a.cut -= int64(n)
	}
	a.rest = a.rest[n:]
	if a.f.rate > 0 {
		if err := pause(a.ctx, time.Duration(float64(n)/a.f.rate*1e9)); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func (a *answer) Close() error {
	a.f.mu.Lock()
	defer a.f.mu.Unlock()
	a.f.open--
	return nil
}

func (f *fake) requests() []storage.Range {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(slices.Values(f.asked), func(a, b storage.Range) int { return cmp.Compare(a.Off, b.Off) })
}

// want reads a range, which must be right.
func (f *fake) want(t *testing.T, o *Object, off, n int64) {
	t.Helper()
	b := make([]byte, n)
	if k, err := o.ReadAt(b, off); err != nil || int64(k) != n || !bytes.Equal(b, f.bytes[off:off+n]) {
		t.Errorf("%d bytes at %d: %d, %v, right: %v", n, off, k, err, bytes.Equal(b, f.bytes[off:off+n]))
	}
}

// world runs a test with a queue and a clock of its own. In the end no memory and no
// slot is taken.
func world(t *testing.T, f *fake, o Options, test func(t *testing.T, q *Queue, object *Object)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := New(o)
		object := q.Open(t.Context(), f, int64(len(f.bytes)), new(Link))
		test(t, q, object)
		object.Close()
		object.Close()
		q.Wait()
		if q.taken != 0 || q.used != 0 || q.queued != 0 || q.idle.bytes != 0 || len(q.waiting) != 0 || f.open != 0 {
			t.Errorf("left: %d slots, %d bytes, %d queued, %d waiting, %d answers", q.taken, q.used, q.queued, len(q.waiting), f.open)
		}
	})
}

const kib, mib = 1 << 10, 1 << 20

// Ranges that are near each other are fetched in one request, others not.
func TestMerge(t *testing.T) {
	f := newFake(40 * mib)
	world(t, f, Options{Requests: 4, Memory: 64 * mib}, func(t *testing.T, q *Queue, o *Object) {
		release := o.Prefetch([]storage.Range{
			{Off: 0, Len: 10 * kib}, {Off: 500 * kib, Len: 10 * kib}, // less than 20 ms × 50 MB/s apart
			{Off: 30 * mib, Len: 10 * kib},
			{Off: 10 * kib, Len: 5 * kib}, // announced last, between others
		})
		synctest.Wait()
		if got, want := fmt.Sprint(f.requests()), fmt.Sprint([]storage.Range{{Off: 0, Len: 510 * kib}, {Off: 30 * mib, Len: 10 * kib}}); got != want {
			t.Errorf("requests %s, want %s", got, want)
		}
		for _, off := range []int64{500 * kib, 0, 30 * mib} {
			f.want(t, o, off, 10*kib)
		}
		f.want(t, o, 10*kib, 5*kib)
		if n := len(f.requests()); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
		release()
		release()
	})
}

// Where requests are answered at once, little is fetched that was not announced.
func TestMergeNear(t *testing.T) {
	f := newFake(40 * mib)
	f.latency = time.Millisecond
	world(t, f, Options{Requests: 4, Memory: 64 * mib}, func(t *testing.T, q *Queue, o *Object) {
		f.want(t, o, 0, 100) // measures the latency
		defer o.Prefetch([]storage.Range{{Off: mib, Len: kib}, {Off: mib + 17*kib, Len: kib}, {Off: mib + 35*kib, Len: kib}})()
		synctest.Wait()
		if got, want := fmt.Sprint(f.requests()[1:]), fmt.Sprint([]storage.Range{{Off: mib, Len: 18 * kib}, {Off: mib + 35*kib, Len: kib}}); got != want {
			t.Errorf("requests %s, want %s", got, want)
		}
	})
}

// A large range is fetched by several connections, and its first bytes can be read
// while the rest comes.
func TestSplit(t *testing.T) {
	f := newFake(32 * mib)
	world(t, f, Options{Requests: 4, Memory: 64 * mib}, func(t *testing.T, q *Queue, o *Object) {
		begin := time.Now()
		defer o.Prefetch([]storage.Range{{Off: 0, Len: 32 * mib}})()
		f.want(t, o, 0, 1000)
		if d := time.Since(begin); d > 50*time.Millisecond { // the latency and one piece
			t.Errorf("the first bytes came after %v", d)
		}
		for off := int64(0); off < 32*mib; off += mib {
			f.want(t, o, off, mib)
		}
		// 32 MiB in 4 connections of 80 MB/s take 105 ms, each request 30 ms.
		if d, n := time.Since(begin), len(f.requests()); d > 300*time.Millisecond || n < 4 || n > 12 || f.most != 4 {
			t.Errorf("%v, %d requests, %d at once", d, n, f.most)
		}
	})
}

// No more is fetched than the memory holds and is read, and memory is free again as
// the reads go on.
func TestMemory(t *testing.T) {
	f := newFake(64 * mib)
	world(t, f, Options{Requests: 8, Memory: 8 * mib}, func(t *testing.T, q *Queue, o *Object) {
		defer o.Prefetch([]storage.Range{{Off: 0, Len: 64 * mib}})()
		time.Sleep(time.Minute)
		var asked int64
		for _, r := range f.requests() {
			asked += r.Len
		}
		if asked > 8*mib || asked <= 6*mib || q.used != asked {
			t.Errorf("%d bytes fetched, %d used", asked, q.used)
		}
		for off := int64(0); off < 64*mib; off += 100 * kib {
			f.want(t, o, off, min(100*kib, 64*mib-off))
			q.mu.Lock()
			if q.used > 9*mib {
				t.Fatalf("%d bytes used", q.used)
			}
			q.mu.Unlock()
		}
	})
}

// A read gets its bytes although the memory is full of others, and before ranges that
// were announced earlier.
func TestNeeded(t *testing.T) {
	f := newFake(64 * mib)
	world(t, f, Options{Requests: 1, Memory: mib}, func(t *testing.T, q *Queue, o *Object) {
		defer o.Prefetch([]storage.Range{{Off: 0, Len: 64 * mib}})()
		time.Sleep(time.Minute)
		f.want(t, o, 50*mib, 2*mib+5)                                                    // announced late
		f.want(t, o, 63*mib-7, mib+7)                                                    // to the end
		defer o.Prefetch([]storage.Range{{Off: 10, Len: 20}, {Off: 5 * mib, Len: 10}})() // announced twice
		f.want(t, o, 0, mib)
	})
}

// Bytes that were not announced cost one request each time, without memory.
func TestDirect(t *testing.T) {
	f := newFake(4 * mib)
	world(t, f, Options{Requests: 4, Memory: mib}, func(t *testing.T, q *Queue, o *Object) {
		defer o.Prefetch([]storage.Range{{Off: mib, Len: 100}})()
		f.want(t, o, 0, 100)
		f.want(t, o, mib-100, 300) // before, in and after what was announced
		b := make([]byte, 10)
		for _, off := range []int64{4 * mib, 5 * mib} {
			if n, err := o.ReadAt(b, off); n != 0 || err != io.EOF {
				t.Errorf("after the end: %d, %v", n, err)
			}
		}
		if n, err := o.ReadAt(b, 4*mib-3); n != 3 || err != io.EOF {
			t.Errorf("at the end: %d, %v", n, err)
		}
		if n, err := o.ReadAt(nil, 0); n != 0 || err != nil {
			t.Errorf("no bytes: %d, %v", n, err)
		}
		if _, err := o.ReadAt(b, -1); err == nil {
			t.Error("a negative offset is no error")
		}
		if n := len(f.requests()); n != 5 { // 100, [mib], before, after, tail
			t.Errorf("requests %v", f.requests())
		}
	})
}

// The end of an object is fetched once, and the rest of a small object whole, until Rest.
func TestTail(t *testing.T) {
	f := newFake(mib)
	world(t, f, Options{Requests: 4, Memory: mib}, func(t *testing.T, q *Queue, o *Object) {
		f.want(t, o, mib-8, 8)
		f.want(t, o, mib-1000, 992)
		f.want(t, o, mib-100*kib, 90*kib) // begins before it
		if got, want := fmt.Sprint(f.requests()), fmt.Sprint([]storage.Range{{Off: mib - 100*kib, Len: 100*kib - tailSize}, {Off: mib - tailSize, Len: tailSize}}); got != want {
			t.Errorf("requests %s, want %s", got, want)
		}
		o.Rest()
		f.want(t, o, mib-8, 8)
		if n := len(f.requests()); n != 2 {
			t.Errorf("%d requests, want no more: there is memory to keep the end", n)
		}
	})
	f = newFake(200 * kib)
	world(t, f, Options{Requests: 4, Memory: mib}, func(t *testing.T, q *Queue, o *Object) {
		for range 2 {
			release := o.Prefetch([]storage.Range{{Off: 10, Len: 10}, {Off: 100 * kib, Len: 10}})
			f.want(t, o, 100*kib, 10)
			release()
			f.want(t, o, 200*kib-8, 8)
			f.want(t, o, 0, 200*kib)
			f.want(t, o, 0, 200*kib)
			o.Rest()
		}
		if n := len(f.requests()); n != 1 {
			t.Errorf("%d requests, want one", n)
		}
	})
}

// Resting objects keep at most a quarter of the memory. The first that have rested
// once stay longest.
func TestIdle(t *testing.T) {
	f := newFake(100 * kib)
	world(t, f, Options{Requests: 4, Memory: 2 * mib}, func(t *testing.T, q *Queue, large *Object) {
		var objects []*Object
		for range 8 {
			o := q.Open(t.Context(), f, 100*kib, new(Link))
			defer o.Close()
			f.want(t, o, 0, 10)
			o.Rest()
			o.Rest()
			objects = append(objects, o)
		}
		fetched := func() (again string) {
			for i, o := range objects {
				before := len(f.requests())
				f.want(t, o, 0, 10)
				if len(f.requests()) > before {
					again += fmt.Sprint(i)
				}
			}
			for _, o := range objects {
				o.Rest()
			}
			return again
		}
		if got := fetched(); got != "567" {
			t.Errorf("fetched again: %s", got)
		}
		if q.idle.bytes > mib/2 || q.used != q.idle.bytes {
			t.Errorf("%d bytes idle, %d used", q.idle.bytes, q.used)
		}
		if !q.Reserve(2*mib, false) || q.Reserve(1, false) {
			t.Error("what is idle keeps others from the memory, or does not count")
		}
		q.Free(2 * mib)
	})
}

// What one announcement releases stays if another has announced it.
func TestRelease(t *testing.T) {
	f := newFake(16 * mib)
	world(t, f, Options{Requests: 1, Memory: 2 * mib}, func(t *testing.T, q *Queue, o *Object) {
		first := o.Prefetch([]storage.Range{{Off: 0, Len: 2 * mib}, {Off: 8 * mib, Len: 2 * mib}})
		second := o.Prefetch([]storage.Range{{Off: mib, Len: 2 * mib}})
		synctest.Wait()
		first() // while its request is under way
		time.Sleep(time.Minute)
		n := len(f.requests())
		f.want(t, o, mib, 2*mib)
		if len(f.requests()) > n+1 {
			t.Errorf("requests %v", f.requests())
		}
		f.want(t, o, 0, 10) // released: a request of its own
		second()
		if q.used != 0 || len(o.pieces) != 0 {
			t.Errorf("%d bytes used, %d pieces after all releases", q.used, len(o.pieces))
		}
	})
}

// Bytes may be read twice, as long as the last one is not read.
func TestTwice(t *testing.T) {
	f := newFake(4 * mib)
	world(t, f, Options{Requests: 1, Memory: 2 * mib}, func(t *testing.T, q *Queue, o *Object) {
		defer o.Prefetch([]storage.Range{{Off: 0, Len: 500 * kib}})()
		for range 3 {
			f.want(t, o, 0, 250*kib)
		}
		f.want(t, o, 250*kib, 250*kib)
		if len(f.requests()) != 1 || q.used != 0 {
			t.Errorf("requests %v, %d bytes used", f.requests(), q.used)
		}
	})
}

// A request that breaks goes on where it ended, as often as it takes.
func TestResume(t *testing.T) {
	f := newFake(8 * mib)
	f.fail = func(n int) (int64, error) {
		switch n % 3 {
		case 1:
			return 300*kib + int64(n), io.ErrUnexpectedEOF
		case 2:
			return 0, errors.New("refused")
		}
		return 800 * kib, io.EOF // as a body that ends too soon
	}
	world(t, f, Options{Requests: 2, Memory: 8 * mib}, func(t *testing.T, q *Queue, o *Object) {
		defer o.Prefetch([]storage.Range{{Off: 0, Len: 3 * mib}, {Off: 3*mib + 500*kib, Len: mib}})()
		f.want(t, o, 0, 3*mib)
		f.want(t, o, 3*mib+500*kib, mib)
		f.want(t, o, 5*mib, mib) // direct
		if n := len(f.requests()); n < 10 {
			t.Errorf("%d requests: too few have failed", n)
		}
	})
}

// An error reaches the reads of the failed range, and no others.
func TestErrors(t *testing.T) {
	f := newFake(8 * mib)
	f.fail = func(n int) (int64, error) {
		if n == 1 {
			return 1500 * kib, errFinal
		}
		return 0, nil
	}
	world(t, f, Options{Requests: 1, Memory: 64 * mib}, func(t *testing.T, q *Queue, o *Object) {
		release := o.Prefetch([]storage.Range{{Off: 0, Len: 8 * mib}})
		f.want(t, o, 0, mib)
		b := make([]byte, 10)
		for range 2 {
			if _, err := o.ReadAt(b, mib+5); !errors.Is(err, errFinal) {
				t.Errorf("got %v", err)
			}
		}
		release()
		f.want(t, o, mib, mib)
		f.fail = func(int) (int64, error) { return 0, errFinal }
		if _, err := o.ReadAt(b, 0); !errors.Is(err, errFinal) {
			t.Errorf("direct: %v", err)
		}
		if _, err := o.ReadAt(b, 8*mib-10); !errors.Is(err, errFinal) {
			t.Errorf("at the end: %v", err)
		}
		f.fail = nil
		f.want(t, o, 8*mib-10, 10) // what is kept is asked for again
	})
}

// Throttle halves the slots, once a second at most, and as many requests as there are give one
// back. TryAcquire takes only what nobody waits for.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{Requests: 8, Memory: mib})
		free := func() (n int) {
			for q.TryAcquire() {
				n++
			}
			return n
		}
		want := func(n int) {
			t.Helper()
			if got := free(); got != n {
				t.Errorf("%d slots, want %d", got, n)
			}
		}
		want(8)
		q.Throttle()
		q.Throttle() // of the same moment
		waits := make(chan error)
		go func() { waits <- q.Acquire(t.Context()) }()
		synctest.Wait()
		for range 4 {
			q.Release()
		}
		want(0)
		q.Release()
		if err := <-waits; err != nil {
			t.Error(err)
		}
		for range 3 {
			q.Release()
		}
		want(4) // and one more, which was waited for
		time.Sleep(time.Second)
		for range 4 {
			q.Throttle()
			time.Sleep(time.Second)
		}
		q.Release()
		want(0)
	})
}

// When the context ends, all reads fail, and so do requests between attempts.
func TestCancel(t *testing.T) {
	f := newFake(8 * mib)
	f.fail = func(n int) (int64, error) { return 0, errors.New("refused") }
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		q := New(Options{Requests: 1, Memory: mib})
		o := q.Open(ctx, f, 8*mib, new(Link))
		release := o.Prefetch([]storage.Range{{Off: 0, Len: 4 * mib}})
		errs := make(chan error, 3)
		for _, off := range []int64{0, 3 * mib, 6 * mib} { // fetching, queued, direct
			go func() {
				_, err := o.ReadAt(make([]byte, 10), off)
				errs <- err
			}()
		}
		synctest.Wait()
		cancel()
		for range 3 {
			if err := <-errs; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
		if _, err := o.ReadAt(make([]byte, 10), 0); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %v", err)
		}
		o.Close()
		release()
		q.Wait()
		if q.taken != 0 || q.used != 0 || len(q.waiting) != 0 {
			t.Errorf("left: %d slots, %d bytes, %d waiting", q.taken, q.used, len(q.waiting))
		}
	})
}

// A slot that is granted as its context ends is passed on.
func TestAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{Requests: 1})
		if err := q.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		go func() { errs <- q.Acquire(ctx) }()
		synctest.Wait()
		go func() { errs <- q.Acquire(context.Background()) }()
		synctest.Wait()
		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		q.Release()
		if err := <-errs; err != nil {
			t.Error(err)
		}
		q.Release()
		if q.taken != 0 {
			t.Errorf("%d slots taken", q.taken)
		}
		if !q.Reserve(5, false) || q.Reserve(1, false) || !q.Reserve(1, true) {
			t.Error("the first reservation succeeds, another needs force")
		}
		q.Free(6)
	})
}

// Many goroutines that announce, read, release and close get the right bytes.
func TestRandom(t *testing.T) {
	for seed := range uint64(10) {
		f := newFake(6*mib + int(seed))
		f.fail = func(n int) (int64, error) {
			if n%5 == 0 {
				return int64(n * 1000), io.ErrUnexpectedEOF
			}
			return 0, nil
		}
		r := rand.New(rand.NewPCG(seed, 1))
		world(t, f, Options{Requests: 1 + r.IntN(8), Memory: int64(r.IntN(4 * mib))}, func(t *testing.T, q *Queue, o *Object) {
			var all sync.WaitGroup
			for worker := range uint64(6) {
				r := rand.New(rand.NewPCG(seed, worker))
				all.Go(func() {
					size := int64(len(f.bytes))
					for range 20 {
						var ranges []storage.Range
						for range r.IntN(20) {
							ranges = append(ranges, storage.Range{Off: r.Int64N(size), Len: r.Int64N(200 * kib)})
						}
						release := o.Prefetch(ranges)
						for _, a := range ranges {
							if r.IntN(10) == 0 {
								break
							}
							n := min(a.Len, size-a.Off)
							for at := int64(0); at < n; {
								k := min(1+r.Int64N(100*kib), n-at)
								f.want(t, o, a.Off+at, k)
								at += k
							}
						}
						if r.IntN(4) == 0 {
							o.Rest()
						}
						release()
					}
				})
			}
			all.Wait()
			o.Rest()
			if q.used != q.idle.bytes || len(o.pieces) > 1 {
				t.Errorf("seed %d: %d bytes used, %d pieces", seed, q.used, len(o.pieces))
			}
		})
	}
}

// The link forgets a first connection that took long, and late answers.
func TestLink(t *testing.T) {
	l := new(Link)
	if g := l.gap(); g != 1e6 {
		t.Errorf("unknown: %d", g)
	}
	l.answered(200 * time.Millisecond)
	for range 20 {
		l.answered(10 * time.Millisecond)
	}
	l.answered(time.Hour)
	l.received(1000, time.Hour) // too few to say anything
	for range 20 {
		l.received(10e6, 100*time.Millisecond)
	}
	if d := l.latency; d < 10*time.Millisecond || d > 15*time.Millisecond {
		t.Errorf("latency %v", d)
	}
	if g := l.gap(); g != int64(l.latency.Seconds()*100e6) {
		t.Errorf("gap %d", g)
	}
	for range 50 {
		l.received(100e6, 100*time.Millisecond)
	}
	if g := l.gap(); g != maxGap {
		t.Errorf("gap %d", g)
	}
}
