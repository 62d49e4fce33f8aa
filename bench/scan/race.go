package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// race measures a cell's contenders in rounds. Each round runs all of them in turn,
// starting with a different one. Every output is checked, and those of the first
// round are compared by value.
func (r *run) race(ctx context.Context, c cell) (res result, err error) {
	dir, f, err := r.store.log(ctx, c.shape, r.scaleOf(c))
	if err != nil {
		return res, err
	}
	t, rows := taskOf(c, dir, f)
	t.threads = r.threads
	if err := race.Warm(t.log, t.ids); err != nil {
		return res, err
	}
	res = result{cell: c, rows: rows, runs: race.Runs{}}
	var first string
	var want map[string]string
	for round, who := range race.Rounds(r.rounds, r.contenders) {
		if who.kind == bound && floorOf(c) == "" {
			continue
		}
		u, digest, err := r.once(ctx, who, t, rows, round == 0)
		if err != nil {
			return res, fmt.Errorf("%s, %s: %w", c, who.name, err)
		}
		res.runs[who.name] = append(res.runs[who.name], u)
		if digest == nil {
			continue
		}
		if want == nil {
			first, want = who.name, digest
		} else if err := sameDigest(who.name, digest, first, want); err != nil {
			return res, fmt.Errorf("%s: %w", c, err)
		}
	}
	return res, nil
}

// once runs a contender.
func (r *run) once(ctx context.Context, who contender, t task, rows int64, digested bool) (u race.Usage, digest map[string]string, err error) {
	err = race.Within(r.out, func(dir string) (err error) {
		t.out = filepath.Join(dir, "out.parquet")
		if u, err = race.Execute(ctx, who.steps(r.tools, t)...); err != nil || who.kind == bound {
			return err
		}
		if u.Size, err = checkOutput(t.out, rows, t.codec); err != nil || !digested {
			return err
		}
		digest, err = digestOf(ctx, r.tools.python, t.out)
		return err
	})
	return u, digest, err
}
