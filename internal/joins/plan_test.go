package joins_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// TestPlanSmall: of a small log all rows are read, and the plan is exact.
func TestPlanSmall(t *testing.T) {
	log := writeTable(t, table(t,
		column{name: "k", dt: arrow.PrimitiveTypes.Int64, values: []string{"1", "2", "2", "NULL", "-3", "9"}},
		column{name: "v", dt: arrow.BinaryTypes.String, values: []string{"a", "b", "c", "d", "e", "f"}}), 2, 2, dataset.Parquet)
	ids := writeTable(t, table(t,
		column{name: "k", dt: arrow.PrimitiveTypes.Int64, values: []string{"2", "2", "NULL", "-3", "100"}}), 1, 1, dataset.Parquet)
	j, err := join.New(open(t, partition.OpenOptions{}, ids), open(t, partition.OpenOptions{}, log), join.Options{On: "k", Type: join.Inner})
	if err != nil {
		t.Fatal(err)
	}
	p, err := room(j).Plan(context.Background(), joins.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (joins.Estimate{Value: 0.5, Low: 0.5, High: 0.5}); p.Selectivity == nil || *p.Selectivity != want {
		t.Errorf("selectivity %+v, want %+v", p.Selectivity, want)
	}
	if want := (joins.Estimate{Value: 5, Low: 5, High: 5}); p.JoinRows == nil || *p.JoinRows != want {
		t.Errorf("rows %+v, want %+v", p.JoinRows, want)
	}
	if p.Log.Distinct == nil || p.Log.Distinct.Value != 4 || p.Log.Rows.Value != 6 || p.IDs.Rows.Value != 5 {
		t.Errorf("sides %+v %+v", p.Log, p.IDs)
	}
	if p.Strategy != joins.Lookup || len(p.Strategies) != 5 {
		t.Errorf("strategy %s of %+v", p.Strategy, p.Strategies)
	}
	if p.Sketch == nil || p.Sketch.Rows < 5 {
		t.Errorf("sketch %+v", p.Sketch)
	}
}

// TestPlanReadsNothing: if the footers determine the best strategy, no page is read.
func TestPlanReadsNothing(t *testing.T) {
	var k []string
	for i := range 20000 {
		k = append(k, fmt.Sprint(i*7919%100003))
	}
	log := open(t, partition.OpenOptions{}, writeTable(t, table(t, column{name: "k", dt: arrow.PrimitiveTypes.Int64, values: k}), 2, 2, dataset.Parquet))
	ids := open(t, partition.OpenOptions{}, writeTable(t, table(t, column{name: "k", dt: arrow.PrimitiveTypes.Int64, values: k[:500]}), 1, 1, dataset.Parquet))
	j, err := join.New(ids, log, join.Options{On: "k"})
	if err != nil {
		t.Fatal(err)
	}
	read := func() (n int64) {
		for _, f := range slices.Concat(ids, log) {
			n += f.BytesRead()
		}
		return n
	}
	before := read()
	p, err := joins.QuickPlan(context.Background(), room(j))
	if err != nil {
		t.Fatal(err)
	}
	if read() != before || p.Selectivity != nil {
		t.Errorf("%d bytes were read: %+v", read()-before, p)
	}
	if p.Strategy != joins.Lookup && p.Strategy != joins.Exact {
		t.Errorf("strategy %s", p.Strategy)
	}
	if _, err := j.Plan(context.Background(), join.PlanOptions{}); err != nil {
		t.Error(err)
	}
	if read() == before {
		t.Error("a plan that estimates reads nothing")
	}
}

// TestPlanJSON: the JSON of a plan has every figure that docs/plan.md names, and agrees
// with the fields.
func TestPlanJSON(t *testing.T) {
	k := column{name: "k", dt: arrow.PrimitiveTypes.Int64, values: []string{"1", "2", "2", "9"}}
	log := open(t, partition.OpenOptions{}, writeTable(t, table(t, k), 1, 4, dataset.Parquet))
	ids := open(t, partition.OpenOptions{}, writeTable(t, table(t, k), 1, 4, dataset.Parquet))
	j, err := join.New(ids, log, join.Options{On: "k", Type: join.Inner})
	if err != nil {
		t.Fatal(err)
	}
	p, err := j.Plan(context.Background(), join.PlanOptions{Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Strategy join.Strategy
		Why      string
		Pairs    join.Estimate `json:"join_rows"`
		Filter   struct{ Best struct{ Workers int } }
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Strategy != p.Strategy || got.Why != p.Why || got.Pairs != *p.Pairs || got.Pairs.Value != 6 || got.Filter.Best.Workers != 3 {
		t.Errorf("%s, want the strategy and reason of %+v, 6 pairs and 3 workers", b, p)
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"strategy", "why", "log", "ids", "selectivity", "join_rows", "join_rows_sketch", "sampled", "filter", "shuffled", "break_even", "strategies", "advice", "plan_seconds"} {
		if _, ok := all[name]; !ok {
			t.Errorf("no %s in %s", name, b)
		}
	}
}
