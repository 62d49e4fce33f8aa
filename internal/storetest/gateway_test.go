package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/storetest/slowproxy"
)

// get sends a signed request through the proxy.
func get(t *testing.T, g *Gateway, key string) (int, []byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL+"/"+g.Bucket+"/"+key, nil)
	if err != nil {
		t.Fatal(err)
	}
	sign(req, nil)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // which would send a request again
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, b, err
}

func TestGateway(t *testing.T) {
	g := S3(t)
	content := bytes.Repeat([]byte("0123456789"), 100_000)
	g.Put(t, "dir/a", content)
	g.Put(t, "b", nil)
	if got := g.Keys(t); !slices.Equal(got, []string{"b", "dir/a"}) {
		t.Errorf("keys: %q", got)
	}
	if got := g.Uploads(t); len(got) != 0 {
		t.Errorf("uploads: %q", got)
	}
	if !bytes.Equal(g.Get(t, "dir/a"), content) {
		t.Error("other bytes")
	}
	if n := len(g.Requests()); n != 0 {
		t.Errorf("%d requests counted that did not pass the proxy", n)
	}
	status, b, err := get(t, g, "dir/a")
	if status != http.StatusOK || !bytes.Equal(b, content) || err != nil {
		t.Errorf("through the proxy: %d, %d bytes, %v", status, len(b), err)
	}
	want := slowproxy.Request{Method: "GET", Path: "/bucket/dir/a", Status: 200, Out: 1_000_000}
	got := g.Requests()
	if len(got) == 1 {
		if got[0].Start <= 0 || got[0].End < got[0].Start {
			t.Errorf("from %d to %d", got[0].Start, got[0].End)
		}
		want.Start, want.End = got[0].Start, got[0].End
	}
	if len(got) != 1 || got[0] != want {
		t.Errorf("%+v", got)
	}
	g.Remove(t, "b")
	if got := g.Keys(t); !slices.Equal(got, []string{"dir/a"}) {
		t.Errorf("keys: %q", got)
	}
}

func TestFaults(t *testing.T) {
	g := S3(t)
	g.Put(t, "a", bytes.Repeat([]byte("x"), 1<<20))
	outcomes := func() (all []string) {
		for range 100 {
			status, b, err := get(t, g, "a")
			switch {
			case err != nil && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
				all = append(all, "cut") // how much arrives before it is up to the system
			case err != nil:
				t.Fatal(err)
			case status != http.StatusOK:
				code, _, _ := strings.Cut(string(b[bytes.Index(b, []byte("<Code>"))+6:]), "<")
				all = append(all, fmt.Sprint(status, " ", code))
			default:
				all = append(all, fmt.Sprint(len(b)))
			}
		}
		return all
	}
	f := slowproxy.Faults{Fail: 0.3, Cut: 0.3, Seed: 1}
	g.Set(f)
	first := outcomes()
	count := map[string]int{}
	for _, o := range first {
		count[o]++
	}
	for _, o := range []string{"503 SlowDown", "503 ServiceUnavailable", "500 InternalError", "cut", "1048576"} {
		if count[o] < 3 || count[o] > 60 {
			t.Errorf("%s: %d of 100", o, count[o])
		}
	}
	g.Set(f)
	if again := outcomes(); !slices.Equal(first, again) {
		t.Errorf("the same seed: %q, then %q", first, again)
	}
	g.Set(slowproxy.Faults{Expire: 2})
	if got := outcomes()[:4]; !slices.Equal(got, []string{"1048576", "1048576", "400 ExpiredToken", "400 ExpiredToken"}) {
		t.Errorf("expiring: %q", got)
	}
	g.Set(slowproxy.Faults{Fail: 1, Only: func(r *http.Request) bool { return r.Method == http.MethodPut }})
	if got := outcomes()[0]; got != "1048576" {
		t.Errorf("no PUT: %q", got)
	}
}

func TestPace(t *testing.T) {
	g := S3(t)
	g.Put(t, "a", bytes.Repeat([]byte("x"), 1<<20))
	for _, f := range []slowproxy.Faults{{Delay: 200 * time.Millisecond}, {Rate: 4 << 20}} {
		g.Set(f)
		began := time.Now()
		if _, _, err := get(t, g, "a"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 200*time.Millisecond || took > 20*time.Second {
			t.Errorf("%+v: %v, want 200 ms or more", f, took)
		}
	}
}
