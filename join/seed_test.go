package join_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/join"
)

// The IDs that are held in vain are chosen by a filter of the log: the log's keys
// must not be likelier than others to be taken for them.
func TestFiltersAreIndependent(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 72))
	random := func(n int) []string {
		var out []string
		for range n {
			out = append(out, fmt.Sprint(r.Int64()))
		}
		return out
	}
	const n = 200_000
	both := random(n / 10)
	ids := files(t, 1, 2, column{name: "k", dt: arrow.PrimitiveTypes.Int64, values: append(random(n), both...)})
	logs := files(t, 1, 2, column{name: "k", dt: arrow.PrimitiveTypes.Int64, values: append(random(n), both...)})
	for _, strategy := range []join.Strategy{join.Reverse, join.Shuffle} {
		got, err := run(t, ids, logs, join.Options{On: "k", Strategy: strategy, FPR: 0.05})
		if err != nil {
			t.Fatal(err)
		}
		if m := got.report.FPRMeasured; !m.Inside() || m.Rows != n {
			t.Errorf("%s: %+v", strategy, m)
		}
	}
}
