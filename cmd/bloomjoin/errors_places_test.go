package main

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/storage"
)

// placeErrors returns the cases about machines, disks and stores, which fail in their place.
func placeErrors() []errorGroup {
	const scan = "bloomjoin scan --filter users.bjf -o out.parquet "
	const url = scan + "--store-option retries=0 s3://bucket/logs/a.parquet"
	keys := []string{"AWS_ACCESS_KEY_ID=AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY=secret", "AWS_REGION=eu-central-1"}
	return []errorGroup{{
		"Machines and stores",
		[]errorCase{
			{about: "An input that is replaced", cmd: scan + "logs", stored: failingFiles{storage.Local(), func() error { return storage.ErrChanged }}, exit: session.ExitTryAgain},
			{about: "A file that may not be read", cmd: scan + "logs", stored: failingFiles{storage.Local(), func() error { return fs.ErrPermission }}, exit: session.ExitFailed},
			{about: "A disk that fails", cmd: scan + "logs", stored: failingFiles{storage.Local(), func() error { return syscall.EIO }}, exit: session.ExitTryAgain},
			{about: "A reader that has gone", cmd: "bloomjoin scan --filter users.bjf -o - logs > CLOSED", exit: session.ExitFailed},
			{about: "Ctrl-C", cmd: scan + "logs", stored: failingFiles{storage.Local(), sync.OnceValue(func() error {
				self, err := os.FindProcess(os.Getpid())
				if err != nil {
					return err
				}
				return self.Signal(os.Interrupt)
			})}, exit: 130},
			{about: "No connection", cmd: scan + "https://127.0.0.1:1/a.parquet --store-option retries=0", exit: session.ExitTryAgain},
			{about: "A request that the store denies", cmd: url, env: keys, status: http.StatusForbidden, exit: session.ExitFailed},
			{about: "An object that is not there", cmd: url, env: keys, status: http.StatusNotFound, exit: session.ExitFailed},
			{about: "Credentials that have expired", cmd: url, env: keys, status: http.StatusBadRequest, exit: session.ExitTryAgain},
		},
	}}
}

// failingFiles are local files of which those of the log fail when they are opened or, if fail
// returns nil, hang until the run is interrupted.
type failingFiles struct {
	storage.Storage
	fail func() error
}

func (f failingFiles) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	if strings.HasPrefix(o.Name, "logs") {
		if err := f.fail(); err != nil {
			return nil, &fs.PathError{Op: "open", Path: o.Name, Err: err}
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return f.Storage.Open(ctx, o)
}

// failingS3 starts an S3 server that answers every request with one status, and points
// the environment at it.
func failingS3(t *testing.T, status int) {
	t.Helper()
	code := map[int]string{http.StatusForbidden: "AccessDenied", http.StatusNotFound: "NoSuchKey", http.StatusBadRequest: "ExpiredToken"}[status]
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>no</Message></Error>")
	}))
	t.Cleanup(s.Close)
	t.Setenv("AWS_ENDPOINT_URL", s.URL)
}

// A run that fails ends with one JSON object with --json, where its report would be: on standard
// output, unless data goes there or it is not known yet. What has printed a report prints no other.
func TestFailureReport(t *testing.T) {
	t.Chdir(t.TempDir())
	makeErrorFiles(t, ".")
	for _, c := range []struct {
		args, code string
		onStdout   bool
	}{
		{"scan --json --filter nowhere.bjf -o out.parquet logs", "E201", true},
		{"scan --json --filter nowhere.bjf -o - logs", "E201", false},
		{"probe --json --filter nowhere.bjf ids.ndjson", "E201", false},
		{"dedup --json --key nowhere --expect 9 ids.csv", "E401", false},
		{"scan --json --filter users.bjf --memory 1 -o out.parquet logs", "E103", true},
		{"scan --json --nonsense", "E101", false},
		{"inspect --json --check flipped.parquet", "E901", true},
	} {
		var out, said strings.Builder
		code := run(strings.Fields(c.args), strings.NewReader(""), &out, &said)
		text := said.String()
		if c.onStdout {
			text = out.String()
		} else if out.Len() > 0 {
			t.Errorf("%s: standard output has %s", c.args, &out)
		}
		i := strings.Index(text, "{")
		var v struct {
			Verb  string
			Error struct {
				Code, Class, Message string
				ExitCode             int `json:"exit_code"`
			}
		}
		if i < 0 || json.Unmarshal([]byte(text[i:]), &v) != nil {
			t.Errorf("%s: no object in %q", c.args, text)
			continue
		}
		if e := v.Error; e.Code != c.code || e.ExitCode != code || e.Class == "" || !strings.Contains(said.String(), e.Message+" ["+c.code+"]") {
			t.Errorf("%s: exit code %d, %+v", c.args, code, e)
		}
	}
}
