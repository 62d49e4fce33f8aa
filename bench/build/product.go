package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// built is the report of bloomjoin build --json, see docs/schemas.md.
type built struct {
	Rows         uint64  `json:"rows"`
	Keys         uint64  `json:"keys"`
	Distinct     uint64  `json:"distinct"`
	Kind         string  `json:"kind"`
	Geometry     string  `json:"geometry"`
	MemoryBytes  int64   `json:"memory_bytes"`
	FileBytes    int64   `json:"file_bytes"`
	FPRPredicted float64 `json:"fpr_predicted"`
	Digest       string  `json:"digest"`
	// How the work was divided, see filterbuild.Sharing.
	Sharing      string `json:"sharing"`
	Passes       int    `json:"passes"`
	SpilledBytes int64  `json:"spilled_bytes"`
}

// scanned is the report of bloomjoin scan --json.
type scanned struct {
	RowsIn       uint64  `json:"rows_in"`
	RowsOut      uint64  `json:"rows_out"`
	FPRPredicted float64 `json:"fpr_predicted"`
}

// build returns the command line of a build with additional flags.
func (b *bench) build(out, ids string, more ...string) race.Step {
	argv := []string{b.Ours, "build", "--force", "--quiet", "--json", "--threads", strconv.Itoa(threads),
		"--key", key, "--fpr", strconv.FormatFloat(fpr, 'g', -1, 64)}
	return race.Step{Argv: append(append(argv, more...), "-o", out, ids)}
}

func (b *bench) merge(out string, more ...string) race.Step {
	return race.Step{Argv: append([]string{b.Ours, "merge", "--force", "--quiet", "--json", "--threads", strconv.Itoa(threads), "-o", out}, more...)}
}

// scan counts the rows of a log that pass a filter.
func (b *bench) scan(ctx context.Context, filter, log string) (s scanned, err error) {
	_, err = answered(ctx, race.Step{Argv: []string{b.Ours, "scan", "--count", "--quiet", "--json", "--filter", filter, log}}, &s)
	return s, err
}

// answered runs a step and decodes the JSON object that it prints.
func answered(ctx context.Context, s race.Step, answer any) (race.Usage, error) {
	var out bytes.Buffer
	s.Out = &out
	u, err := race.Execute(ctx, s)
	if err != nil {
		return u, err
	}
	if err := json.Unmarshal(out.Bytes(), answer); err != nil {
		return u, fmt.Errorf("%s: %w: %s", s, err, race.Tail(out.String(), 3))
	}
	return u, nil
}
