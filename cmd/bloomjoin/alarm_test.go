package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/storage"
)

// alarms has IDs that are multiples of a large number, so an exact set is never the
// smaller filter. All other keys are unmatched.
type alarms struct {
	t      *testing.T
	dir    string
	ids    string
	checks int // so far
}

const alarmIDs, alarmStep = 40_000, 1_000_003

func newAlarms(t *testing.T) *alarms {
	a := &alarms{t: t, dir: t.TempDir()}
	var ids strings.Builder
	for i := range int64(alarmIDs) {
		fmt.Fprintln(&ids, i*alarmStep)
	}
	a.ids = filepath.Join(a.dir, "ids.txt")
	if err := os.WriteFile(a.ids, []byte(ids.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// must runs a command in this process and returns its report and messages.
func (a *alarms) must(args ...string) (figures alarmFigures, said string) {
	a.t.Helper()
	var out, msg bytes.Buffer
	if code := run(args, nil, &out, &msg); code != session.ExitDone {
		a.t.Fatalf("%v: exit code %d: %s", args, code, &msg)
	}
	if err := json.Unmarshal(out.Bytes(), &figures); err != nil {
		a.t.Fatal(err)
	}
	return figures, msg.String()
}

type alarmFigures struct {
	RowsOut      int64   `json:"rows_out"`
	Candidates   int64   `json:"candidates"`
	FPRAsked     float64 `json:"fpr_asked"`
	FPRPredicted float64 `json:"fpr_predicted"`
	FPRMeasured  float64 `json:"fpr_measured"`
	Warnings     []struct{ Code, Text string }
}

// build builds a filter for a rate of 2 % and returns its name.
func (a *alarms) build(more ...string) string {
	name := filepath.Join(a.t.TempDir(), "ids.bjf")
	args := []string{"build", "--json", "--key", "k", "--key-type", "int64", "--kind", "bloom", "--fpr", "0.02", "-o", name}
	a.must(append(append(args, more...), a.ids)...)
	return name
}

// log writes a log of keys with the given numbers of rows, spread over the file.
func (a *alarms) log(times map[int64]int) string {
	var order []int64
	for v := range times {
		order = append(order, v)
	}
	slices.Sort(order)
	var rows []int64
	for n := 1; len(order) > 0; n++ {
		rows = append(rows, order...)
		order = slices.DeleteFunc(order, func(v int64) bool { return times[v] <= n })
	}
	at := 0
	return putInts(a.t, filepath.Join(a.t.TempDir(), "log.parquet"), func() (int64, bool) {
		at++
		return rows[min(at, len(rows))-1], at <= len(rows)
	})
}

// unmatched returns n keys without an ID, within the range of the IDs.
func unmatched(n int64) map[int64]int {
	m := map[int64]int{}
	for i := range n {
		m[i*(alarmIDs/n)*alarmStep+17] = 1
	}
	return m
}

// check joins with every strategy that uses the filter, and compares the codes of the
// warnings, which must also be printed. Unless all cases run, the types of join take
// turns: each strategy meets each of them in four checks.
func (a *alarms) check(what, filter, log string, rows int64, codes ...string) {
	a.t.Helper()
	a.checks++
	for i, strategy := range []string{"lookup", "broadcast", "shuffle"} {
		for k, typ := range []string{"semi", "anti", "inner", "full"} {
			if (i+k+a.checks)%4 != 0 && !cases.All() {
				continue
			}
			out := filepath.Join(a.t.TempDir(), "out.parquet")
			got, said := a.must("join", "--json", "--ids", a.ids, "--filter", filter, "--on", "k", "--strategy", strategy, "--type", typ, "-o", out, log)
			var have []string
			for _, w := range got.Warnings {
				have = append(have, w.Code)
				if !strings.Contains(said, "warning: "+w.Text) {
					a.t.Errorf("%s: %s is not said: %s", what, w.Code, said)
				}
			}
			if !slices.Equal(have, codes) || typ == "semi" && got.RowsOut != rows {
				a.t.Errorf("%s, %s join by %s: %d rows, warnings %q, want %d, %q (%+v)", what, typ, strategy, got.RowsOut, have, rows, codes, got)
			}
		}
	}
}

// with adds members to other keys.
func with(m map[int64]int, members int64, times int) map[int64]int {
	for i := range members {
		m[i*alarmStep] = times
	}
	return m
}

// A filter with twice as many keys as it was sized for causes a warning when it is
// built and when it is joined: its predicted rate is above the rate asked for.
func TestAlarmOfAFullFilter(t *testing.T) {
	a := newAlarms(t)
	log := a.log(with(unmatched(5000), 500, 2))
	a.check("a filter for all keys", a.build(), log, 1000)
	a.check("a filter for half of the keys", a.build("--expect", fmt.Sprint(alarmIDs/2)), log, 1000, "filter-too-full")
}

// A filter with wrong bits and a correct checksum has more false positives than its
// bits predict, or an ID is missing in it and it is refused.
func TestAlarmOfATamperedFilter(t *testing.T) {
	a := newAlarms(t)
	const alien = 200 // of 5,000 unmatched keys: 4 %, in addition to the expected 2 %
	log := a.log(with(unmatched(5000), 500, 2))
	name := a.build()
	tampered := func(change func(*bloom.Filter)) string {
		f, err := filters.Load(t.Context(), storage.Local(), name, filters.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		bits := f.Bloom().Clone()
		change(bits)
		f.SetBloom(bits)
		other := filepath.Join(t.TempDir(), "tampered.bjf")
		if _, err := filters.Save(t.Context(), storage.Local(), other, f, filters.Options{}); err != nil {
			t.Fatal(err)
		}
		a.must("inspect", "--check", "--json", other) // the file is valid
		return other
	}
	a.check("the filter as it was", name, log, 1000)
	same := tampered(func(*bloom.Filter) {})
	a.check("the filter written again", same, log, 1000)
	var put int64
	other := tampered(func(b *bloom.Filter) {
		for v := range unmatched(5000) {
			if put++; put > alien {
				break
			}
			hash := []uint64{uint64(v)}
			b.Params().Hash.Sum64(hash, hash)
			b.Add(hash)
		}
	})
	a.check("a filter with the bits of unmatched keys", other, log, 1000, "filter-rate")
	// Swapped blocks.
	moved := tampered(func(b *bloom.Filter) {
		n := b.Params().Blocks
		half := n / 2
		lo, hi := b.AppendBlocks(nil, 0, half), b.AppendBlocks(nil, half, 2*half)
		none, err := bloom.New(b.Params())
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{b.Intersect(none), b.OrBlocks(0, hi), b.OrBlocks(half, lo)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, strategy := range []string{"lookup", "broadcast", "shuffle"} {
		out := filepath.Join(t.TempDir(), "out.parquet")
		var said bytes.Buffer
		code := run([]string{"join", "--ids", a.ids, "--filter", moved, "--on", "k", "--strategy", strategy, "-o", out, log}, nil, &bytes.Buffer{}, &said)
		if code != session.ExitFailed || !strings.Contains(said.String(), "missing (it was built from other IDs") {
			t.Errorf("%s with a filter that lacks IDs: exit code %d: %s", strategy, code, &said)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s with a filter that lacks IDs: the output is there", strategy)
		}
	}
}

// A heavy key that is a false positive causes no alarm, with or without members; nor
// does a heavy key that is dropped or is an ID.
func TestNoAlarmOfAHeavyKey(t *testing.T) {
	a := newAlarms(t)
	name := a.build()
	f, err := filters.Load(t.Context(), storage.Local(), name, filters.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var passes, fails int64
	for v := range unmatched(5000) {
		if len(f.Bloom().ProbeInts([]uint64{uint64(v)}, nil)) > 0 {
			passes = v
		} else {
			fails = v
		}
	}
	if passes == 0 || fails == 0 {
		t.Fatal("all unmatched keys pass, or none")
	}
	heavy := func(v int64, times int, members int64) string {
		m := with(unmatched(5000), members, 4)
		m[v] = times
		return a.log(m)
	}
	a.check("a heavy false positive", name, heavy(passes, 3000, 500), 2000)
	a.check("a heavier false positive", name, heavy(passes, 20_000, 500), 2000)
	a.check("a heavy stranger that is dropped", name, heavy(fails, 20_000, 500), 2000)
	a.check("a heavy ID", name, heavy(0, 20_000, 500), 20_000+499*4)
	a.check("a heavy false positive, and no ID", name, heavy(passes, 3000, 0), 0, "none-matched")
}

// If there are no more candidates than expected false positives, the answer is right but
// probably not what was meant.
func TestAlarmOfSilentNothing(t *testing.T) {
	a := newAlarms(t)
	name := a.build()
	a.check("strangers alone", name, a.log(unmatched(10_000)), 0, "none-matched")
	a.check("three IDs by chance", name, a.log(with(unmatched(10_000), 3, 1)), 3, "false-positives-only")
	a.check("enough IDs", name, a.log(with(unmatched(10_000), 300, 1)), 300)
}
