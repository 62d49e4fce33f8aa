package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/bloomjoin/bloomjoin/bench/internal/cells"
	"github.com/bloomjoin/bloomjoin/bench/internal/race"
	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// mostBytes is the allowed ratio of the bytes received to those needed.
const mostBytes = 1.1

// need is what command needed prints.
type need struct {
	Kept         int64 `json:"kept"`
	Keys         int64 `json:"keys"`
	Pages        int64 `json:"pages"`
	Dictionaries int64 `json:"dictionaries"`
	Index        int64 `json:"index"`
}

// bytes returns the bytes of all pages that are needed.
func (n need) bytes() int64 { return n.Keys + n.Pages + n.Dictionaries }

// needs measures the bytes that a join receives beside those that it needs.
func needs(ctx context.Context, b *bench, c cell, d dataset) (*cells.Result, error) {
	n, err := b.needOf(ctx, d)
	if err != nil {
		return nil, err
	}
	peers, missing := b.remote("semi")
	for i := range peers {
		peers[i].limit = peerLimit
	}
	r, err := b.receive(ctx, c.Name, jobOf(d, "semi"), append([]contender{bloomjoin()}, peers...))
	if err != nil {
		return nil, err
	}
	if n.Kept != r.answer.Rows {
		return nil, fmt.Errorf("needed counts %d rows, the answer has %d", n.Kept, r.answer.Rows)
	}
	t, goals := report.Table{Name: c.Name, Head: []string{c.Name, "requests", "MB received", "/ needed"}}, report.Targets()
	t.Row("*needed: pages*", "–", megabytes(n.bytes()), "1.00")
	for _, who := range r.contenders {
		p, ok := r.passed[who.name]
		if !ok || r.failed[who.name] != "" {
			t.Row(who.text, "failed", "–", "–")
			t.Note("%s: %s.", who.text, r.failed[who.name])
			continue
		}
		t.Row(who.text, p.kinds(), megabytes(p.bytes()), report.Number(float64(p.bytes())/float64(n.bytes())))
	}
	size, files, err := sizeOf(d.log)
	if err != nil {
		return nil, err
	}
	t.Note("The log is %s of %s MB; %d rows are in the answer. Needed are the pages of the key whose bounds leave room for an ID (%s MB), the pages of other columns with a row of the answer (%s MB), and the dictionaries of these pages (%s MB). Footer and page index have %s MB more.",
		objects(files), megabytes(size), n.Kept, megabytes(n.Keys), megabytes(n.Pages), megabytes(n.Dictionaries), megabytes(n.Index))
	t.Note("Without latency. Bytes of answers without their headers, as a proxy counts them. IDs and answers are local files.")
	for _, why := range missing {
		t.Note("%s.", why)
	}
	goals.AtMost("bytes received / needed", r.received("ours")/float64(n.bytes()), mostBytes)
	return &cells.Result{Tables: []report.Table{t, goals}, Wrong: r.wrong}, nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.2f", float64(n)/1e6) }

// needOf computes what a semi-join needs.
func (b *bench) needOf(ctx context.Context, d dataset) (n need, err error) {
	var out bytes.Buffer
	_, err = race.Execute(ctx, race.Step{Argv: []string{b.program.needed, "-key", key, d.log, d.ids}, Out: &out})
	if err != nil {
		return n, err
	}
	err = json.Unmarshal(out.Bytes(), &n)
	return n, err
}

// receive runs the contenders once, through the proxy that only counts.
func (b *bench) receive(ctx context.Context, name string, j job, contenders []contender) (*contest, error) {
	r := b.newContest(name, j, contenders)
	r.via, r.counted = b.server.counting, true
	if err := r.reference(ctx); err != nil {
		return r, err
	}
	return r, r.rounds(ctx, 1)
}

// received returns the bytes that a contender received; NaN if it failed.
func (r *contest) received(name string) float64 {
	if r.failed[name] != "" {
		return nan
	}
	return float64(r.passed[name].bytes())
}
