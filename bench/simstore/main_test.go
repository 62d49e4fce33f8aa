package main

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/storage/cloud"
	"github.com/bloomjoin/bloomjoin/storage/storagetest"
)

// open starts a server and returns a storage that uses it.
func open(t *testing.T, s *store, m *model) cloud.Store {
	t.Helper()
	server := httptest.NewServer(handler(s, m))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "any")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "any")
	c := cloud.New(cloud.Options{Endpoint: server.URL})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// The server behaves as every storage must.
func TestStorage(t *testing.T) {
	m := newModel()
	for k := range kinds {
		m.median[k], m.late[k] = time.Millisecond, 2*time.Millisecond
	}
	storagetest.TestStorage(t, open(t, newStore(), m), "s3://lake/dir")
}

// What exceeds the rate of a partition is refused, and succeeds later.
func TestSlowDown(t *testing.T) {
	m := newModel()
	m.perSecond[reading] = 50
	for k := range kinds {
		m.median[k], m.late[k] = time.Millisecond, 2*time.Millisecond
	}
	s := newStore()
	s.log([]byte("content"), 100, 3)
	c := open(t, s, m)
	begin := time.Now()
	for range 75 {
		if _, err := c.Stat(t.Context(), "s3://lake/logs/dt=2026-01-02/part-000040.parquet"); err != nil {
			t.Fatal(err)
		}
	}
	if d := time.Since(begin); d < 400*time.Millisecond || c.Stats().Throttles == 0 {
		t.Errorf("75 requests at 50 a second after a burst of 50: %v, %+v", d, c.Stats())
	}
	if n := m.counts()["HEAD"]; n.Requests-n.Refused != 75 {
		t.Errorf("%+v", n)
	}
}
