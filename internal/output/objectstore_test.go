package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// bucket returns logs in a storage with the names and times of S3.
func bucket(t *testing.T) *teststore.Memory {
	t.Helper()
	s := &teststore.Memory{Storage: &coarse{Storage: storage.Memory()}}
	from := memoryLogs(t)
	for _, name := range from.Names() {
		b, _ := from.Get(name)
		s.Put("s3://b/"+name, b)
	}
	return s
}

// coarse has the times of S3: in whole seconds, and of Create.
type coarse struct {
	storage.Storage
	created sync.Map // names to times
}

func (c *coarse) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	c.created.Store(name, time.Now().Truncate(time.Second))
	return c.Storage.Create(ctx, name, o)
}

// seen returns an object with the time that the storage shows.
func (c *coarse) seen(o storage.Object) storage.Object {
	if at, ok := c.created.Load(o.Name); ok && o.Type == 0 {
		o.ModTime = at.(time.Time)
	}
	return o
}

func (c *coarse) Stat(ctx context.Context, name string) (storage.Object, error) {
	o, err := c.Storage.Stat(ctx, name)
	return c.seen(o), err
}

func (c *coarse) List(ctx context.Context, prefix string, yield func(storage.Object) error) error {
	return c.Storage.List(ctx, prefix, func(o storage.Object) error { return yield(c.seen(o)) })
}

func (c *coarse) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	r, err := c.Storage.Open(ctx, o)
	return coarseReader{r, c}, err
}

type coarseReader struct {
	storage.Reader
	of *coarse
}

func (r coarseReader) Object() storage.Object { return r.of.seen(r.Reader.Object()) }

// scanBucket scans the logs of a bucket into an output directory.
func scanBucket(ctx context.Context, s storage.Storage, shard dataset.Shard, id int64) (w dataset.Written, err error) {
	files, err := source.Open(ctx, []string{"s3://b/in"}, source.Opening{OpenOptions: source.OpenOptions{Store: s, Hive: dataset.HiveOff}})
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, source.Close(files)) }()
	out := Destination{Output: Output{Name: "s3://b/out/", Store: s, Shard: shard}, Result: source.ResultExact}
	out.Run = &Run{Options: []string{"scan", fmt.Sprint(id)}, Log: files}
	todo, err := out.Pending(ctx)
	if err != nil {
		return w, err
	}
	scanner, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", id))}}}})
	if err != nil {
		return w, err
	}
	return out.WriteScan(ctx, scanner, source.Split(todo, shard), todo, nil)
}

// outputs returns the objects of the output directory by their names below it, and those of
// its manifests by their names below the bucket.
func outputs(s *teststore.Memory) map[string]string {
	all := map[string]string{}
	for _, name := range s.Names() {
		rel, ok := strings.CutPrefix(name, "s3://b/out/")
		if !ok {
			rel, ok = strings.CutPrefix(name, "s3://b/")
			ok = ok && strings.HasPrefix(rel, "out.bloomjoin/")
		}
		if ok {
			b, _ := s.Get(name)
			all[generation.ReplaceAllString(rel, "manifest-N")] = string(b)
		}
	}
	return all
}

// generation matches the number of a state, which says how often the run was committed.
var generation = regexp.MustCompile(`manifest-\d{8}`)

// Times in whole seconds don't show that an output was replaced just after its
// manifest was written; identities do.
func TestObjectStoreChangedOutput(t *testing.T) {
	s := bucket(t)
	if _, err := scanBucket(t.Context(), s, dataset.Shard{}, 3); err != nil {
		t.Fatal(err)
	}
	const name = "s3://b/out/a.parquet"
	good, _ := s.Get(name)
	bad := bytes.Clone(good)
	bad[len(bad)/2] ^= 1
	s.Put(name, bad)
	w, err := scanBucket(t.Context(), s, dataset.Shard{}, 3)
	if now, _ := s.Get(name); err != nil || !bytes.Equal(now, good) || len(w.Notes) != 1 || !strings.Contains(w.Notes[0], "a.parquet is changed") {
		t.Errorf("an output of the same size that was changed: %+v, %v", w, err)
	}
	s.Put(name, good) // a copy, which has another identity
	_, err = scanBucket(t.Context(), s, dataset.Shard{}, 3)
	sourcetest.Says(t, "after a copy", err, ErrDone)
}

// dying is a storage that no longer works after some requests that write, as if
// the process had been killed.
type dying struct {
	*teststore.Memory
	mu   sync.Mutex
	left int
}

var errKilled = errors.New("killed")

func (d *dying) alive() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left--; d.left < 0 {
		return errKilled
	}
	return nil
}

func (d *dying) Delete(ctx context.Context, o storage.Object) error {
	if err := d.alive(); err != nil {
		return err
	}
	return d.Memory.Delete(ctx, o)
}

func (d *dying) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	w, err := d.Memory.Create(ctx, name, o)
	return dyingWriter{w, d}, err
}

type dyingWriter struct {
	storage.Writer
	of *dying
}

func (w dyingWriter) Commit(replace bool) error {
	if err := w.of.alive(); err != nil {
		return err
	}
	return w.Writer.Commit(replace)
}

func (w dyingWriter) CommitOver(replace bool, over string) (identity string, settle func() error, err error) {
	if err := w.of.alive(); err != nil {
		return "", nil, err
	}
	return objects.CommitOver(w.Writer, replace, over)
}

// Workers killed between any two requests leave an output directory that is not
// marked as complete, and that another attempt completes.
func TestObjectStoreKilled(t *testing.T) {
	const workers = 2
	run := func(s storage.Storage) (errs error) {
		for i := range uint32(workers) {
			_, err := scanBucket(t.Context(), s, dataset.Shard{Index: i, Of: workers}, 3)
			if err != nil && !errors.Is(err, ErrDone) {
				errs = errors.Join(errs, err)
			}
		}
		return errs
	}
	whole := bucket(t)
	if err := run(whole); err != nil {
		t.Fatal(err)
	}
	want := outputs(whole)
	if _, ok := want[publish.Success]; !ok || want["out.bloomjoin/manifest.json"] == "" {
		t.Fatal("no _SUCCESS")
	}
	kills := 0
	for n := 0; ; n++ {
		s := bucket(t)
		err := run(&dying{Memory: s, left: n})
		if err == nil {
			break
		}
		kills++
		sourcetest.Says(t, "a killed run", err, errKilled)
		if _, ok := outputs(s)[publish.Success]; ok {
			t.Errorf("after %d requests: _SUCCESS is there", n)
		}
		for name, b := range outputs(s) {
			if !strings.HasPrefix(name, "out.bloomjoin/") && !strings.HasSuffix(name, ".staged") && b != want[name] {
				t.Errorf("after %d requests: %s is half written", n, name)
			}
		}
		if err := run(s); err != nil {
			t.Errorf("again after %d requests: %v", n, err)
		}
		got := outputs(s)
		for name, b := range want {
			if now, ok := got[name]; !ok || !strings.HasPrefix(name, "out.bloomjoin/") && now != b {
				t.Errorf("again after %d requests: %s is not as it was", n, name)
			}
		}
		for name := range got {
			if _, ok := want[name]; !ok {
				t.Errorf("again after %d requests: %s is left", n, name)
			}
		}
	}
	if kills < 8 {
		t.Errorf("killed at %d places only", kills)
	}
}

// Two attempts at one run may write a directory at the same time. Of two different
// runs at most one succeeds, and only its output is marked as complete.
func TestObjectStoreRivals(t *testing.T) {
	alone := map[int64]map[string]string{}
	for _, id := range []int64{3, 14} {
		s := bucket(t)
		if _, err := scanBucket(t.Context(), s, dataset.Shard{}, id); err != nil {
			t.Fatal(err)
		}
		alone[id] = outputs(s)
	}
	for i := range 40 {
		s, ids := bucket(t), [2]int64{3, 3}
		if i%2 > 0 {
			ids[1] = 14
		}
		var errs [2]error
		var both sync.WaitGroup
		for k, id := range ids {
			both.Go(func() {
				if _, errs[k] = scanBucket(t.Context(), s, dataset.Shard{}, id); errors.Is(errs[k], ErrDone) {
					errs[k] = nil
				}
			})
		}
		both.Wait()
		got := outputs(s)
		switch _, success := got[publish.Success]; {
		case ids[0] == ids[1] && (errs != [2]error{} || !success):
			t.Errorf("two attempts: %v, _SUCCESS %v", errs, success)
		case success:
			winner := ids[0] // or the second, if it has failed, or both have succeeded one after the other
			if errs[0] != nil || errs == [2]error{} && got["a.parquet"] == alone[ids[1]]["a.parquet"] {
				winner = ids[1]
			}
			for name, b := range alone[winner] {
				if !strings.HasPrefix(name, "out.bloomjoin/") && got[name] != b {
					t.Errorf("%v, %v: %s is not of the run that succeeded", ids, errs, name)
				}
			}
		}
		for _, err := range errs {
			if err != nil {
				sourcetest.Says(t, "a rival", err, ErrExists)
			}
		}
	}
}

// An output that is an input, or is inside an input directory, is refused at URLs,
// too.
func TestObjectStoreApart(t *testing.T) {
	s := bucket(t)
	files := roomtest.Open(t, source.Opening{OpenOptions: source.OpenOptions{Store: s, Hive: dataset.HiveOff}}, "s3://b/in/")
	for name, want := range map[string]string{
		"s3://b/in/a.parquet":       "the output is the input s3://b/in/a.parquet",
		"s3://b/in/":                "the output is the input",
		"s3://b/":                   "the output is the input",
		"s3://b/in/y=2/":            "inside the input directory s3://b/in/",
		"s3://b/in/y=1/new.parquet": "inside the input directory s3://b/in/",
	} {
		_, err := Destination{Output: Output{Name: name, Store: s}, Run: &Run{Log: files}}.Pending(t.Context())
		sourcetest.Says(t, name, err, nil, want)
	}
	for _, name := range []string{"s3://b/in-2/", "s3://b/i", "s3://b2/in/"} {
		if _, err := (Destination{Output: Output{Name: name, Store: s}, Run: &Run{Log: files}}).Pending(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The query of an HTTP URL may be a signature. It is not part of the path that
// outputs, manifests and digests have.
func TestQueryIsNoPath(t *testing.T) {
	o := source.Opening{OpenOptions: source.OpenOptions{Store: teststore.NewMemory()}}
	for name, want := range map[string]string{
		"https://host/log/a.parquet?X-Amz-Credential=key/2026/s3&X-Amz-Signature=abc/def": "a.parquet",
		"https://host/log/dt=1/a.parquet?sig=abc/":                                        "dt=1/a.parquet",
		"s3://b/log/dt=1/a.parquet":                                                       "dt=1/a.parquet",
	} {
		e, _, err := o.Rebase(source.Entry{Object: storage.Object{Name: name, Rel: "a.parquet"}})
		if err != nil || e.Rel != want || e.Name != name {
			t.Errorf("%s: %+v, %v; want the path %s", name, e, err, want)
		}
	}
}

// unreachable is a storage that opens no data for now.
type unreachable struct{ *teststore.Memory }

func (u unreachable) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	if strings.HasPrefix(o.Name, "s3://b/out/") && strings.HasSuffix(o.Name, ".parquet") {
		return nil, fmt.Errorf("%s: %w", o.Name, storage.ErrAgain)
	}
	return u.Memory.Open(ctx, o)
}

// An output that cannot be read at the moment may be one of this run: it is not taken
// for a file of another program.
func TestObjectStoreUnreachable(t *testing.T) {
	s := bucket(t)
	if _, err := scanBucket(t.Context(), s, dataset.Shard{}, 3); err != nil {
		t.Fatal(err)
	}
	for _, name := range s.Names() {
		if strings.HasPrefix(name, "s3://b/out.bloomjoin/") || path.Base(name) == publish.Success {
			if err := s.Delete(t.Context(), storage.Object{Name: name}); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := scanBucket(t.Context(), unreachable{s}, dataset.Shard{}, 3)
	sourcetest.Says(t, "outputs that cannot be read", err, storage.ErrAgain)
	if _, err := scanBucket(t.Context(), s, dataset.Shard{}, 3); err != nil {
		t.Errorf("later: %v", err)
	}
}
