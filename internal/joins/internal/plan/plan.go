// Package plan estimates what a join costs and chooses its strategy.
//
// It works on figures alone: a join reads footers and samples of keys and passes
// what it found as [Sizes], [Limits] and [Sample]; nothing here opens a file.
//
//	footers ──► Sizes ──────────────► Costs ──► Choose ──► Plan
//	samples ──► Sample ── Matches ──► Plan.Observe ──▲
//
// The model knows nothing about the state of the machine, so the same inputs
// give the same plan.
package plan

import "math"

// Plan is what to expect of a join, and how to carry it out. Figures that were
// not determined are nil. Its JSON form is documented in docs/plan.md.
type Plan struct {
	Strategy Strategy `json:"strategy"`
	Why      string   `json:"why"` // one sentence

	Log Side `json:"log"`
	IDs Side `json:"ids"`

	Selectivity *Estimate    `json:"selectivity,omitempty"` // share of the log's rows whose key is in an ID
	JoinRows    *Estimate    `json:"join_rows,omitempty"`   // pairs of log row and ID with equal keys
	Sketch      *SketchBound `json:"join_rows_sketch,omitempty"`
	Sampled     Sampled      `json:"sampled"`

	Filter    *Filter   `json:"filter,omitempty"`
	Shuffled  *Shuffled `json:"shuffled,omitempty"`
	Skips     *Skips    `json:"skips,omitempty"`
	BreakEven BreakEven `json:"break_even"`

	Strategies []Cost   `json:"strategies"`
	Advice     []string `json:"advice"`       // when filtering, or this program, gains little
	Seconds    float64  `json:"plan_seconds"` // spent on planning
}

// Side holds the figures of one side.
type Side struct {
	Files    int       `json:"files"`
	Rows     Estimate  `json:"rows"`               // -1: unknown
	Bytes    int64     `json:"bytes"`              // of the answer's columns, decompressed; -1: unknown
	KeyBytes int64     `json:"key_bytes"`          // of the key columns, decompressed; -1: unknown
	Distinct *Estimate `json:"distinct,omitempty"` // distinct keys
}

// Sampled describes the rows that an estimate is based on.
type Sampled struct {
	LogRuns int64 `json:"log_runs"` // runs of rows
	LogRows int64 `json:"log_rows"`
	LogAll  bool  `json:"log_all"` // the sample is the whole log
	IDRuns  int64 `json:"id_runs"` // 0 if all IDs were read
	IDRows  int64 `json:"id_rows"`
	IDsAll  bool  `json:"ids_all"`
}

// Filter is the expected filter of the IDs.
type Filter struct {
	Bytes int64   `json:"bytes"`
	FPR   float64 `json:"fpr"`
	Exact bool    `json:"exact"`
	Best  BestFPR `json:"best"`
}

// Shuffled is the data that a distributed join of the log would shuffle.
type Shuffled struct {
	BytesWithout int64 `json:"bytes_without_filter"`
	Bytes        int64 `json:"bytes_with_filter"`
}

// Skips is what a scan can skip by the log's statistics and page indexes.
type Skips struct {
	Groups        int64 `json:"row_groups"` // examined
	GroupsSkipped int64 `json:"row_groups_skipped"`
	Pages         int64 `json:"pages"` // of the key column, in row groups with a page index
	PagesSkipped  int64 `json:"pages_skipped"`
	Rows          int64 `json:"rows"`
	RowsSkipped   int64 `json:"rows_skipped"`
}

// Options describe the machines that a plan is for, and how closely to look.
type Options struct {
	Network float64 // bytes per second to each worker
	Scan    float64 // bytes per second that a worker joins
	Workers int     // that each get the filter
	Runs    int     // of rows in a sample
	RunRows int     // rows of a run
	IDRows  int64   // up to this number of IDs all are read; more are sampled
}

// Filled returns the options with defaults in place of zeros: 10 Gbit/s,
// 1 GB/s, one worker, 512 runs of 2048 rows, all IDs read.
func (o Options) Filled() Options {
	def := func(v *float64, d float64) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.Network, 1.25e9)
	def(&o.Scan, 1e9)
	o.Workers = max(o.Workers, 1)
	if o.Runs <= 0 {
		o.Runs = 512
	}
	if o.RunRows <= 0 {
		o.RunRows = 2048
	}
	if o.IDRows <= 0 {
		o.IDRows = math.MaxInt64
	}
	return o
}

// Estimate is a figure with bounds. Unless they are equal, they hold with a
// confidence of 99 %.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Times returns the estimate multiplied by f.
func (e Estimate) Times(f float64) Estimate { return Estimate{e.Value * f, e.Low * f, e.High * f} }

// Exactly returns the estimate of a known figure.
func Exactly(v float64) Estimate { return Estimate{v, v, v} }
