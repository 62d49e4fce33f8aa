package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/storetest"
	"github.com/bloomjoin/bloomjoin/internal/storetest/slowproxy"
	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/cloud"
)

// bucket is a store that has the flights at an address.
type bucket struct {
	*testing.T
	store cloud.Store
	at    string
}

// newBucket returns a bucket in memory.
func newBucket(t *testing.T) bucket { return bucketAt(t, "mem://b") }

// bucketAt returns a bucket at an address, in the environment of now.
func bucketAt(t *testing.T, at string) bucket {
	t.Helper()
	b := bucket{t, cloud.New(cloud.Options{}), at}
	t.Cleanup(func() {
		if err := b.store.Close(); err != nil {
			t.Error(err)
		}
	})
	err := fs.WalkDir(os.DirFS(flights), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(flights, name))
		b.put(at+"/"+name, string(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b bucket) put(name, content string) {
	b.Helper()
	w, err := b.store.Create(b.Context(), name, storage.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		b.Fatal(err)
	}
	if err := w.Commit(true); err != nil {
		b.Fatal(err)
	}
}

// get returns the content of an object, or of a local file.
func (b bucket) get(name string) string {
	b.Helper()
	r, err := b.store.Open(b.Context(), storage.Object{Name: name})
	if err != nil {
		b.Fatal(err)
	}
	content, err := io.ReadAll(io.NewSectionReader(r, 0, r.Object().Size))
	if err != nil {
		b.Fatal(err)
	}
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
	return string(content)
}

// digests matches digests of runs, which include the identities of objects.
var digests = regexp.MustCompile(`[0-9a-f]{64}`)

// tree returns the objects below a directory by their names, without digests, and
// without the content of filters and manifests.
func (b bucket) tree(dir string) map[string]string {
	b.Helper()
	all, err := objects.Below(b.Context(), b.store, dir)
	if err != nil {
		b.Fatal(err)
	}
	content := map[string]string{}
	for _, o := range all {
		rel, size := digests.ReplaceAllString(o.Rel, "D"), fmt.Sprint(o.Size)
		switch base := path.Base(o.Rel); {
		case strings.HasPrefix(base, "_"), strings.Contains(rel, ".bloomjoin/"):
			content[rel] = ""
		case strings.HasSuffix(base, ".bjf"):
			content[rel] = size // sections are compressed, so it depends on the content
		default:
			content[rel] = digests.ReplaceAllString(b.get(o.Name), "D")
		}
	}
	return content
}

// run runs a command line over the bucket.
func (b bucket) run(args ...string) (stdout, stderr string, code int) {
	var out, said bytes.Buffer
	c := &cli{Session: session.Session{Stored: b.store}}
	code = c.run(args, strings.NewReader(""), &out, &said)
	return out.String(), said.String(), code
}

// done runs a command line that succeeds.
func (b bucket) done(args ...string) (stdout, stderr string) {
	b.Helper()
	stdout, stderr, code := b.run(args...)
	if code != session.ExitDone {
		b.Fatalf("%q: exit code %d: %s", args, code, stderr)
	}
	return stdout, stderr
}

// Every verb writes the same bytes to URLs as to local files, except for digests.
func TestURLs(t *testing.T) {
	t.Run("mem", func(t *testing.T) { newBucket(t).verbs() })
	t.Run("gs", func(t *testing.T) { bucketAt(t, strings.TrimSuffix(storetest.Google(t), "/")).verbs() })
	t.Run("azblob", func(t *testing.T) { bucketAt(t, strings.TrimSuffix(storetest.Azure(t), "/")).verbs() })
	t.Run("s3", func(t *testing.T) {
		g := storetest.S3(t)
		g.Setenv(t)
		bucketAt(t, "s3://"+g.Bucket).verbs()
		if left := g.Uploads(t); len(left) > 0 {
			t.Errorf("uploads are left: %q", left)
		}
	})
}

// verbs runs each verb on files and in the bucket.
func (b bucket) verbs() {
	t, local := b.T, b.TempDir()
	in, err := filepath.Abs(flights)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"build --key iata -o OUT/tx.bjf IN/airports-tx.csv",
		"build --key iata --expect 300 --shard 0/2 -o OUT/parts/0.bjf IN/airports-tx.csv",
		"build --key iata --expect 300 --shard 1/2 -o OUT/parts/1.bjf IN/airports-tx.csv",
		"merge -o OUT/merged.bjf OUT/parts/",
		"merge --union -o OUT/union.bjf OUT/*.bjf",
		"scan --filter OUT/tx.bjf --key origin -o OUT/candidates.parquet IN/logs",
		"scan --match origin=OUT/tx.bjf --schema-from OUT/candidates.parquet -o OUT/kept/ IN/logs/2001-q1.parquet",
		"scan --filter OUT/tx.bjf --key origin --shard 0/2 -o OUT/shards/ IN/logs/",
		"scan --filter OUT/tx.bjf --key origin --shard 1/2 -o OUT/shards/ IN/logs/",
		"join --ids IN/airports-tx.csv --on origin=iata --type inner -o OUT/inner.parquet IN/logs/",
		"join --ids IN/airports*.csv --on origin=iata --type full --strategy shuffle -o OUT/full.arrow IN/logs/2001-q1.parquet",
		"join --ids IN/airports-tx.csv --on origin=iata --filter OUT/tx.bjf -o OUT/semi/ IN/logs/*.parquet",
		"join --ids IN/airports-tx.csv --on origin=iata --count IN/logs/",
		"join --ids IN/airports-tx.csv --on origin=iata --where distance>500 --where delay>0 --columns origin,distance --require-rows 1 --memory 64MiB -o OUT/some/ IN/logs/",
		"join --ids IN/airports-tx.csv --on origin=iata --normalize lower --prune --force --type left -o OUT/lower/ IN/logs/*.parquet",
		"join --ids IN/logs/2001-04.parquet --on distance::string=distance::string --count IN/logs/2001-05.parquet",
		"scan --filter OUT/tx.bjf --key origin --count IN/log*/**/2001-0?.parquet",
		"scan --filter OUT/tx.bjf --key origin --count --exclude 2001-q1.* --exclude logs/x --include *.{parquet,arrow} IN/logs/",
		"scan --filter OUT/tx.bjf --key origin --count IN/logs/ IN/logs/2001-q1.parquet IN/logs/*.arrow",
		"join --ids IN/airports-tx.csv --ids IN/airports-*.csv --on origin=iata --type inner --count IN/logs/",
		"inspect --check OUT/tx.bjf OUT/inner.parquet",
		"inspect --compare OUT/tx.bjf OUT/merged.bjf",
	} {
		at := func(in, out string) []string {
			return strings.Fields(strings.NewReplacer("IN/", in+"/", "OUT/", out+"/").Replace(line))
		}
		want, _ := b.done(at(in, local)...)
		got, _ := b.done(at(b.at, b.at+"/out")...)
		got = strings.NewReplacer(b.at+"/out", local, b.at, in).Replace(got)
		if got, want = digests.ReplaceAllString(got, "D"), digests.ReplaceAllString(want, "D"); got != want {
			t.Errorf("%s: it printed\n%s, at files\n%s", line, got, want)
		}
	}
	scan := []string{"scan", "--filter", b.at + "/out/tx.bjf", "--key", "origin"}
	b.done(append(scan, "--shard", "0/2", "-o", b.at+"/half/part/", b.at+"/logs/")...)
	if _, said, code := b.run(append(scan, "--count", b.at+"/half/")...); code != session.ExitFailed || !strings.Contains(said, "1 of 2 workers are done, without 1") {
		t.Errorf("an output that is not finished: exit code %d: %s", code, said)
	}
	b.done(append(scan, "--shard", "1/2", "-o", b.at+"/half/part/", b.at+"/logs/")...)
	want, got := b.tree(local), b.tree(b.at+"/out")
	for name, content := range want {
		if other, ok := got[name]; !ok || other != content {
			t.Errorf("%s: at the URL %v with %d bytes, want %d", name, ok, len(other), len(content))
		}
	}
	if len(got) != len(want) || len(want) < 15 {
		t.Errorf("%d objects, want %d", len(got), len(want))
	}
}

// URLs and local files may be mixed, and reruns are recognised.
func TestURLsAndFiles(t *testing.T) {
	b := newBucket(t)
	dir := t.TempDir()
	logs := flights + "/logs/2001-q1.parquet"
	for _, args := range [][]string{
		{"build", "--key", "iata", "-o", dir + "/tx.bjf", "mem://b/airports-tx.csv"},
		{"scan", "--filter", dir + "/tx.bjf", "--key", "origin", "-o", "mem://b/new/", logs},
		{"join", "--ids", "mem://b/airports-tx.csv", "--on", "origin=iata", "-o", dir + "/a.parquet", "mem://b/new/", logs},
		{"merge", "--union", "-o", "mem://b/both.bjf", dir + "/tx.bjf", dir + "/tx.bjf"},
	} {
		time.Sleep(10 * time.Millisecond) // the clock of files ticks slower than the bucket's
		if _, said := b.done(args...); strings.Contains(said, "already done") {
			t.Errorf("%q: %s", args, said)
		}
		if _, said := b.done(args...); !strings.Contains(said, "already done") {
			t.Errorf("again %q: %s", args, said)
		}
	}
	b.done("scan", "--filter", dir+"/tx.bjf", "--key", "origin", "--shard", "0/2", "-o", "mem://b/half/out/", "mem://b/logs/")
	b.done("scan", "--filter", dir+"/tx.bjf", "--key", "origin", "-o", "mem://b/half/rest/", logs)
	count := func(args ...string) []string {
		return append([]string{"scan", "--filter", dir + "/tx.bjf", "--key", "origin", "--count"}, args...)
	}
	b.done(count("--uncommitted", "mem://b/half/")...)
	b.done("inputs", "-o", "mem://b/list.jsonl", "mem://b/logs/")
	want, _ := b.done(count("--where", "distance > 500", "mem://b/logs/")...)
	if got, _ := b.done(count("--where", "distance > 500", "--files-from", "mem://b/list.jsonl")...); got != want || len(got) < 2 {
		t.Errorf("a list counts %s rows, the directory %s", got, want)
	}
	b.done(count("mem://b/half/rest/")...)
	b.done(count("mem://b/half/rest/*")...)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{count("mem://b/half/out/"), session.ExitFailed, "mem://b/half/out/: this output is not whole: 1 of 2 workers are done, without 1"},
		{count("mem://b/half/"), session.ExitFailed, "1 of 2 workers are done"},
		{count("mem://b/half/*"), session.ExitFailed, "1 of 2 workers are done"},
		{count("mem://b/half/out/2001-04.parquet"), session.ExitFailed, "no such file"},
		{[]string{"scan", "--filter", dir + "/tx.bjf", "--key", "destination", "-o", "mem://b/new/", logs}, session.ExitFailed, "--force replaces"},
		{[]string{"build", "--key", "iata", "--force", "-o", "mem://b/airports-tx.csv", "mem://b/airports-tx.csv"}, session.ExitUsage, "its name says text"},
		{[]string{"scan", "--filter", "mem://b/both.bjf", "--key", "origin", "-o", "mem://b/both.bjf", "mem://b/logs/"}, session.ExitUsage, "its name says a filter"},
		{[]string{"scan", "--filter", dir + "/tx.bjf", "--key", "origin", "-o", "mem://b/logs/out/", "mem://b/logs/"}, session.ExitFailed, "the output is inside the input directory mem://b/logs/"},
		{[]string{"scan", "--filter", dir + "/tx.bjf", "--key", "origin", "-o", "mem://b/rows", "mem://b/logs/"}, session.ExitUsage, "want a file as mem://b/rows.parquet or mem://b/rows.arrow, or a directory as mem://b/rows/"},
		{[]string{"join", "--ids", "mem://b/no.csv", "--on", "origin=iata", "-o", "-", logs}, session.ExitFailed, "mem://b/no.csv: no such file or directory (check the address)"},
		{[]string{"join", "--ids", "mem://b/a.csv,mem://b/b.csv", "--on", "origin=iata", "-o", "-", logs}, session.ExitFailed, "commas do not separate files"},
		{[]string{"join", "--ids", "hdfs://name/ids", "--on", "origin=iata", "-o", "-", logs}, session.ExitFailed, "unsupported: hdfs:// addresses"},
		{[]string{"build", "--key", "iata", "-o", "https://host/tx.bjf", "mem://b/airports-tx.csv"}, session.ExitUsage, "web servers are only read"},
		{[]string{"join", "--ids", "mem://b/airports-tx.csv", "--on", "origin=iata", "-o", "http://host/out/", logs}, session.ExitUsage, "web servers are only read"},
	} {
		if _, said, code := b.run(c.args...); code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%q: exit code %d, want %d, and %q in %s", c.args, code, c.code, c.want, said)
		}
	}
}

// Reports and summaries count requests, and errors have the exit codes that batch
// systems act on.
func TestS3Reports(t *testing.T) {
	g := storetest.S3(t)
	g.Setenv(t)
	bucketAt(t, "s3://"+g.Bucket)
	dir := t.TempDir()
	join := []string{"join", "--json", "--ids", g.Name("airports-tx.csv"), "--on", "origin=iata", "-o", dir + "/rows.parquet", g.Name("logs/")}
	command := func(args ...string) (stdout, stderr string, code int) { // a store of its own, as in a process
		var out, said bytes.Buffer
		code = run(args, strings.NewReader(""), &out, &said)
		return out.String(), said.String(), code
	}
	g.Reset()
	stdout, said, code := command(join...)
	var rep session.Head
	if err := json.Unmarshal([]byte(stdout), &rep); err != nil || code != session.ExitDone {
		t.Fatalf("exit code %d: %v: %s", code, err, said)
	}
	seen := g.Requests()
	s := rep.Storage
	if s == nil || requests(s.Requests) != int64(len(seen)) || s.Requests.List == 0 || s.Requests.Get == 0 || s.BytesRead == 0 || s.Retries != 0 {
		t.Errorf("reported %+v, want %d requests", s, len(seen))
	}
	if !strings.Contains(said, "\nstorage: "+words.Things(requests(s.Requests), "request")+" (") {
		t.Errorf("no line about requests: %s", said)
	}
	for _, verb := range [][]string{
		{"plan", "--json", "--ids", g.Name("airports-tx.csv"), "--on", "origin=iata", g.Name("logs/")},
		{"inspect", "--json", g.Name("logs/")},
		{"build", "--json", "--key", "iata", "-o", g.Name("tx.bjf"), g.Name("airports-tx.csv")},
		{"scan", "--json", "--filter", g.Name("tx.bjf"), "--key", "origin", "-o", g.Name("out/"), g.Name("logs/")},
		{"scan", "--json", "--filter", g.Name("tx.bjf"), "--key", "origin", "-o", g.Name("out/"), g.Name("logs/")}, // already done
		{"merge", "--json", "--union", "-o", g.Name("u.bjf"), g.Name("tx.bjf"), g.Name("tx.bjf")},
	} {
		var h session.Head
		if stdout, said, code := command(verb...); code != session.ExitDone || json.Unmarshal([]byte(stdout), &h) != nil || h.Storage == nil {
			t.Errorf("%q: exit code %d: %s%s", verb, code, stdout, said)
		}
	}
	if stdout, said, _ := command("inspect", "--json", flights+"/logs/2001-04.parquet"); strings.Contains(stdout+said, "storage") {
		t.Errorf("a report of local files: %s%s", stdout, said)
	}

	denied := func(*http.Request) (int, string) { return http.StatusForbidden, "AccessDenied" }
	for _, c := range []struct {
		name   string
		faults slowproxy.Faults
		code   int
		want   string
	}{
		{"denied", slowproxy.Faults{Refuse: denied}, session.ExitFailed, "access denied"},
		{"expired", slowproxy.Faults{Expire: 1, Seed: 1}, session.ExitTryAgain, "the credentials have expired"},
		{"throttled", slowproxy.Faults{Fail: 1, Seed: 1}, session.ExitTryAgain, "run it again"},
	} {
		g.Set(c.faults)
		_, said, code := command(append([]string{"--store-option", "retries=1", "--quiet"}, join...)...)
		if code != c.code || !strings.Contains(said, c.want) || !strings.Contains(said, g.Name("")) {
			t.Errorf("%s: exit code %d, want %d and %q: %s", c.name, code, c.code, c.want, said)
		}
		if strings.Contains(said, storetest.Secret) || strings.Contains(said, storetest.Access) {
			t.Errorf("%s: credentials are in %s", c.name, said)
		}
	}
}

// Presigned addresses: no signature is in an output, a report or a message, and runs
// under another signature are the same run.
func TestPresigned(t *testing.T) {
	files := http.FileServer(http.Dir(flights))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Query().Get("X-Amz-Signature"), "hush") {
			http.Error(w, "AccessDenied", http.StatusForbidden)
			return
		}
		w.Header().Set("ETag", `"1"`)
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	dir := t.TempDir()
	var texts []string
	join := func(signature, out string) (said string, code int) {
		at := func(name string) string {
			return server.URL + "/" + name + "?X-Amz-Credential=hushed%2F2026&X-Amz-Signature=" + signature
		}
		var stdout, stderr bytes.Buffer
		code = run([]string{"join", "--json", "--verbose", "--ids", at("airports-tx.csv"), "--on", "origin=iata", "-o", out, at("logs/2001-q1.parquet")}, nil, &stdout, &stderr)
		texts = append(texts, stdout.String(), stderr.String())
		return stderr.String(), code
	}
	for _, out := range []string{dir + "/rows.parquet", dir + "/rows/"} {
		if said, code := join("hush/a=1", out); code != session.ExitDone || strings.Contains(said, "already done") {
			t.Fatalf("%s: exit code %d: %s", out, code, said)
		}
		if said, code := join("hush-b", out); code != session.ExitDone || !strings.Contains(said, "already done") {
			t.Errorf("%s, again with another signature: exit code %d: %s", out, code, said)
		}
	}
	if said, code := join("noise-hush", dir+"/none.parquet"); code != session.ExitFailed || !strings.Contains(said, "/airports-tx.csv") {
		t.Errorf("a wrong signature: exit code %d: %s", code, said)
	}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			b, err := os.ReadFile(name)
			texts = append(texts, name+": "+string(b))
			return err
		}
		return err
	})
	if err != nil || len(texts) < 10+4 {
		t.Fatal(len(texts), err)
	}
	for _, text := range texts {
		if i := strings.Index(text, "hush"); i >= 0 {
			t.Errorf("a signature: %q", text[max(i-200, 0):i+10])
		}
	}
}

// requests returns the number of all requests.
func requests(r cloud.Requests) int64 {
	return r.List + r.Head + r.Get + r.Put + r.Part + r.Delete + r.Other
}
