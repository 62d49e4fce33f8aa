package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// cell is a measurement.
type cell struct {
	name, text string
	document   string // the file that -update changes, relative to the module's directory
	remote     bool   // it needs the server
	layout     layout
	measure    func(context.Context, *bench, cell, dataset) (*result, error)
}

// Documents.
const (
	storesPage = "../docs/stores.md"
	wherePage  = "../docs/where.md"
)

// cells returns all cells, in the order of the documents.
func cells() []cell {
	store := func(name, text string, l layout, measure func(context.Context, *bench, cell, dataset) (*result, error)) cell {
		return cell{name: name, text: text, document: storesPage, remote: true, layout: l, measure: measure}
	}
	return []cell{
		store("bytes", "bytes received by a semi-join with 0.1 % of the users, whose rows lie close together", clustered, needs),
		store("semi-loopback", "semi-join with 1 % of the users, whose rows are scattered, on loopback", paged, through(loopback, "semi")),
		store("semi-slow", "the same, through a slow network", paged, through(slow, "semi")),
		store("inner-loopback", "inner join with them, two columns of theirs in the answer, on loopback", paged, through(loopback, "inner")),
		store("inner-slow", "the same, through a slow network", paged, through(slow, "inner")),
		store("small-loopback", "the semi-join, from 10,000 objects, on loopback", many, through(loopback, "semi")),
		store("small-slow", "the same, through a slow network", many, through(slow, "semi")),
		{name: "where-day", text: "bytes read by a condition that chooses a day of a year", document: wherePage, layout: year, measure: day},
		{name: "where-range", text: "conditions and 1 % of the users, from a local file", document: wherePage, layout: year, measure: conditions},
	}
}

// mostOverFloor is the allowed ratio of bloomjoin's time to the longer of its time
// with local files and the time to fetch the same ranges.
const mostOverFloor = 1.25

// peerLimit bounds a run of a peer.
const peerLimit = time.Minute

// through measures a join of a log in the object store.
func through(n network, typ string) func(context.Context, *bench, cell, dataset) (*result, error) {
	return func(ctx context.Context, b *bench, c cell, d dataset) (*result, error) {
		peers, missing := b.remote(typ)
		for i := range peers {
			peers[i].limit, peers[i].once = peerLimit, d.many
		}
		r, err := b.race(ctx, c.name, jobOf(d, typ), &n, 3, append([]contender{bloomjoin(), local(), replayed()}, peers...))
		if err != nil {
			return nil, err
		}
		t, goals := r.table(), targets()
		if err := r.describe(&t, n); err != nil {
			return nil, err
		}
		for _, why := range missing {
			t.Note("%s.", why)
		}
		atMost(&goals, "time / the longer of local files and floor", r.overLongest("local", "replay"), mostOverFloor)
		goals.Note("All processors of this machine need %s s for the work on local files, the requests and the server's part of them.", report.Number(r.processors()))
		return &result{tables: []report.Table{t, goals}, wrong: r.wrong}, nil
	}
}

// describe adds what was joined, and how.
func (r *contest) describe(t *report.Table, n network) error {
	size, files, err := sizeOf(r.job.log)
	if err != nil {
		return err
	}
	t.Note("The log has %s rows in %s of together %.0f MB; %d rows are in the answer, which is a local file, as the IDs are. Network: %s.",
		report.Count(uint64(r.said["ours"].RowsIn)), objects(files), float64(size)/1e6, r.answer.Rows, n.text)
	requests := r.passed["ours"]
	t.Note("bloomjoin's requests: %s; %.2f for each object.", requests.kinds(), float64(requests.requests())/float64(files))
	t.Note("%s, %d threads; of Polars twice as many. At most %d requests in flight, by bloomjoin and the floor. The server runs on the same processors.", rounds(len(r.runs["ours"])), threads, flight)
	if r.job.many {
		t.Note("The peers ran once.")
	}
	return nil
}

func objects(n int) string {
	if n == 1 {
		return "one object"
	}
	return report.Count(uint64(n)) + " objects"
}

func rounds(n int) string {
	if n == 1 {
		return "One round"
	}
	return fmt.Sprintf("Medians of %d rounds", n)
}

var nan = math.NaN()

// targets returns an empty table of targets.
func targets() report.Table { return report.Table{Head: []string{"", "measured", "wanted", "met"}} }

// atMost adds a target with an upper limit for a figure.
func atMost(t *report.Table, what string, got, want float64) {
	t.Row(what, report.Number(got), "≤ "+report.Number(want), report.Met(got, want))
}
