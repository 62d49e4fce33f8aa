package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// logged returns the only record that f logs as JSON.
func logged(t *testing.T, f func(c *Session)) map[string]any {
	t.Helper()
	var b bytes.Buffer
	f(&Session{Stderr: words.Printable{Writer: &b}, terminal: &b, jsonLog: true})
	var v map[string]any
	if err := json.Unmarshal(b.Bytes(), &v); err != nil || strings.Count(b.String(), "\n") != 1 {
		t.Fatalf("%v in %q", err, &b)
	}
	return v
}

// The message of a JSON record is what the text format prints: without credentials, with
// control characters escaped.
func TestLogSafe(t *testing.T) {
	for _, text := range []string{
		"https://host/a.parquet?X-Amz-Signature=hunter2: not found", "https://me:hunter2@host/a.parquet: not found",
		"a\x1b[31m.parquet", "a\u202e.parquet", "\xff.parquet", "two\nlines", `a "quoted" \ name`, "0 < 1 & 2 > 1",
	} {
		var b bytes.Buffer
		(&Session{Stderr: words.Printable{Writer: &b}}).Warn("%s", text)
		want := strings.TrimSuffix(strings.TrimPrefix(b.String(), warningMark), "\n")
		v := logged(t, func(c *Session) { c.Warn("%s", text) })
		if v["msg"] != want || v["level"] != "WARN" {
			t.Errorf("%q: got %v, want the text %q", text, v, want)
		}
		if strings.Contains(fmt.Sprint(v), "hunter2") {
			t.Errorf("%q: %v", text, v)
		}
	}
}

// Every error has an exit code and a class, from which machines decide what to do.
func TestLogClass(t *testing.T) {
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(signalError{syscall.SIGTERM})
	for _, c := range []struct {
		ctx   context.Context
		err   error
		code  float64
		class string
		cause string
	}{
		{t.Context(), flags.Usagef("wrong"), 64, "usage", "E103"},
		{t.Context(), output.ErrExists, 1, "data", "E601"},
		{t.Context(), fmt.Errorf("disk: %w", syscall.ENOSPC), 75, "retryable", "E701"},
		{t.Context(), output.ErrRequire, 2, "gate", "E606"},
		{t.Context(), &faults.NotExist{Name: "a"}, 1, "data", "E201"},
		{interrupted, context.Canceled, 143, "interrupted", "E704"},
		{t.Context(), guarded(func() error { panic("bug") }), 1, "internal", "E904"},
		{t.Context(), panics.Error(fault.At{File: "a"}, "bug"), 1, "internal", "E904"},
	} {
		v := logged(t, func(l *Session) {
			l.verb, l.Shard = "scan", "3/16"
			f := failureOf(c.ctx, c.err)
			f.Message = c.err.Error()
			l.logError(f)
		})
		if v["code"] != c.cause || !strings.HasSuffix(fmt.Sprint(v["msg"]), "["+c.cause+"]") || v["exit_code"] != c.code || v["class"] != c.class || v["level"] != "ERROR" || v["verb"] != "scan" || v["shard"] != "3/16" {
			t.Errorf("%v: %v", c.err, v)
		}
		if missing := errors.Is(c.err, fs.ErrNotExist); (v["not_found"] == true) != missing {
			t.Errorf("%v: %v, want not_found %v", c.err, v, missing)
		}
	}
}

// The figures of a progress line are attributes, too.
func TestLogProgress(t *testing.T) {
	for total, want := range map[int64]any{1000: 1000.0, 0: nil, 100: nil} { // rows that are read twice exceed the total
		m := &meter{what: "scanning", total: total}
		m.rows.Add(250)
		v := logged(t, func(c *Session) { c.log(0, "", m.what, m.figures()) })
		p, _ := v["progress"].(map[string]any)
		if p["what"] != "scanning" || p["rows"] != 250.0 || p["rows_total"] != want {
			t.Errorf("%d rows in all: %v", total, v)
		}
	}
}
