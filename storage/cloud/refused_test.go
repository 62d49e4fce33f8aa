package cloud

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/storage"
)

// A host that refuses connections and has never answered is given up after three
// attempts within three seconds; one that has answered before may be restarting.
func TestRefused(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STORAGE_EMULATOR_HOST", address)
	for name, o := range map[string]Options{
		"http://" + address + "/x":          {},
		"s3://bucket/x":                     {Endpoint: "http://" + address, Anonymous: true},
		"gs://bucket/x":                     {Anonymous: true},
		"https://" + address + "/x.parquet": {Retries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, start := newStore(t, o), time.Now()
			_, err := s.Stat(t.Context(), name)
			if !errors.Is(err, syscall.ECONNREFUSED) || !errors.Is(err, storage.ErrAgain) {
				t.Error(err)
			}
			want := int64(2)
			if o.Retries > 0 {
				want = int64(o.Retries)
			}
			if d, n := time.Since(start), s.Stats().Retries; d > 3*time.Second || n != want {
				t.Errorf("sent again %d times in %v, want %d", n, d, want)
			}
			if o.Retries > 0 {
				return
			}
			if _, err := inputs(t.Context(), s, name); !errors.Is(err, syscall.ECONNREFUSED) || time.Since(start) > 3*time.Second || s.Stats().Retries != want {
				t.Errorf("another call: %v after %v, sent again %d times", err, time.Since(start), s.Stats().Retries)
			}
		})
	}
	t.Run("restarted", func(t *testing.T) {
		t.Parallel()
		answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Content-Range", "bytes 0-0/1")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, "x")
		})
		server := httptest.NewServer(answer)
		address := server.Listener.Addr().String()
		s := newStore(t, Options{Retries: 50})
		if _, err := s.Stat(t.Context(), server.URL+"/x"); err != nil {
			t.Fatal(err)
		}
		server.Close()
		restarted := make(chan *httptest.Server)
		go func() {
			for s.Stats().Retries <= refusedTries {
				time.Sleep(time.Millisecond)
			}
			again := &httptest.Server{Config: &http.Server{Handler: answer}}
			again.Listener, _ = net.Listen("tcp", address)
			again.Start()
			restarted <- again
		}()
		r, err := s.Open(t.Context(), storage.Object{Name: server.URL + "/x"})
		if err != nil {
			t.Error(err)
		} else if err := r.Close(); err != nil {
			t.Error(err)
		}
		(<-restarted).Close()
	})
}
