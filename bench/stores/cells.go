package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// cell is a measurement.
type cell struct {
	cells.Cell
	remote  bool // it needs the server
	layout  layout
	measure func(context.Context, *bench, cell, dataset) (*cells.Result, error)
}

// Documents.
const (
	storesPage = "../docs/stores.md"
	wherePage  = "../docs/where.md"
)

// allCells returns all cells, in the order of the documents.
func allCells() []cell {
	store := func(name, text string, l layout, measure func(context.Context, *bench, cell, dataset) (*cells.Result, error)) cell {
		return cell{Cell: cells.Cell{Name: name, Text: text, Document: storesPage}, remote: true, layout: l, measure: measure}
	}
	return []cell{
		store("bytes", "bytes received by a semi-join with 0.1 % of the users, whose rows lie close together", clustered, needs),
		store("semi-loopback", "semi-join with 1 % of the users, whose rows are scattered, on loopback", paged, through(loopback, "semi")),
		store("semi-slow", "the same, through a slow network", paged, through(slow, "semi")),
		store("inner-loopback", "inner join with them, two columns of theirs in the answer, on loopback", paged, through(loopback, "inner")),
		store("inner-slow", "the same, through a slow network", paged, through(slow, "inner")),
		store("small-loopback", "the semi-join, from 10,000 objects, on loopback", many, through(loopback, "semi")),
		store("small-slow", "the same, through a slow network", many, through(slow, "semi")),
		{Cell: cells.Cell{Name: "where-day", Text: "bytes read by a condition that chooses a day of a year", Document: wherePage}, layout: year, measure: day},
		{Cell: cells.Cell{Name: "where-range", Text: "conditions and 1 % of the users, from a local file", Document: wherePage}, layout: year, measure: conditions},
	}
}

// mostOverFloor is the allowed ratio of bloomjoin's time to the longer of its time
// with local files and the time to fetch the same ranges.
const mostOverFloor = 1.25

// peerLimit bounds a run of a peer.
const peerLimit = time.Minute

// through measures a join of a log in the object store.
func through(n network, typ string) func(context.Context, *bench, cell, dataset) (*cells.Result, error) {
	return func(ctx context.Context, b *bench, c cell, d dataset) (*cells.Result, error) {
		peers, missing := b.remote(typ)
		for i := range peers {
			peers[i].limit, peers[i].once = peerLimit, d.many
		}
		r, err := b.race(ctx, c.Name, jobOf(d, typ), &n, 3, append([]contender{bloomjoin(), local(), replayed()}, peers...))
		if err != nil {
			return nil, err
		}
		t, goals := r.table(), report.Targets()
		if err := r.describe(&t, n); err != nil {
			return nil, err
		}
		for _, why := range missing {
			t.Note("%s.", why)
		}
		goals.AtMost("time / the longer of local files and floor", r.overLongest("local", "replay"), mostOverFloor)
		goals.Note("All processors of this machine need %s s for the work on local files, the requests and the server's part of them.", report.Number(r.processors()))
		return &cells.Result{Tables: []report.Table{t, goals}, Wrong: r.wrong}, nil
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
