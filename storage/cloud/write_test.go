package cloud

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/storetest"
	"github.com/bloomjoin/bloomjoin/internal/storetest/slowproxy"
	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/storagetest"
)

// newStore returns a Store that is closed with the test.
func newStore(t *testing.T, o Options) *store {
	t.Helper()
	s := made(o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// gateway returns a server and a Store that finds it.
func gateway(t *testing.T) (*storetest.Gateway, *store) {
	t.Helper()
	g := storetest.S3(t)
	g.Setenv(t)
	return g, newStore(t, Options{})
}

func create(t *testing.T, ctx context.Context, s *store, name string) storage.Writer {
	t.Helper()
	w, err := s.Create(ctx, name, storage.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// noise returns bytes that differ in every place.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// write writes in uneven pieces.
func write(w storage.Writer, b []byte) error {
	for i := 1; len(b) > 0; i++ {
		n := min(len(b), i*i*1000)
		if m, err := w.Write(b[:n]); err != nil || m != n {
			return fmt.Errorf("%d of %d bytes: %w", m, n, err)
		}
		b = b[n:]
	}
	return nil
}

// says checks the kind of an error, and that its text has the words.
func says(t *testing.T, what string, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: the text has no %q: %v", what, w, err)
		}
	}
}

// Objects of every number of parts are whole, exclusive, and can be dropped.
func TestWriteSizes(t *testing.T) {
	t.Run("memory", func(t *testing.T) { writeSizes(t, newStore(t, Options{}), "mem://bucket/dir/") })
	t.Run("Google", func(t *testing.T) { writeSizes(t, newStore(t, Options{}), storetest.Google(t)) })
	t.Run("Azure", func(t *testing.T) { writeSizes(t, newStore(t, Options{}), storetest.Azure(t)) })
	t.Run("S3", func(t *testing.T) {
		g, s := gateway(t)
		writeSizes(t, s, g.Name("dir/"))
		if left := g.Uploads(t); len(left) > 0 {
			t.Errorf("unfinished: %q", left)
		}
		if left := recorded(t); len(left) > 0 {
			t.Errorf("recorded: %q", left)
		}
	})
}

func writeSizes(t *testing.T, s *store, at string) {
	for _, size := range []int{0, 1, maxKept + 1, firstPart - 1, firstPart, firstPart + 1, 3*firstPart + 5} {
		for _, finish := range []bool{false, true} {
			what := fmt.Sprintf("%d bytes, Finish %v", size, finish)
			name := fmt.Sprint(at, size, finish)
			content := noise(size)
			written := func() storage.Writer {
				w := create(t, t.Context(), s, name)
				if err := write(w, content); err != nil {
					t.Fatal(err)
				}
				if finish {
					if err := objects.Rest(w); err != nil {
						t.Fatal(err)
					}
				}
				return w
			}
			w := written()
			if _, err := s.Stat(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: visible before Commit: %v", what, err)
			}
			if err := errors.Join(w.Commit(false), w.Abort()); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if _, err := w.Write([]byte("x")); err == nil {
				t.Errorf("%s: Write after Commit", what)
			}
			check := func(want []byte) {
				t.Helper()
				o, err := s.Stat(t.Context(), name)
				if err != nil || o.Size != int64(len(want)) {
					t.Fatalf("%s: %+v, %v", what, o, err)
				}
				got := make([]byte, o.Size)
				r, err := s.Open(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = r.Close() }()
				if _, err := r.ReadAt(got, 0); len(got) > 0 && err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: other bytes, %v", what, err)
				}
			}
			check(content)
			if size > 0 {
				content = append([]byte("y"), content[1:]...)
			}
			w = written()
			says(t, what, w.Commit(false), fs.ErrExist, name)
			says(t, what, w.Commit(true), nil) // a second attempt, as the caller decides
			check(content)
			w = written()
			if err := errors.Join(w.Abort(), w.Abort()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			check(content)
		}
	}
}

// The other clouds keep the promises of package storage, too, as far as their
// emulators are like them.
func TestCheckClouds(t *testing.T) {
	t.Run("Google", func(t *testing.T) { storagetest.TestStorage(t, newStore(t, Options{}), storetest.Google(t)+"dir") })
	t.Run("Azure", func(t *testing.T) { storagetest.TestStorage(t, newStore(t, Options{}), storetest.Azure(t)+"dir") })
}

// recorded returns the names of the files that record uploads.
func recorded(t *testing.T) []string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "bloomjoin", "uploads", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Of many writers of one name, one wins.
func TestWriteRivals(t *testing.T) {
	g, s := gateway(t)
	for _, size := range []int{1000, firstPart + 1000} {
		const rivals = 8
		name := g.Name(fmt.Sprint("rivals/", size))
		var group sync.WaitGroup
		errs := make([]error, rivals)
		for i := range rivals {
			group.Go(func() {
				w := create(t, t.Context(), s, name)
				err := write(w, bytes.Repeat([]byte{'a' + byte(i)}, size))
				errs[i] = errors.Join(err, w.Commit(false), w.Abort())
			})
		}
		group.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil:
				t.Errorf("%d and %d have won", winner, i)
			case !errors.Is(err, fs.ErrExist) && !errors.Is(err, storage.ErrAgain):
				t.Error(err)
			}
		}
		b := g.Get(t, strings.TrimPrefix(name, g.Name("")))
		if winner < 0 || len(b) != size || bytes.Count(b, []byte{'a' + byte(winner)}) != size {
			t.Errorf("winner %d, %d bytes, the first is %q", winner, len(b), b[:1])
		}
	}
	if left := g.Uploads(t); len(left) > 0 {
		t.Errorf("unfinished: %q", left)
	}
}

// Requests that fail and connections that break change nothing but the time, also
// where the response to a request that was carried out is lost.
func TestWriteFaults(t *testing.T) {
	g := storetest.S3(t)
	g.Setenv(t)
	s := newStore(t, Options{Retries: 20})
	for seed := range uint64(3) {
		g.Set(slowproxy.Faults{Fail: 0.3, Cut: 0.1, Seed: seed})
		for _, size := range []int{100, 2*firstPart + 100} {
			key := fmt.Sprint("dir/", seed, "-", size)
			content := noise(size)
			for _, replace := range []bool{false, true} {
				w := create(t, t.Context(), s, g.Name(key))
				if err := errors.Join(write(w, content), w.Commit(replace), w.Abort()); err != nil {
					t.Fatalf("seed %d, %d bytes, replace %v: %v", seed, size, replace, err)
				}
				if got := g.Get(t, key); !bytes.Equal(got, content) {
					t.Errorf("seed %d: other bytes", seed)
				}
			}
		}
	}
	g.Set(slowproxy.Faults{})
	if left := g.Uploads(t); len(left) > 0 {
		t.Logf("unfinished, since the response that named them was lost: %q", left)
	}
	if n := s.Stats(); n.Retries == 0 || n.Throttles == 0 {
		t.Errorf("%+v: no retries", n)
	}
}

// A context that ends stops an upload; Abort still drops its parts.
func TestWriteCancelled(t *testing.T) {
	g, s := gateway(t)
	ctx, cancel := context.WithCancel(t.Context())
	w := create(t, ctx, s, g.Name("a"))
	if err := write(w, noise(2*firstPart+1)); err != nil {
		t.Fatal(err)
	}
	g.Set(slowproxy.Faults{Delay: 100 * time.Millisecond})
	cancel()
	err := objects.Rest(w)
	if err == nil {
		err = w.Commit(false)
	}
	says(t, "Commit", err, context.Canceled)
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
	if left := g.Uploads(t); len(left) > 0 {
		t.Errorf("unfinished: %q", left)
	}
	if keys := g.Keys(t); len(keys) > 0 {
		t.Errorf("objects: %q", keys)
	}
}

// Credentials that expire during an upload.
func TestWriteExpires(t *testing.T) {
	g, s := gateway(t)
	w := create(t, t.Context(), s, g.Name("a"))
	g.Set(slowproxy.Faults{Expire: 2})
	err := write(w, noise(5*firstPart))
	if err == nil {
		err = w.Commit(false)
	}
	says(t, "with an expired token", err, storage.ErrAgain, "expired", g.Name("a"))
	says(t, "Abort", w.Abort(), storage.ErrAgain)
	if len(recorded(t)) != 1 {
		t.Errorf("recorded: %q, want what could not be dropped", recorded(t))
	}
	g.Set(slowproxy.Faults{})
	if keys := g.Keys(t); len(keys) > 0 {
		t.Errorf("objects: %q", keys)
	}
}

// Where the service knows no conditions, the object is looked up.
func TestWriteUnconditional(t *testing.T) {
	g, s := gateway(t)
	var refused int
	g.Set(slowproxy.Faults{Refuse: func(r *http.Request) (int, string) {
		if r.Header.Get("If-None-Match") == "" && r.Header.Get("If-Match") == "" || r.Method == http.MethodGet {
			return 0, ""
		}
		refused++
		return http.StatusNotImplemented, "NotImplemented"
	}})
	for _, size := range []int{10, firstPart + 1} {
		key := fmt.Sprint("a", size)
		for i, want := range []error{nil, fs.ErrExist} {
			w := create(t, t.Context(), s, g.Name(key))
			if err := write(w, noise(size)); err != nil {
				t.Fatal(err)
			}
			says(t, fmt.Sprint("attempt ", i), errors.Join(w.Commit(false), w.Abort()), want)
		}
	}
	if refused != 1 {
		t.Errorf("%d conditional requests, want 1 that is refused", refused)
	}
	o, err := s.Stat(t.Context(), g.Name("a10"))
	if err != nil {
		t.Fatal(err)
	}
	says(t, "Delete", s.Delete(t.Context(), o), nil)
	if keys := g.Keys(t); !slices.Equal(keys, []string{fmt.Sprint("a", firstPart+1)}) {
		t.Errorf("objects: %q", keys)
	}
}

func TestWriteRefuses(t *testing.T) {
	s := newStore(t, Options{})
	for name, words := range map[string][]string{
		"https://host/a": {"unsupported", "https://host/a"}, "s3://bucket/": {"directory"}, "s3://bucket/a/": {"directory"}, "hdfs://a/b": {"unsupported", "hdfs"},
	} {
		_, err := s.Create(t.Context(), name, storage.CreateOptions{})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: the text has no %q: %v", name, word, err)
			}
		}
	}
}

// The memory of an upload does not grow with the object, however slow the network.
func TestWriteMemory(t *testing.T) {
	g := storetest.S3(t)
	g.Setenv(t)
	s := newStore(t, Options{Memory: 32 << 20})
	g.Set(slowproxy.Faults{Delay: 20 * time.Millisecond})
	w := create(t, t.Context(), s, g.Name("a"))
	piece := noise(1 << 20)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var peak uint64
	const pieces = 200
	for range pieces {
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&now)
		peak = max(peak, now.HeapAlloc)
	}
	if err := errors.Join(w.Commit(false), w.Abort()); err != nil {
		t.Fatal(err)
	}
	// A part that is filled, one that is sent, one that is kept to be filled, and garbage.
	if most := before.HeapAlloc + 64<<20; peak > most {
		t.Errorf("%d MiB took %d MiB of memory, want at most %d", pieces, peak>>20, most>>20)
	}
	if n := s.Stats().Requests.Part; n != pieces/8 {
		t.Errorf("%d parts, want %d", n, pieces/8)
	}
}

// The most parts that S3 takes hold its largest object, and none is too large.
func TestPartSize(t *testing.T) {
	var sum int64
	last := 0
	for n := range maxParts {
		size := partSize(n)
		if size < last || int64(size) > 5<<30 {
			t.Fatalf("part %d: %d bytes after %d", n, size, last)
		}
		last = size
		sum += int64(size)
	}
	// Where an int has 32 bits, the last parts are smaller than S3 takes them.
	least := int64(5 << 40)
	if math.MaxInt == math.MaxInt32 {
		least = 4 << 40
	}
	if sum < least || partSize(evenParts-1) != firstPart {
		t.Errorf("%d parts hold %d bytes", maxParts, sum)
	}
}
