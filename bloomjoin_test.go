package bloomjoin_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"go.uber.org/goleak"

	"github.com/bloomjoin/bloomjoin"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

// last returns the error that ends a sequence, which yields no record with it.
func last(t *testing.T, seq iter.Seq2[arrow.Record, error]) (err error) {
	t.Helper()
	ended := false
	for rec, e := range seq {
		if ended {
			t.Error("the sequence goes on after its error")
		}
		if ended, err = e != nil, e; e != nil && rec != nil {
			t.Error("a record comes with an error")
		}
	}
	return err
}

// calls are all that read files, over the given ones.
func calls(t *testing.T, ctx context.Context, ids, logs []string, f *codec.Filter) map[string]func() error {
	on := join.Options{On: "origin=iata"}
	through := partition.ScanOptions{Match: []dataset.Match{{Filter: f, Key: "origin"}}}
	out := filepath.Join(t.TempDir(), "out.parquet")
	return map[string]func() error{
		"Load":       func() error { _, err := bloomjoin.Load(ctx, ids[0]+".bjf"); return err },
		"BuildFiles": func() error { _, err := bloomjoin.BuildFiles(ctx, ids, filterbuild.Options{Key: "iata"}); return err },
		"Scan":       func() error { return last(t, bloomjoin.Scan(ctx, logs, through)) },
		"ScanFiles":  func() error { _, err := bloomjoin.ScanFiles(ctx, logs, out, through); return err },
		"Join":       func() error { return last(t, bloomjoin.Join(ctx, ids, logs, on)) },
		"JoinFiles":  func() error { _, err := bloomjoin.JoinFiles(ctx, ids, logs, out, on); return err },
		"Plan":       func() error { _, err := bloomjoin.Plan(ctx, ids, logs, on); return err },
	}
}

func texas(t *testing.T) *codec.Filter {
	t.Helper()
	f, err := bloomjoin.BuildFiles(t.Context(), airports, filterbuild.Options{Key: "iata"})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestMissingFiles(t *testing.T) {
	defer goleak.VerifyNone(t)
	missing := []string{filepath.Join(t.TempDir(), "missing.parquet")}
	for name, call := range calls(t, t.Context(), missing, missing, texas(t)) {
		if err := call(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: want an error that wraps fs.ErrNotExist, got %v", name, err)
		}
	}
}

// The end of a context is the error of every call, whatever its cause.
func TestEndedContext(t *testing.T) {
	defer goleak.VerifyNone(t)
	f := texas(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	for name, call := range calls(t, ctx, airports, flights, f) {
		if name == "Load" {
			continue // of a file that is not there
		}
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: want an error that wraps context.Canceled, got %v", name, err)
		}
	}
	if _, err := bloomjoin.Build(ctx, filterbuild.Options{Key: "id::int64"}, key.Int64s([]int64{1})); !errors.Is(err, context.Canceled) {
		t.Errorf("Build: want an error that wraps context.Canceled, got %v", err)
	}
}

// A loop that is left early ends the work.
func TestSequencesEnd(t *testing.T) {
	defer goleak.VerifyNone(t)
	through := partition.ScanOptions{Match: []dataset.Match{{Filter: texas(t), Key: "origin"}}}
	for name, seq := range map[string]iter.Seq2[arrow.Record, error]{
		"Scan": bloomjoin.Scan(t.Context(), flights, through),
		"Join": bloomjoin.Join(t.Context(), airports, flights, join.Options{On: "origin=iata"}),
	} {
		n := 0
		for rec, err := range seq {
			if err != nil || rec.NumRows() == 0 {
				t.Errorf("%s: got %v, %v", name, rec, err)
			}
			n++
			break
		}
		if n != 1 {
			t.Errorf("%s: no record", name)
		}
	}
}

// An output that is there stays as it is.
func TestExistingOutput(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.parquet")
	if err := os.WriteFile(out, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := texas(t)
	_, scanErr := bloomjoin.ScanFiles(t.Context(), flights, out, partition.ScanOptions{Match: []dataset.Match{{Filter: f, Key: "origin"}}})
	_, joinErr := bloomjoin.JoinFiles(t.Context(), airports, flights, out, join.Options{On: "origin=iata"})
	for name, err := range map[string]error{"ScanFiles": scanErr, "JoinFiles": joinErr} {
		if !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: want fs.ErrExist, got %v", name, err)
		}
	}
	if err := bloomjoin.Save(t.Context(), out, f); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Save: want fs.ErrExist, got %v", err)
	}
	if b, err := os.ReadFile(out); string(b) != "mine" || err != nil {
		t.Errorf("the output is %q now, %v", b, err)
	}
}

// TestWrongOutputs: an output that cannot be written is an error that names the mistake,
// before any ID is read.
func TestWrongOutputs(t *testing.T) {
	on := join.Options{On: "origin=iata"}
	opts := partition.ScanOptions{Match: []dataset.Match{{Filter: texas(t), Key: "origin"}}}
	for output, want := range map[string]string{"": "Output.Name is empty", "-": "Output.Stdout is nil"} {
		_, scanErr := bloomjoin.ScanFiles(t.Context(), flights, output, opts)
		_, joinErr := bloomjoin.JoinFiles(t.Context(), airports, flights, output, on)
		for name, err := range map[string]error{"ScanFiles": scanErr, "JoinFiles": joinErr} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s to %q: want %q, got %v", name, output, want, err)
			}
		}
	}
	logs, err := partition.Open(t.Context(), flights, partition.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = partition.Close(logs) }()
	read := false
	schema := arrow.NewSchema([]arrow.Field{{Name: "iata", Type: arrow.BinaryTypes.String}}, nil)
	ids := partition.Records("ids", schema, func(context.Context) iter.Seq2[arrow.Record, error] {
		read = true
		return func(func(arrow.Record, error) bool) {}
	}, partition.RecordsOptions{})
	for _, typ := range []join.Type{join.Semi, join.Inner} {
		on.Type = typ
		j, err := join.New([]*partition.File{ids}, logs, on)
		if err != nil {
			t.Fatal(err)
		}
		for want, out := range map[string]partition.Output{
			"Output.Name is empty": {},
			"Output.Stdout is nil": {Name: "-"},
			"Output.Memory":        {Name: filepath.Join(t.TempDir(), "o.parquet"), Memory: -1},
		} {
			if _, err := j.Write(t.Context(), out); err == nil || !strings.Contains(err.Error(), want) || read {
				t.Errorf("Join.Write, %s: want %q, got %v; IDs were read: %t", typ, want, err, read)
			}
		}
	}
}

// Filters that would lose rows, and keys that a filter cannot hold, are refused.
func TestRefusals(t *testing.T) {
	ctx := t.Context()
	half := filterbuild.Options{Key: "iata::string", Expect: 9, Identity: []byte("x"), Shard: dataset.Shard{Of: 2}}
	partial, err := bloomjoin.Build(ctx, half, key.Strings([]string{"DFW"}))
	if err != nil {
		t.Fatal(err)
	}
	scanning := last(t, bloomjoin.Scan(ctx, flights, partition.ScanOptions{Match: []dataset.Match{{Filter: partial, Key: "origin"}}}))
	_, merging := bloomjoin.Merge(ctx, partial)
	_, building := bloomjoin.Build(ctx, filterbuild.Options{Key: "id::int64"}, key.Int64s([]int64{1}), key.Strings([]string{"2"}))
	for name, err := range map[string]error{"a scan with a partial filter": scanning, "a merge of fewer than all": merging, "keys of another class": building} {
		if !errors.Is(err, fault.ErrMismatch) {
			t.Errorf("%s: want fault.ErrMismatch, got %v", name, err)
		}
	}
	if f, err := bloomjoin.Build(ctx, filterbuild.Options{Key: "id::int64"}, key.Int64s(nil)); err != nil || f.Added() != 0 {
		t.Errorf("a filter of nothing: got %v, %v", f, err)
	}
	if f, err := bloomjoin.Build(ctx, half); err != nil || f.Added() != 0 {
		t.Errorf("a shard of nothing: got %v, %v", f, err)
	}
}

// Nothing named is an error, and no empty answer.
func TestNoInputs(t *testing.T) {
	defer goleak.VerifyNone(t)
	f := texas(t)
	for _, none := range [][]string{nil, {}} {
		for name, call := range calls(t, t.Context(), none, none, f) {
			if name == "Load" {
				continue // it takes one name
			}
			if err := call(); !errors.Is(err, storage.ErrNoFiles) {
				t.Errorf("%s: want storage.ErrNoFiles, got %v", name, err)
			}
		}
	}
	for name, call := range calls(t, t.Context(), airports, nil, f) {
		if err := call(); name == "Join" && !errors.Is(err, storage.ErrNoFiles) {
			t.Errorf("a join without a log: want storage.ErrNoFiles, got %v", err)
		}
	}
	if _, err := bloomjoin.Build(t.Context(), filterbuild.Options{Key: "id::int64"}); !errors.Is(err, storage.ErrNoFiles) {
		t.Errorf("Build: want storage.ErrNoFiles, got %v", err)
	}
}

// A shard that does not exist is an error in every call that takes one.
func TestAbsentShards(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx := t.Context()
	out := filepath.Join(t.TempDir(), "out.parquet")
	for _, s := range []dataset.Shard{{Index: 3, Of: 3}, {Index: 5, Of: 3}, {Index: 7, Of: 1}, {Index: 1}} {
		build := filterbuild.Options{Key: "iata::string", Expect: 9, Identity: []byte("x"), Shard: s}
		on := join.Options{On: "origin=iata", Shard: s}
		_, values := bloomjoin.Build(ctx, build, key.Strings([]string{"DFW"}))
		_, files := bloomjoin.BuildFiles(ctx, airports, build)
		_, joinFiles := bloomjoin.JoinFiles(ctx, airports, flights, out, on)
		_, plan := bloomjoin.Plan(ctx, airports, flights, on)
		joined := last(t, bloomjoin.Join(ctx, airports, flights, on))
		want := fmt.Sprintf("shard %d/%d: counted from 0: want ", s.Index, s.Of)
		for name, err := range map[string]error{"Build": values, "BuildFiles": files, "Join": joined, "JoinFiles": joinFiles, "Plan": plan} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}

// A nil context panics at the call, on the goroutine of the caller, and not in the loop
// over what the call returns.
func TestNilContext(t *testing.T) {
	defer goleak.VerifyNone(t)
	var none context.Context
	f := texas(t)
	all := map[string]func(){
		"Scan":  func() { bloomjoin.Scan(none, flights, partition.ScanOptions{}) },
		"Join":  func() { bloomjoin.Join(none, airports, flights, join.Options{On: "origin=iata"}) },
		"Merge": func() { _, _ = bloomjoin.Merge(none, f) },
		"Save":  func() { _ = bloomjoin.Save(none, filepath.Join(t.TempDir(), "f"), f) },
		"Build": func() {
			_, _ = bloomjoin.Build(none, filterbuild.Options{Key: "id::int64", Expect: 5, Kind: codec.KindBloom}, key.Int64s([]int64{1}))
		},
	}
	for name, call := range calls(t, none, airports, flights, f) {
		if all[name] == nil {
			all[name] = func() { _ = call() }
		}
	}
	for name, call := range all {
		func() {
			defer func() {
				if r := fmt.Sprint(recover()); !strings.Contains(r, "nil context") {
					t.Errorf("%s: the panic is %v", name, r)
				}
			}()
			call()
		}()
	}
}

// A column that is named and is not there is fault.ErrNoColumn, wherever it is named.
func TestNoColumn(t *testing.T) {
	ctx := t.Context()
	f, err := bloomjoin.BuildFiles(ctx, airports, filterbuild.Options{Key: "iata"})
	if err != nil {
		t.Fatal(err)
	}
	scan := func(opts partition.ScanOptions, options ...bloomjoin.Option) error {
		for _, err := range bloomjoin.Scan(ctx, flights, opts, options...) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	match := []dataset.Match{{Filter: f, Key: "origin"}}
	_, union := bloomjoin.ScanFiles(ctx, []string{flights[0] + "/*.parquet"}, t.TempDir()+"/o.parquet", partition.ScanOptions{Match: match, Columns: []string{"orijin"}, Schema: dataset.UnionByName})
	_, build := bloomjoin.BuildFiles(ctx, airports, filterbuild.Options{Key: "iota"})
	_, log := bloomjoin.Plan(ctx, airports, flights, join.Options{On: "orijin=iata"})
	_, ids := bloomjoin.Plan(ctx, airports, flights, join.Options{On: "origin=iota"})
	_, columns := bloomjoin.Plan(ctx, airports, flights, join.Options{On: "origin=iata", Columns: []string{"orijin"}})
	for what, err := range map[string]error{
		"the key of a build": build, "the log's key": log, "the IDs' key": ids, "a column of an answer": columns,
		"the key of a scan":    scan(partition.ScanOptions{Match: []dataset.Match{{Filter: f, Key: "orijin"}}}),
		"a column of a scan":   scan(partition.ScanOptions{Match: match, Columns: []string{"orijin"}}),
		"a condition":          scan(partition.ScanOptions{Match: match}, bloomjoin.OpenLog(partition.OpenOptions{Where: "orijin = 'DFW'"})),
		"a column of a union":  union,
		"a path into a struct": scan(partition.ScanOptions{Match: match, Columns: []string{"origin.code"}}),
	} {
		if !errors.Is(err, fault.ErrNoColumn) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Options open files and report; one that does not apply is an error.
func TestOptions(t *testing.T) {
	ctx := t.Context()
	store := storage.Memory()
	w, err := store.Create(ctx, "ids", storage.CreateOptions{})
	if err == nil {
		_, err = w.Write([]byte("iata\nDFW\n"))
	}
	if err == nil {
		err = w.Commit(false)
	}
	if err != nil {
		t.Fatal(err)
	}
	mine := bloomjoin.OpenIDs(partition.OpenOptions{Store: store, TextFormat: dataset.CSV})
	late := bloomjoin.OpenLog(partition.OpenOptions{Where: "delay > 100"})
	var rep join.Report
	n := int64(0)
	for rec, err := range bloomjoin.Join(ctx, []string{"ids"}, flights, join.Options{On: "origin=iata"}, mine, late, bloomjoin.JoinReport(&rep), nil) {
		if err != nil {
			t.Fatal(err)
		}
		n += rec.NumRows()
	}
	f, err := bloomjoin.BuildFiles(ctx, []string{"ids"}, filterbuild.Options{Key: "iata", Kind: codec.KindBloom}, mine)
	if err != nil {
		t.Fatal(err)
	}
	if n == 0 || n != rep.RowsOut || rep.IDsMatched != 1 || rep.RowsWhere >= rep.RowsIn {
		t.Errorf("%d rows, %+v", n, rep)
	}
	var stats partition.ScanStats
	opts := partition.ScanOptions{Match: []dataset.Match{{Filter: f, Key: "origin"}}}
	scanned := int64(0)
	for rec, err := range bloomjoin.Scan(ctx, flights, opts, late, bloomjoin.ScanStats(&stats)) {
		if err != nil {
			t.Fatal(err)
		}
		scanned += rec.NumRows()
	}
	if scanned < n || scanned != stats.RowsOut || stats.RowsWhere >= stats.RowsIn {
		t.Errorf("%d rows, %+v", scanned, stats)
	}
	for what, err := range map[string]error{
		"OpenLog": func() error {
			_, err := bloomjoin.BuildFiles(ctx, airports, filterbuild.Options{Key: "iata"}, late)
			return err
		}(),
		"OpenIDs": func() error {
			_, err := bloomjoin.ScanFiles(ctx, []string{flights[0] + "/*.parquet"}, t.TempDir()+"/o.parquet", opts, mine)
			return err
		}(),
		"JoinReport": func() error {
			_, err := bloomjoin.Plan(ctx, airports, flights, join.Options{On: "origin=iata"}, bloomjoin.JoinReport(&rep))
			return err
		}(),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s where it does not apply: %v", what, err)
		}
	}
}

// A panic of a sequence is an error, since it is on a goroutine of the call's.
func TestBuildSeqPanics(t *testing.T) {
	bad := func(yield func(int64) bool) {
		yield(1)
		panic("the program's fault")
	}
	opts := filterbuild.Options{Key: "id::int64"}
	if _, err := bloomjoin.BuildSeq(t.Context(), opts, slices.Values([]int64{1}), bad); err == nil || !strings.Contains(err.Error(), "the program's fault") {
		t.Errorf("a panic: %v", err)
	}
	if _, err := bloomjoin.BuildSeq(t.Context(), opts, nil, slices.Values([]int64{1})); err == nil {
		t.Error("a nil sequence is read")
	}
	if _, err := bloomjoin.BuildSeq[int64](t.Context(), opts); !errors.Is(err, storage.ErrNoFiles) {
		t.Errorf("no sequence: %v", err)
	}
}

// An output is never one of its inputs, nor where the next run would read it.
func TestOutputOverItsInput(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log", "a.parquet")
	write(t, log, "")
	b, err := os.ReadFile(flights[0] + "/2001-04.parquet")
	if err != nil {
		t.Fatal(err)
	}
	write(t, log, string(b))
	ctx := t.Context()
	files, err := partition.Open(ctx, []string{filepath.Dir(log)}, partition.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer partition.Close(files)
	ids, err := partition.Open(ctx, airports, partition.OpenOptions{Text: true})
	if err != nil {
		t.Fatal(err)
	}
	defer partition.Close(ids)
	others, err := partition.Open(ctx, []string{flights[0] + "/2001-05.parquet"}, partition.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer partition.Close(others)
	f, err := filterbuild.NewBuilder(filterbuild.Options{Key: "iata::string"})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	filter, _, err := f.Finish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{log, filepath.Dir(log) + "/", filepath.Dir(log) + "/b.parquet", dir + "/log/out/"} {
		j, err := join.New(ids, files, join.Options{On: "origin=iata"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Write(ctx, partition.Output{Name: name, Force: true}); err == nil || !strings.Contains(err.Error(), "input") {
			t.Errorf("a join into %s: %v", name, err)
		}
		for _, format := range []dataset.Format{dataset.Parquet, dataset.ArrowFile} { // pages and records, over the IDs and over the log
			for what, sides := range map[string][2][]*partition.File{"IDs": {files, others}, "log": {others, files}} {
				j, err := join.New(sides[0], sides[1], join.Options{On: "origin", Type: join.Inner, Columns: []string{"log.origin"}})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := j.Write(ctx, partition.Output{Name: name, Force: true, Format: format}); err == nil || !strings.Contains(err.Error(), "input") {
					t.Errorf("a join into %s, of the %s, as %s: %v", name, what, format, err)
				}
			}
		}
		s, err := partition.NewScanner(partition.ScanOptions{Match: []dataset.Match{{Filter: filter, Key: "origin"}}}, files...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (partition.Output{Name: name, Force: true}).WriteScan(ctx, s, partition.Split(files, dataset.Shard{}), files); err == nil || !strings.Contains(err.Error(), "input") {
			t.Errorf("a scan into %s: %v", name, err)
		}
	}
	if now, err := os.ReadFile(log); err != nil || !slices.Equal(now, b) {
		t.Errorf("the log has changed: %v", err)
	}
}
