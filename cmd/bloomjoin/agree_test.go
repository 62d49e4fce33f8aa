package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/joins"
)

// Plan and join report the same strategy, reason and number of IDs for the same
// inputs.
func TestPlanAndJoinAgree(t *testing.T) {
	dir := t.TempDir()
	const rows = 50_000
	at := int64(-1)
	log := putInts(t, filepath.Join(dir, "log.parquet"), func() (int64, bool) {
		at++
		return at, at < rows
	})
	numbers := []int64{1, 211, 2000, 60_000}
	if testing.Short() {
		numbers = numbers[2:3]
	}
	for a, n := range numbers {
		for b, format := range []string{"csv", "tsv", "txt", "ndjson", "parquet"} {
			ids := filepath.Join(dir, fmt.Sprintf("ids-%d.%s", n, format))
			if format == "parquet" {
				i := int64(-1)
				putInts(t, ids, func() (int64, bool) {
					i++
					return i * 25, i < n
				})
			} else if err := os.WriteFile(ids, []byte(textIDs(format, n)), 0o600); err != nil {
				t.Fatal(err)
			}
			for c, typ := range []string{"semi", "inner", "left"} {
				for d, memory := range []string{"1GiB", "24MiB"} {
					// Unless all run: all but the format in all combinations, and each
					// format with each number.
					if (a+c+3*d)%5 != b && !cases.All() {
						continue
					}
					t.Run(fmt.Sprintf("%d %s %s %s", n, format, typ, memory), func(t *testing.T) {
						common := []string{"--json", "--quiet", "--threads", "2", "--memory", memory, "--type", typ, "--ids", ids, "--on", "k"}
						var p planReport
						runJSON(t, &p, append(append([]string{"plan"}, common...), log)...)
						var j struct {
							Strategy joins.Strategy `json:"strategy"`
							IDsTotal float64        `json:"ids_total"`
							Plan     struct {
								Why string      `json:"why"`
								IDs *joins.Side `json:"ids"`
							} `json:"plan"`
						}
						runJSON(t, &j, append(append([]string{"join"}, append(common, "-o", filepath.Join(t.TempDir(), "out.parquet"))...), log)...)
						if p.Strategy != j.Strategy {
							t.Errorf("plan says %s, join takes %s", p.Strategy, j.Strategy)
						}
						if p.IDs.Rows.Value != float64(n) || j.IDsTotal != float64(n) {
							t.Errorf("plan says %v IDs, join %v, want %d", p.IDs.Rows.Value, j.IDsTotal, n)
						}
						if got := j.Plan.IDs.Rows.Value; got < 0.9*float64(n) || got > 1.1*float64(n) {
							t.Errorf("join expected %v IDs, want about %d", got, n)
						}
						if j.Strategy == joins.Lookup && !strings.Contains(strings.ReplaceAll(j.Plan.Why, ",", ""), fmt.Sprintf("%.0f IDs", j.Plan.IDs.Rows.Value)) {
							t.Errorf("why %q, with %v IDs expected", j.Plan.Why, j.Plan.IDs.Rows.Value)
						}
					})
				}
			}
		}
	}
}

// textIDs returns n IDs, multiples of 25, in a text format.
func textIDs(format string, n int64) string {
	var b strings.Builder
	if format == "csv" || format == "tsv" {
		b.WriteString("k\n")
	}
	for i := range n {
		if format == "ndjson" {
			fmt.Fprintf(&b, "{\"k\":%d}\n", 25*i)
		} else {
			fmt.Fprintln(&b, 25*i)
		}
	}
	return b.String()
}

// runJSON runs a command in this process and parses its report.
func runJSON(t *testing.T, into any, args ...string) {
	t.Helper()
	var out, said bytes.Buffer
	if code := run(args, nil, &out, &said); code != session.ExitDone {
		t.Fatalf("%v: exit code %d: %s", args, code, &said)
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		t.Fatal(err)
	}
}
