package bloomjoin_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
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

// treeOf returns the files below a name with when they were written, and their bytes.
func treeOf(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range []string{root, root + ".bloomjoin"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			info, _ := d.Info()
			all[strings.TrimPrefix(path, root)] = info.ModTime().String() + string(b)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return all
}

// A call that is made again is done, one over more inputs makes what is new, one that was
// interrupted is made by the next, and outputs of other IDs or options stay as they are.
func TestCallsAgain(t *testing.T) {
	copied := func(log, from, to string) {
		b, err := os.ReadFile(flights[0] + "/" + from)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(log, to)), 0o700), os.WriteFile(filepath.Join(log, to), b, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	type call func(ctx context.Context, log, out string, other bool, progress func(int64)) (rows int64, made bool, err error)
	for name, run := range map[string]call{
		"JoinFiles": func(ctx context.Context, log, out string, other bool, progress func(int64)) (int64, bool, error) {
			ids := airports
			if other {
				ids = []string{"testdata/flights/airports-ca.csv"}
			}
			r, err := bloomjoin.JoinFiles(ctx, ids, []string{log}, out, join.Options{On: "origin=iata", Type: join.Inner, Progress: progress})
			return r.RowsOut, r.Strategy != "", err
		},
		"ScanFiles": func(ctx context.Context, log, out string, other bool, progress func(int64)) (int64, bool, error) {
			opts := partition.ScanOptions{Match: []dataset.Match{{Filter: texas(t), Key: "origin"}}, Progress: progress}
			if other {
				opts.Columns = []string{"origin"}
			}
			w, err := bloomjoin.ScanFiles(ctx, []string{log}, out, opts)
			return w.Rows, len(w.Files) > 0, err
		},
	} {
		for _, out := range []string{"out/", "out.parquet"} {
			dir := t.TempDir()
			log, out, what := filepath.Join(dir, "log"), dir+"/"+out, name+" to "+out
			root := strings.TrimSuffix(out, "/")
			copied(log, "2001-04.parquet", "m=4/a.parquet")
			copied(log, "2001-05.parquet", "m=5/a.parquet")
			ctx, cancel := context.WithCancel(t.Context())
			if _, _, err := run(ctx, log, out, false, func(int64) { cancel() }); !errors.Is(err, context.Canceled) {
				t.Errorf("%s, interrupted: %v", what, err)
			}
			rows, made, err := run(t.Context(), log, out, false, nil)
			if err != nil || !made || rows == 0 {
				t.Fatalf("%s: %d rows, made %t: %v", what, rows, made, err)
			}
			before := treeOf(t, root)
			again, made, err := run(t.Context(), log, out, false, func(int64) { t.Errorf("%s, again: it reads rows", what) })
			if err != nil || made || again != rows {
				t.Errorf("%s, again: %d rows, %d before, made %t: %v", what, again, rows, made, err)
			}
			if _, _, err := run(t.Context(), log, out, true, nil); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s, otherwise: want fs.ErrExist, got %v", what, err)
			}
			if !maps.Equal(before, treeOf(t, root)) {
				t.Errorf("%s: the output has changed", what)
			}
			copied(log, "2001-04.parquet", "m=6/a.parquet")
			more, _, err := run(t.Context(), log, out, false, nil)
			if root == out { // a file is made from all inputs
				if !errors.Is(err, fs.ErrExist) || !maps.Equal(before, treeOf(t, root)) {
					t.Errorf("%s, of more inputs: want fs.ErrExist, got %v", what, err)
				}
				continue
			}
			after := treeOf(t, root)
			if err != nil || before["/m=4/a.parquet"] == "" || more == 0 || more >= rows || after["/m=4/a.parquet"] != before["/m=4/a.parquet"] || after["/m=5/a.parquet"] != before["/m=5/a.parquet"] || after["/m=6/a.parquet"] == "" {
				t.Errorf("%s, of more inputs: %d rows, %d before: %v", what, more, rows, err)
			}
			if all, made, err := run(t.Context(), log, out, false, nil); err != nil || made || all != rows+more {
				t.Errorf("%s, of more inputs, again: %d rows, %d and %d before, made %t: %v", what, all, rows, more, made, err)
			}
		}
	}
}

// changed is another value of an option, and whether an output without it is then recognised: one
// that it would change is not.
type changed struct {
	value any // nil: it is not tried
	known bool
}

// heldTo makes an output, and calls again with each field of the options changed.
func heldTo(t *testing.T, what string, options any, fields map[string]changed, call func(out string) (made bool, err error)) {
	t.Helper()
	out, v := t.TempDir()+"/out/", reflect.ValueOf(options).Elem()
	if made, err := call(out); err != nil || !made {
		t.Fatalf("%s: made %t: %v", what, made, err)
	}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		to, ok := fields[name]
		if !ok {
			t.Errorf("%s: say here whether an output is recognised when %s changes", what, name)
		}
		if to.value == nil {
			continue
		}
		before := reflect.ValueOf(v.Field(i).Interface())
		v.Field(i).Set(reflect.ValueOf(to.value).Convert(v.Field(i).Type()))
		switch made, err := call(out); {
		case made || err != nil && !errors.Is(err, fs.ErrExist):
			t.Errorf("%s, %s %v: made %t: %v", what, name, to.value, made, err)
		case to.known != (err == nil):
			t.Errorf("%s, %s %v: want the output recognised: %t, got %v", what, name, to.value, to.known, err)
		}
		if v.Field(i).SetZero(); before.IsValid() {
			v.Field(i).Set(before)
		}
	}
}

// Each option is part of what an output is recognised by, or is not. TestFlagsAndIdentity says the
// same of flags.
func TestOptionsAndIdentity(t *testing.T) {
	on := join.Options{On: "origin=iata", Type: join.Inner}
	match := partition.ScanOptions{Match: []dataset.Match{{Filter: texas(t), Key: "origin"}}}
	log, ids := partition.OpenOptions{SampleBy: "origin"}, partition.OpenOptions{SampleBy: "iata"}
	joined := func(out string) (bool, error) {
		r, err := bloomjoin.JoinFiles(t.Context(), airports, flights, out, on, bloomjoin.OpenLog(log), bloomjoin.OpenIDs(ids))
		return r.Strategy != "", err
	}
	scanned := func(out string) (bool, error) {
		w, err := bloomjoin.ScanFiles(t.Context(), flights, out, match, bloomjoin.OpenLog(log))
		return len(w.Files) > 0, err
	}
	heldTo(t, "join.Options", &on, map[string]changed{
		"On": {value: "destination=iata"}, "Type": {value: join.Left}, "Normalize": {value: "lower"}, "IgnoreCase": {value: true}, "NullMisfits": {value: true},
		"KeepTypes": {value: true}, "Columns": {value: []string{"origin"}}, "Suffix": {value: "_x"}, "Schema": {value: dataset.Strict}, "Pinned": {},
		"Strategy": {join.Broadcast, true}, "Filter": {texas(t), true}, "FPR": {0.5, true}, "Memory": {1 << 30, true}, "Threads": {1, true}, "TempDir": {t.TempDir(), true},
		"Mem": {memory.NewGoAllocator(), true}, "Require": {dataset.Require{Rows: 1}, true}, "Progress": {func(int64) {}, true},
		"Shard": {}, "Pieces": {}, // parts of an output
		"Limit": {}, // not of a directory
	}, joined)
	heldTo(t, "partition.ScanOptions", &match, map[string]changed{
		"Match": {value: []dataset.Match{{Filter: texas(t), Key: "destination"}}}, "Any": {value: true}, "Columns": {value: []string{"origin"}}, "IgnoreCase": {value: true},
		"Schema": {value: dataset.Strict}, "Pinned": {},
		"CountNulls": {true, true}, "Threads": {1, true}, "Mem": {memory.NewGoAllocator(), true}, "Progress": {func(int64) {}, true}, "Limit": {},
		"Normalize": {}, // that of the filter, or an error
	}, scanned)
	opened := func(of map[string]changed) map[string]changed {
		maps.Copy(of, map[string]changed{
			"IgnoreCase": {value: true}, "Int96Nanos": {value: true}, "SkipBad": {}, "Hive": {dataset.HiveOff, true}, "HiveTypes": {"dt:date", true}, "OtherNames": {value: []string{"other|another"}}, // there is no such directory
			"Store": {storage.Local(), true}, "Mem": {memory.NewGoAllocator(), true}, "Stdin": {os.Stdin, true}, "Include": {[]string{"*"}, true}, "Exclude": {[]string{"x"}, true},
			"PassedOver": {func(string, string) {}, true}, "Uncommitted": {true, true}, "Memory": {1 << 30, true}, "Base": {}, "SampleKeys": {value: 0.5}, "SampleBy": {"nothing, without SampleKeys", true},
		})
		return of
	}
	heldTo(t, "partition.OpenOptions of IDs", &ids, opened(map[string]changed{
		"Text": {true, true}, "TextFormat": {value: dataset.CSV}, "Encoding": {value: "latin1"}, "Delimiter": {byte(','), true} /* as without */, "NoHeader": {}, "Nested": {value: [][]string{{"a", "b"}}},
		"Column": {"iata", true}, "Types": {value: map[string]arrow.DataType{"iata": arrow.BinaryTypes.String}}, "Where": {value: "iata IS NOT NULL"},
	}), joined)
	ofText := changed{} // part of what Text is
	heldTo(t, "partition.OpenOptions of the log", &log, opened(map[string]changed{
		"Where": {value: "distance > 100"}, "Text": {value: true},
		"TextFormat": ofText, "Encoding": ofText, "Delimiter": ofText, "NoHeader": ofText, "Nested": ofText, "Column": ofText, "Types": ofText,
	}), joined)
}

// Calls for all shards of a log fill one directory, which is marked when the last of them is done.
func TestShardsFillDirectory(t *testing.T) {
	dir := t.TempDir()
	opts := join.Options{On: "origin=iata"}
	whole, err := bloomjoin.JoinFiles(t.Context(), airports, flights, dir+"/whole/", opts)
	if err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	for i := range uint32(3) {
		opts.Shard = dataset.Shard{Index: i, Of: 3}
		r, err := bloomjoin.JoinFiles(t.Context(), airports, flights, dir+"/shards/", opts)
		_, marked := os.Stat(dir + "/shards/_SUCCESS")
		if rows += r.RowsOut; err != nil || (marked == nil) != (i == 2) {
			t.Errorf("shard %d: %v; _SUCCESS: %v", i, err, marked)
		}
	}
	opts.Shard = dataset.Shard{}
	again, err := bloomjoin.JoinFiles(t.Context(), airports, flights, dir+"/shards/", opts)
	if err != nil || again.Strategy != "" || rows != whole.RowsOut || again.RowsOut != rows {
		t.Errorf("%d rows, whole: %d, again: %+v: %v", rows, whole.RowsOut, again, err)
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
