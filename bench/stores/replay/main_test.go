package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/storetest/slowproxy"
)

// write creates a log of requests.
func write(t *testing.T, requests ...slowproxy.Request) string {
	t.Helper()
	text, err := json.Marshal(requests)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Requests that got bytes of objects are repeated, signed, with their ranges, and no
// others.
func TestReplay(t *testing.T) {
	content := strings.Repeat("0123456789", 1000)
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Range"))
		mu.Unlock()
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=me/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(content))
	}))
	defer server.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "me")
	part := slowproxy.Request{Method: "GET", Path: "/b/dir/a=1/x y", Range: "bytes=10-19", Status: 206, Out: 10}
	whole := slowproxy.Request{Method: "GET", Path: "/b/z", Status: 200, Out: 10_000}
	log := write(t, slowproxy.Request{Method: "GET", Path: "/b/", Query: "list-type=2", Status: 200, Out: 99},
		slowproxy.Request{Method: "HEAD", Path: "/b/z", Status: 200}, part, slowproxy.Request{Method: "GET", Path: "/b/gone", Status: 404, Out: 9}, whole)
	requests, err := load(log)
	if err != nil {
		t.Fatal(err)
	}
	n, err := replay(context.Background(), server.URL, 1, requests)
	if err != nil || n != 10_010 {
		t.Errorf("%d bytes, %v, want 10010", n, err)
	}
	if all := strings.Join(got, "\n"); all != "GET /b/dir/a=1/x y bytes=10-19\nGET /b/z " {
		t.Errorf("the server got\n%s", all)
	}
	part.Out = 11
	if _, err := replay(context.Background(), server.URL, 4, []slowproxy.Request{whole, part}); err == nil || !strings.Contains(err.Error(), "want 206, 11") {
		t.Errorf("another size: %v", err)
	}
	if _, err := load(write(t, slowproxy.Request{Method: "HEAD", Path: "/b/z", Status: 200})); err == nil {
		t.Error("nothing to fetch: want an error")
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"log"}, {"-endpoint", "http://127.0.0.1:1", "-flight", "0", "log"}, {"-endpoint", "http://127.0.0.1:1", "/nonexistent"}} {
		if err := run(context.Background(), args); err == nil {
			t.Errorf("%q: want an error", args)
		}
	}
}
