package main

import (
	"encoding/json"

	"github.com/bloomjoin/bloomjoin/join"
)

// planFigures are all figures of a plan, as docs/plan.md describes their JSON.
// Those that were not determined are nil.
type planFigures struct {
	Strategy    join.Strategy  `json:"strategy"`
	Why         string         `json:"why"`
	Log         planSide       `json:"log"`
	IDs         planSide       `json:"ids"`
	Selectivity *estimate      `json:"selectivity,omitempty"`
	JoinRows    *estimate      `json:"join_rows,omitempty"`
	Sketch      *planSketch    `json:"join_rows_sketch,omitempty"`
	Sampled     planSample     `json:"sampled"`
	Filter      *planFilter    `json:"filter,omitempty"`
	Shuffled    *planShuffled  `json:"shuffled,omitempty"`
	Skips       *planSkips     `json:"skips,omitempty"`
	BreakEven   planBreakEven  `json:"break_even"`
	Strategies  []planStrategy `json:"strategies"`
	Advice      []string       `json:"advice"`
	Seconds     float64        `json:"plan_seconds"`
}

// estimate is a figure with bounds.
type estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// planSide describes one side. -1 stands for unknown.
type planSide struct {
	Files    int       `json:"files"`
	Rows     estimate  `json:"rows"`
	Bytes    int64     `json:"bytes"`
	KeyBytes int64     `json:"key_bytes"`
	Distinct *estimate `json:"distinct,omitempty"`
}

// planSketch is a bound on the pairs from count-min sketches.
type planSketch struct {
	Rows       float64 `json:"rows"`
	Error      float64 `json:"error"`
	Confidence float64 `json:"confidence"`
}

// planSample describes the rows that the estimates are based on.
type planSample struct {
	LogRuns int64 `json:"log_runs"`
	LogRows int64 `json:"log_rows"`
	LogAll  bool  `json:"log_all"`
	IDRuns  int64 `json:"id_runs"`
	IDRows  int64 `json:"id_rows"`
	IDsAll  bool  `json:"ids_all"`
}

// planFilter describes the filter of the IDs.
type planFilter struct {
	Bytes int64   `json:"bytes"`
	FPR   float64 `json:"fpr"`
	Exact bool    `json:"exact"`
	Best  struct {
		FPR       float64 `json:"fpr"`
		Formula   float64 `json:"fpr_by_formula"`
		Bytes     int64   `json:"bytes"`
		Seconds   float64 `json:"seconds"`
		Workers   int     `json:"workers"`
		Network   float64 `json:"network_bytes_per_second"`
		ScanSpeed float64 `json:"scan_bytes_per_second"`
	} `json:"best"`
}

// planShuffled is what a distributed join would shuffle.
type planShuffled struct {
	BytesWithout int64 `json:"bytes_without_filter"`
	Bytes        int64 `json:"bytes_with_filter"`
}

// planSkips is what a scan can skip by statistics.
type planSkips struct {
	Groups        int64 `json:"row_groups"`
	GroupsSkipped int64 `json:"row_groups_skipped"`
	Pages         int64 `json:"pages"`
	PagesSkipped  int64 `json:"pages_skipped"`
	Rows          int64 `json:"rows"`
	RowsSkipped   int64 `json:"rows_skipped"`
}

// planBreakEven says up to which selectivity filtering pays.
type planBreakEven struct {
	Worth       bool    `json:"worth_it"`
	Selectivity float64 `json:"selectivity"`
}

// planStrategy is what a strategy would take.
type planStrategy struct {
	Strategy     join.Strategy `json:"strategy"`
	Feasible     bool          `json:"feasible"`
	Why          string        `json:"why,omitempty"`
	Seconds      float64       `json:"seconds"`
	MemoryBytes  int64         `json:"memory_bytes"`
	SpilledBytes int64         `json:"spilled_bytes"`
}

// figuresOf returns the figures of a plan.
func figuresOf(p *join.Plan) (*planFigures, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	f := new(planFigures)
	return f, json.Unmarshal(b, f)
}
