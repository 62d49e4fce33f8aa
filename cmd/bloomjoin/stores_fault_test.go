package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/storetest"
	"github.com/bloomjoin/bloomjoin/internal/storetest/slowproxy"
)

// distant is a log of an S3 server that is large enough to be read by many requests
// and, joined, written in several parts.
type distant struct {
	*testing.T
	*storetest.Gateway
}

const distantFiles = 2

func newDistant(t *testing.T) distant {
	t.Helper()
	g := storetest.S3(t)
	g.Setenv(t)
	for i := range distantFiles {
		g.Put(t, fmt.Sprintf("logs/%d.parquet", i), distantLog(t, uint64(i)))
	}
	var ids strings.Builder
	ids.WriteString("id\n")
	for id := 0; id < 60_000; id += 3 {
		fmt.Fprintln(&ids, id)
	}
	g.Put(t, "ids.csv", []byte(ids.String()))
	return distant{t, g}
}

// distantLog returns a Parquet file of 6 MB in row groups of 1 MB.
func distantLog(t *testing.T, seed uint64) []byte {
	t.Helper()
	type row struct {
		ID      int64  `parquet:"id"`
		Payload []byte `parquet:"payload"`
	}
	random := rand.NewChaCha8([32]byte{byte(seed)})
	ids := rand.New(random)
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(5000))
	for range 30_000 {
		r := row{ids.Int64N(60_000), make([]byte, 200)}
		_, _ = random.Read(r.Payload)
		if _, err := w.Write([]row{r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// command returns a join whose output is nearly as large as the log: one file, or a
// directory.
func (d distant) command(out string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(d.Context(), 5*time.Minute)
	d.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "bloomjoin", "join", "--type", "left", "--ids", d.Gateway.Name("ids.csv"), "--on", "id", "--quiet", "-o", d.Gateway.Name(out), d.Gateway.Name("logs/"))
	cmd.Stderr = &bytes.Buffer{}
	return cmd
}

// end waits for a command that was started and returns its exit code.
func end(cmd *exec.Cmd) (code int, said string) {
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), cmd.Stderr.(*bytes.Buffer).String()
}

func (d distant) run(out string) (code int, said string) {
	d.Helper()
	cmd := d.command(out)
	if err := cmd.Start(); err != nil {
		d.Fatal(err)
	}
	return end(cmd)
}

// outputs returns the objects below out/ by their names.
func (d distant) outputs() map[string]string {
	d.Helper()
	all := map[string]string{}
	for _, key := range d.Keys(d.T) {
		switch {
		case strings.HasPrefix(key, "out.bloomjoin/"): // manifests have times, and the number of commits
			all[generation.ReplaceAllString(key, "manifest-#")] = ""
		case strings.HasPrefix(key, "out"):
			all[key] = string(d.Get(d.T, key))
		}
	}
	return all
}

// clear removes the objects below out/.
func (d distant) clear() {
	d.Helper()
	for _, key := range d.Keys(d.T) {
		if strings.HasPrefix(key, "out") {
			d.Remove(d.T, key)
		}
	}
}

// whole returns the outputs of an undisturbed run, and removes them.
func (d distant) whole(out string) map[string]string {
	d.Helper()
	if code, said := d.run(out); code != session.ExitDone {
		d.Fatalf("exit code %d: %s", code, said)
	}
	defer d.clear()
	all := d.outputs()
	if len(all) == 0 || len(d.Uploads(d.T)) > 0 {
		d.Fatalf("%d outputs, unfinished %q", len(all), d.Uploads(d.T))
	}
	return all
}

// partial reports data files that are not those of a whole run. Manifests of a run
// that has not ended differ.
func (d distant) partial(want map[string]string) {
	d.Helper()
	for key, content := range d.outputs() {
		if strings.HasPrefix(path.Base(key), "_") || strings.HasSuffix(key, ".json") {
			continue
		}
		if content != want[key] {
			d.Errorf("%s: %d bytes are visible, which are not the %d of a whole run", key, len(content), len(want[key]))
		}
	}
}

// same compares all outputs with those of an undisturbed run.
func (d distant) same(what string, want map[string]string) {
	d.Helper()
	got := d.outputs()
	for key, content := range want {
		if got[key] != content {
			d.Errorf("%s: %s: %d bytes, want others, %d", what, key, len(got[key]), len(content))
		}
	}
	if len(got) != len(want) {
		d.Errorf("%s: %d objects, want %d", what, len(got), len(want))
	}
}

// Failures of the network and the service make runs slower and change nothing else.
func TestS3Faults(t *testing.T) {
	d := newDistant(t)
	for _, out := range []string{"out.parquet", "out/"} {
		want := d.whole(out)
		for seed, f := range []slowproxy.Faults{{Fail: 0.3}, {Cut: 0.2}, {Fail: 0.2, Cut: 0.1, Delay: 5 * time.Millisecond, Rate: 50 << 20}} {
			f.Seed = uint64(seed)
			d.Set(f)
			d.Reset()
			code, said := d.run(out)
			if faults := slices.ContainsFunc(d.Requests(), func(r slowproxy.Request) bool { return r.Fault != "" }); !faults {
				t.Errorf("%+v: no request has failed", f)
			}
			d.Set(slowproxy.Faults{})
			if code != session.ExitDone {
				t.Errorf("%s, %+v: exit code %d: %s", out, f, code, said)
			}
			d.same(fmt.Sprintf("%+v", f), want)
			d.clear()
		}
	}
}

// An object that is replaced while it is read ends the run, which names it.
func TestS3Replaced(t *testing.T) {
	d := newDistant(t)
	other := distantLog(t, 9)
	const name = "logs/1.parquet"
	for nth := 2; nth <= 4; nth++ {
		var gets atomic.Int64
		var once sync.Once
		d.Set(slowproxy.Faults{Refuse: func(r *http.Request) (int, string) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, name) && int(gets.Add(1)) >= nth {
				once.Do(func() { d.Put(t, name, other) })
			}
			return 0, ""
		}})
		code, said := d.run("out.parquet")
		if code != session.ExitTryAgain || !strings.Contains(said, d.Gateway.Name(name)) || !strings.Contains(said, "changed") {
			t.Errorf("at the %d. read: exit code %d, want %d: %s", nth, code, session.ExitTryAgain, said)
		}
		if got := d.outputs(); len(got) > 0 || len(d.Uploads(d.T)) > 0 {
			t.Errorf("at the %d. read: %d outputs, unfinished %q", nth, len(got), d.Uploads(d.T))
		}
		d.Set(slowproxy.Faults{})
		d.Put(t, name, distantLog(t, 1))
	}
}

// Credentials that expire during a run end it with a request to try again. No output is
// half visible, and the next run drops the uploads that this one could not drop.
func TestS3Expires(t *testing.T) {
	d := newDistant(t)
	for _, out := range []string{"out.parquet", "out/"} {
		d.Reset()
		want := d.whole(out)
		all := len(d.Requests())
		for n := 1; n < all; n += max(all/8, 1) {
			d.Set(slowproxy.Faults{Expire: n})
			code, said := d.run(out)
			d.Set(slowproxy.Faults{})
			if code != session.ExitTryAgain && (code != session.ExitDone || n < all/2) || code != session.ExitDone && !strings.Contains(said, "expired") {
				t.Errorf("%s: after %d of %d requests: exit code %d: %s", out, n, all, code, said)
			}
			d.partial(want)
			if code, said := d.run(out); code != session.ExitDone {
				t.Errorf("%s: again: exit code %d: %s", out, code, said)
			}
			d.same(fmt.Sprint("again, after ", n), want)
			if left := d.Uploads(t); len(left) > 0 {
				t.Errorf("%s: after %d of %d requests: unfinished: %q", out, n, all, left)
			}
			d.clear()
		}
	}
}

// A run that is killed at any moment leaves nothing that is half visible. The next
// run completes its work and drops its uploads.
func TestS3Killed(t *testing.T) {
	d := newDistant(t)
	random := rand.New(rand.NewPCG(1, 1))
	for _, out := range []string{"out.parquet", "out/"} {
		d.Reset()
		want := d.whole(out)
		all := len(d.Requests())
		for i := range cases.Count(3, 8, 100) {
			inParts := i == 0 && out == "out.parquet" // killed when it has begun an upload, which is swept later
			nth, pause := 1+random.IntN(all), time.Duration(random.IntN(20))*time.Millisecond
			cmd := d.command(out)
			var requests atomic.Int64
			var began atomic.Int64 // when an upload was begun, ns
			killed := make(chan time.Time, 1)
			d.Set(slowproxy.Faults{Rate: 100 << 20, Refuse: func(r *http.Request) (int, string) {
				if r.Method == http.MethodPost && r.URL.Query().Has("uploads") {
					began.Store(time.Now().UnixNano())
				}
				n := int(requests.Add(1))
				if inParts && r.URL.Query().Get("partNumber") == "2" || !inParts && n == nth {
					go func() {
						time.Sleep(pause)
						_ = cmd.Process.Kill()
						killed <- time.Now()
					}()
				}
				return 0, ""
			}})
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			code, said := end(cmd)
			d.Set(slowproxy.Faults{})
			d.partial(want)
			if left := d.Uploads(t); inParts && len(left) != 1 {
				t.Errorf("%s: killed while it uploaded: unfinished: %q, want the output", out, left)
			}
			if code, said := d.run(out); code != session.ExitDone {
				t.Errorf("%s: again: exit code %d: %s", out, code, said)
			}
			d.same(fmt.Sprintf("killed at request %d of %d (exit code %d, %s)", nth, all, code, said), want)
			select {
			case at := <-killed:
				// A process that dies while the service begins an upload never learns of it.
				if left := d.Uploads(t); len(left) > 1 || len(left) == 1 && at.Sub(time.Unix(0, began.Load())) > 100*time.Millisecond {
					t.Errorf("%s: killed at request %d of %d: unfinished: %q", out, nth, all, left)
				}
			default:
			}
			d.clear()
		}
	}
}

// commit --sweep lists the uploads of a machine that has died, removes them with --force, and nothing
// that is younger, elsewhere, or of a committed run. It ends a run that is under way, which then may
// be tried again.
func TestS3Sweep(t *testing.T) {
	d := newDistant(t)
	want := d.whole("out/")
	type left struct{ Kind, Name string }
	sweep := func(removed bool, args ...string) (found []left) {
		t.Helper()
		var out, said bytes.Buffer
		if code := run(append([]string{"commit", "--sweep", "--json", d.Gateway.Name("out/")}, args...), nil, &out, &said); code != session.ExitDone {
			t.Errorf("%q: exit code %d: %s", args, code, &said)
		}
		var report struct {
			Left []struct {
				left
				Bytes   int64
				Age     float64 `json:"age_seconds"`
				Removed bool
			}
		}
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			t.Fatalf("%s: %v", &out, err)
		}
		for _, x := range report.Left {
			if x.Removed != removed || x.Age < 0 || x.Age > 300 {
				t.Errorf("%q: %+v", args, x)
			}
			found = append(found, x.left)
		}
		return found
	}
	for _, live := range []bool{false, true} {
		cmd := d.command("out/")
		var once sync.Once
		d.Set(slowproxy.Faults{Refuse: func(r *http.Request) (int, string) {
			if r.URL.Query().Get("partNumber") == "1" {
				once.Do(func() {
					if live {
						sweep(true, "--older", "0s", "--force")
						return
					}
					_ = cmd.Process.Kill()
				})
			}
			return 0, ""
		}})
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		code, said := end(cmd)
		d.Set(slowproxy.Faults{})
		d.partial(want)
		if live && code != session.ExitTryAgain {
			t.Errorf("swept: exit code %d: %s", code, said)
		}
		if !live {
			forget(t) // as on another machine
			if found := sweep(false); len(found) > 0 {
				t.Errorf("nothing is a day old, yet there is %v", found)
			}
			found := sweep(false, "--older", "0s")
			if len(found) == 0 || len(d.Uploads(t)) != len(found) || found[0].Kind != "upload" || !strings.HasPrefix(found[0].Name, d.Gateway.Name("out/")) {
				t.Errorf("%v, and uploads %q", found, d.Uploads(t))
			}
			sweep(true, "--older", "0s", "--force")
			if found := d.Uploads(t); len(found) > 0 {
				t.Errorf("swept: %q", found)
			}
		}
		if code, said := d.run("out/"); code != session.ExitDone {
			t.Errorf("again: exit code %d: %s", code, said)
		}
		sweep(true, "--older", "0s", "--force")
		d.same("again", want)
		d.clear()
	}
}

// forget removes what this machine knows of its uploads.
func forget(t *testing.T) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err == nil {
		err = os.RemoveAll(filepath.Join(cache, "bloomjoin", "uploads"))
	}
	if err != nil {
		t.Fatal(err)
	}
}
