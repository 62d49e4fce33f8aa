// Command generate generates ID sets for measurements of builds, and logs to probe
// their filters with.
//
//	generate -set int64|dense|string|text|repeated -rows N -files F [-distinct D] DIRECTORY
//
// The directory gets ids, the files of the set; outside, a log of keys that are not in
// it; and members, a log of some that are. For set repeated it also gets distinct,
// with each key once. Keys are a function of numbers (package keyset), so the files
// are the same on every machine, and only a row group is in memory at a time.
package main

import (
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

// request describes the files to generate.
type request struct {
	set      string
	rows     uint64 // rows in all files of the set
	distinct uint64 // distinct keys of the set
	files    uint64
	outside  uint64 // rows of the log outside
	dir      string
}

func run(args []string) error {
	var r request
	flags := flag.NewFlagSet("generate", flag.ContinueOnError)
	flags.StringVar(&r.set, "set", "", "int64, dense, string, text or repeated")
	flags.Uint64Var(&r.rows, "rows", 0, "rows of the set")
	flags.Uint64Var(&r.distinct, "distinct", 0, "keys of the set repeated")
	flags.Uint64Var(&r.files, "files", 1, "files of the set")
	flags.Uint64Var(&r.outside, "outside", 0, "rows of the log of other keys")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if r.dir = flags.Arg(0); flags.NArg() != 1 || r.files == 0 || r.rows < r.files || r.rows%r.files != 0 {
		return errors.New("want a directory, and rows that the files share alike")
	}
	if r.set != "repeated" {
		r.distinct = r.rows
	} else if r.distinct == 0 || r.distinct > r.rows {
		return errors.New("want -distinct, of no more keys than rows")
	}
	return r.make()
}

// make writes all files, one per processor at a time.
func (r request) make() error {
	write, ok := map[string]func(request, part) error{
		"int64": request.integers, "repeated": request.integers, "dense": request.integers,
		"string": request.strings, "text": request.text,
	}[r.set]
	if !ok {
		return fmt.Errorf("no set %q", r.set)
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, p := range r.parts() {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(r.dir, p.name)), 0o755); err != nil {
			return err
		}
		group.Go(func() error { return write(r, p) })
	}
	return group.Wait()
}

// part is a file with the keys key(from) to key(to-1).
type part struct {
	name       string // without the extension
	from, to   uint64
	key        func(row uint64) uint64
	dictionary bool // the writer tries a dictionary
	log        bool // a log, not a file of the set
	text       bool // a log of strings, for a set in text
}

// parts returns the files. The log members has a twentieth of the members, which
// suffices to detect lost keys, and no more rows than the log outside.
func (r request) parts() (all []part) {
	same := func(row uint64) uint64 { return row }
	row, dictionary := same, false
	if r.set == "repeated" {
		row, dictionary = func(row uint64) uint64 { return keyset.Draw(row, r.distinct) }, true
		all = append(all, part{name: "distinct/ids", to: r.distinct, key: same})
	}
	for i := range r.files {
		each := r.rows / r.files
		all = append(all, part{name: fmt.Sprintf("ids/part-%02d", i), from: i * each, to: (i + 1) * each, key: row, dictionary: dictionary})
	}
	some := min(max(r.distinct/20, 1), max(r.outside, 1))
	every := func(row uint64) uint64 { return row * (r.distinct / some) }
	logs := func(suffix string, text bool) {
		all = append(all,
			part{name: "outside" + suffix, from: r.distinct, to: r.distinct + r.outside, key: same, log: true, text: text},
			part{name: "members" + suffix, to: some, key: every, log: true, text: text})
	}
	logs("", false)
	if r.set == "text" {
		logs("-text", true)
	}
	return all
}

// ids returns the numbering of the set's integers.
func (r request) ids() keyset.IDs {
	if r.set == "dense" {
		return keyset.Dense(4 * r.rows) // one in four is a member
	}
	return keyset.Sparse()
}

// text writes a set as gzipped text with one ID per line, and its logs as Parquet, with
// integers and with strings.
func (r request) text(p part) (err error) {
	switch {
	case p.text:
		return r.decimals(p)
	case p.log:
		return r.integers(p)
	}
	f, err := os.Create(filepath.Join(r.dir, p.name+".txt.gz"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewWriterLevel(f, 6)
	if err != nil {
		return err
	}
	ids, lines := r.ids(), make([]byte, 0, 1<<16)
	for row := p.from; row < p.to; row++ {
		lines = append(strconv.AppendUint(lines, ids.At(p.key(row)), 10), '\n')
		if len(lines) > 1<<15 || row == p.to-1 {
			if _, err := z.Write(lines); err != nil {
				return err
			}
			lines = lines[:0]
		}
	}
	return z.Close()
}
