package joins_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// TestRunsOnce checks that a Join runs once, whichever way it is used first, and that
// what is asked of it beside the run is safe.
func TestRunsOnce(t *testing.T) {
	idDir, logDir := sharedInputs(t, "snappy")
	ids, logs := open(t, partition.OpenOptions{}, idDir), open(t, partition.OpenOptions{}, logDir)
	ways := map[string]func(*join.Join) error{
		"Run": func(j *join.Join) error { _, err := digestOf(j.Run(t.Context())); return err },
		"Write": func(j *join.Join) error {
			_, err := j.Write(t.Context(), partition.Output{Name: t.TempDir() + "/out.parquet"})
			return err
		},
		"Count": func(j *join.Join) error { _, err := j.Count(t.Context()); return err },
	}
	for first, run := range ways {
		j, err := join.New(ids, logs, join.Options{On: "user=id", Type: join.Inner})
		if err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		var asking sync.WaitGroup
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r := j.Report()
				_ = r.Warnings
				room(j).Parts()
				room(j).PathOf((*source.File)(logs[0]))
				logs[0].Doubts()
				logs[0].BytesRead()
			}
		})
		if err := run(j); err != nil {
			t.Errorf("%s: %v", first, err)
		}
		close(stop)
		asking.Wait()
		rows := j.Report().RowsIn
		for second, again := range ways {
			if err := again(j); err == nil || !strings.Contains(err.Error(), "runs once") {
				t.Errorf("%s, then %s: %v, want that a Join runs once", first, second, err)
			}
		}
		if got := j.Report().RowsIn; got != rows || rows == 0 {
			t.Errorf("%s: %d rows in the report, %d after it was used again", first, rows, got)
		}
	}
	j, err := join.New(ids, logs, join.Options{On: "user=id", Type: join.Inner})
	if err != nil {
		t.Fatal(err)
	}
	none, err := join.New(ids, logs, join.Options{On: "user=id", Columns: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := ways["Write"](none); err == nil || !strings.Contains(err.Error(), "call Count") {
		t.Errorf("rows without columns: %v", err)
	}
	if err := ways["Count"](none); err != nil {
		t.Errorf("Count, as the error before says: %v", err)
	}
	seq := j.Run(t.Context())
	for r, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		r.Record.Release()
		break
	}
	if _, err := digestOf(seq); err == nil || !strings.Contains(err.Error(), "runs once") {
		t.Errorf("a sequence that was left, used again: %v", err)
	}
}

// put writes a file and returns its name.
func put(t testing.TB, name, content string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestTextIDsAreShared checks that joins of one opened text file do not see the types
// and checks that others give it.
func TestTextIDsAreShared(t *testing.T) {
	dir := t.TempDir()
	name := put(t, dir+"/ids.csv", "id\n7\n007\n8\n")
	ids := open(t, partition.OpenOptions{Text: true}, name)
	text := column{name: "k", dt: arrow.BinaryTypes.String, values: []string{"7", "007", "9"}}
	numbers := column{name: "k", dt: arrow.PrimitiveTypes.Int64, values: []string{"7", "8", "9"}}
	logsOf := func(c column) []*partition.File {
		return open(t, partition.OpenOptions{}, writeTable(t, table(t, c), 1, 1, dataset.Parquet))
	}
	logs := map[string][]*partition.File{"numbers": logsOf(numbers), "text": logsOf(text)}
	count := func(j *join.Join) int64 {
		t.Helper()
		n, err := j.Count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	made := func(of string) *join.Join {
		t.Helper()
		j, err := join.New(ids, logs[of], join.Options{On: "k=id"})
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	for _, order := range [][2]string{{"numbers", "text"}, {"text", "numbers"}} {
		first, second := made(order[0]), made(order[1])
		for i, j := range []*join.Join{first, second, made(order[0])} {
			if n := count(j); n != 2 {
				t.Errorf("%v: join %d has %d rows, want 2", order, i, n)
			}
		}
	}
	if f := ids[0].Schema().Field(0); f.Type.ID() != arrow.STRING {
		t.Errorf("the opened file's column has become %s", f.Type)
	}

	bad := open(t, partition.OpenOptions{Text: true, SkipBad: true}, put(t, dir+"/bad.csv", "id\n"+strings.Repeat("7\n8\nbad\n9\n", 500)))
	var joins sync.WaitGroup
	for range 4 {
		joins.Go(func() {
			j, err := join.New(bad, logs["numbers"], join.Options{On: "k=id"})
			if err == nil {
				var n int64
				if n, err = j.Count(context.Background()); n != 3 {
					t.Errorf("%d rows, want 3", n)
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	joins.Wait()
	if n, first, _ := bad[0].BadLines(); n != 500 || len(first) != 20 || first[0] != 4 {
		t.Errorf("%d bad lines, the first at %v, want 500 from 4 on", n, first)
	}
}

// TestClosedFiles checks that a Join over closed files says so, and opens nothing.
func TestClosedFiles(t *testing.T) {
	idDir, logDir := sharedInputs(t, "none")
	for _, side := range []string{"ids", "logs"} {
		ids, logs := open(t, partition.OpenOptions{}, idDir), open(t, partition.OpenOptions{}, logDir)
		before := teststore.Descriptors(t)
		made := func() *join.Join {
			j, err := join.New(ids, logs, join.Options{On: "user=id", Type: join.Inner})
			if err != nil {
				t.Fatal(err)
			}
			return j
		}
		run, write, counted, planned := made(), made(), made(), made()
		of := ids
		if side == "logs" {
			of = logs
		}
		if err := partition.Close(of); err != nil {
			t.Fatal(err)
		}
		errs := map[string]error{}
		_, errs["Run"] = digestOf(run.Run(t.Context()))
		_, errs["Write"] = write.Write(t.Context(), partition.Output{Name: t.TempDir() + "/out.parquet"})
		_, errs["Count"] = counted.Count(t.Context())
		_, errs["Plan"] = planned.Plan(t.Context(), join.PlanOptions{})
		for what, err := range errs {
			if !errors.Is(err, fs.ErrClosed) || !strings.Contains(err.Error(), of[0].Name()) {
				t.Errorf("%s over closed %s: %v, want fs.ErrClosed and the name", what, side, err)
			}
		}
		if after := teststore.Descriptors(t); after > before {
			t.Errorf("%d descriptors, %d before", after, before)
		}
	}
}

// TestZeroJoin checks what a Join that New has not made, and nils, come to.
func TestZeroJoin(t *testing.T) {
	for _, j := range []*join.Join{nil, new(join.Join)} {
		if _, err := digestOf(j.Run(t.Context())); err == nil {
			t.Error("Run: no error")
		}
		if _, err := j.Count(t.Context()); err == nil {
			t.Error("Count: no error")
		}
		if _, err := j.Write(t.Context(), partition.Output{Name: t.TempDir() + "/o"}); err == nil {
			t.Error("Write: no error")
		}
		if _, err := j.Plan(t.Context(), join.PlanOptions{}); err == nil {
			t.Error("Plan: no error")
		}
		if n := len(room(j).Parts()); n != 0 {
			t.Errorf("%d parts", n)
		}
		if r := j.Report(); r.RowsIn != 0 || len(r.Warnings) != 0 {
			t.Errorf("%+v", r)
		}
		room(j).PathOf(nil)
	}
	if b, err := new(join.Plan).MarshalJSON(); err != nil || len(b) == 0 {
		t.Errorf("a zero Plan: %q, %v", b, err)
	}
	if _, err := join.New([]*partition.File{nil}, []*partition.File{nil}, join.Options{On: "a"}); err == nil || !strings.Contains(err.Error(), "is nil") {
		t.Errorf("nil files: %v", err)
	}
	if _, err := join.New([]*partition.File{{}}, []*partition.File{{}}, join.Options{On: "a"}); err == nil || !strings.Contains(err.Error(), "not opened") {
		t.Errorf("zero files: %v", err)
	}
}

// Plans may be made while the join runs. Text IDs are read under the types of the log, as
// other files than those that were opened.
func TestPlanWhileItRuns(t *testing.T) {
	dir := t.TempDir()
	ids := filepath.Join(dir, "ids.csv")
	if err := os.WriteFile(ids, []byte("k\n"+strings.Repeat("7\n8\n9\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	logDir := writeTable(t, table(t, numbers("k", arrow.PrimitiveTypes.Int64, 0, 3000)), 4, 3, "")
	for _, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle} {
		j, err := join.New(open(t, partition.OpenOptions{Text: true}, ids), open(t, partition.OpenOptions{}, logDir), join.Options{On: "k", Strategy: strategy, Columns: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		var g errgroup.Group
		for range 3 {
			g.Go(func() error {
				_, err := j.Plan(t.Context(), join.PlanOptions{})
				return err
			})
		}
		n, err := j.Count(t.Context())
		if err := errors.Join(err, g.Wait()); err != nil || n != 3 {
			t.Errorf("%s: %d rows, %v", strategy, n, err)
		}
	}
}
