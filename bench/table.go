package main

import "time"

// Table is a question, and the cells that answer it.
type Table struct {
	Name, Title string
	Text        string // what is asked, and what a reader must know of the figures
	Rounds      int    // of each cell; 0: defaultRounds
	Large       bool   // measured with -large only
	Cells       []Cell
	// Grid, in place of cells, returns rows that are computed or measured in another way.
	Grid func(*Harness) (Grid, error)
}

// defaultRounds is the usual number of rounds of a cell.
const defaultRounds = 3

// Cell is a job and the contenders that do it. The first one is ours; the others are compared with it.
type Cell struct {
	Name       string
	Job        Job
	Contenders []Contender
	Chief      bool // shown in the image
	Alike      bool // answers are compared with each other, not with DuckDB's
}

// Verbs of jobs. They decide how an answer is verified.
const (
	verbJoin   = "join"   // rows in Parquet: compared with DuckDB's
	verbBuild  = "build"  // a filter: it holds its members, and its false positives are as predicted
	verbInputs = "inputs" // a list of files: only the exit status
)

// Job is what all contenders of a cell do. Equal jobs have equal answers. It is also the argument of peers.py.
type Job struct {
	Verb    string   `json:"verb"`
	Log     Data     `json:"-"`
	IDs     Data     `json:"-"`
	Type    string   `json:"type"`    // of a join, as --type
	Payload []string `json:"payload"` // columns of the IDs in the answer
	Columns []string `json:"columns"` // columns of the log in the answer; none: all
	Where   string   `json:"where"`   // condition on the log, in SQL
	Polars  string   `json:"polars"`  // the same, for Polars
	Union   bool     `json:"union"`   // the files of the log differ in their columns
	KeyType string   `json:"keytype"` // type of IDs in text
	Threads int      `json:"threads"` // 0: the usual number
	Network *Network `json:"-"`       // the log is in an object store
	// Steps are run before, untimed. They may change the log, which is a copy, and begin the output.
	Steps []Change `json:"-"`
}

// Change is something that happens before a run.
type Change func(*Harness, *Attempt) error

// Network is the way to an object store.
type Network struct {
	Name  string
	Delay time.Duration // to the first byte of an answer
	Rate  int64         // bytes a second of a connection; 0: no limit
}

// Contender is a way to do a job.
type Contender struct {
	Name    string
	Kind    Kind
	Tool    string // the Python package or Go module whose version is stated; "": none
	Threads int    // factor of the job's threads; 0: 1
	Command func(*Harness, Attempt) Command
}

// Kind says whose contender it is.
type Kind string

// Kinds of contenders.
const (
	Ours  Kind = "ours"
	Peer  Kind = "peer"
	Floor Kind = "floor" // work that every contender has to do; without an answer
)

// Attempt is a run of a contender: its job, and where the files are.
type Attempt struct {
	Job
	LogPath  string `json:"log"`
	IDsPath  string `json:"ids"`
	Out      string `json:"out"`
	Scratch  string `json:"scratch"` // a directory for what is spilled
	Key      string `json:"key"`
	Codec    string `json:"codec"`
	Endpoint string `json:"endpoint"` // of the object store; "": local files
}

// Run is what a process took.
type Run struct {
	Wall     float64 `json:"wall"`               // seconds from before the start until after the exit
	CPU      float64 `json:"cpu"`                // seconds of user and system time, with children that were waited for
	Peak     int64   `json:"peak"`               // bytes: the largest resident set of the process or one of its children
	Output   int64   `json:"output,omitempty"`   // bytes of the answer
	Received int64   `json:"received,omitempty"` // bytes from the object store
	Requests int     `json:"requests,omitempty"`
}

// Result is what a contender did in a cell, a run for each round.
type Result struct {
	Name  string            `json:"name"`
	Kind  Kind              `json:"kind"`
	Runs  []Run             `json:"runs"`
	Facts map[string]string `json:"facts,omitempty"` // what it reports of itself, by column
}

// Grid is a table whose figures are not those of races.
type Grid struct {
	Head []string   `json:"head"`
	Rows [][]string `json:"rows"`
	Note string     `json:"note,omitempty"`
}

// Row adds a row.
func (g *Grid) Row(cells ...string) { g.Rows = append(g.Rows, cells) }
