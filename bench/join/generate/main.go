// Command generate generates logs and ID sets for measurements of joins.
//
//	generate -make users -rows N -users U -members M DIRECTORY   ids: N keys, M of them of the U users of a log of bench/scan
//	generate -make dense -rows N DIRECTORY                       log and ids of N rows each, whose keys lie close together
//	generate -make skew  -rows N DIRECTORY                       ids, and the logs uniform, heavy and zipf of N rows each
//	generate -make pair  -rows N DIRECTORY                       log and ids of N rows each, two integers a row
//
// Rows are a function of their numbers (package keyset), so the files are the same on
// every machine, and only a row group is in memory at a time.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sync/errgroup"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

// request describes the files to generate.
type request struct {
	set                  string
	rows, users, members uint64
	group                uint64 // rows per row group
	dir                  string
}

func run(args []string) error {
	var r request
	flags := flag.NewFlagSet("generate", flag.ContinueOnError)
	flags.StringVar(&r.set, "make", "", "users, dense, skew or pair")
	flags.Uint64Var(&r.rows, "rows", 0, "rows of each file")
	flags.Uint64Var(&r.users, "users", 0, "users of the log, of set users")
	flags.Uint64Var(&r.members, "members", 0, "how many of these users are in the set")
	flags.Uint64Var(&r.group, "group", 1_000_000, "rows of a row group")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if r.dir = flags.Arg(0); flags.NArg() != 1 || r.rows < 10 || r.group == 0 {
		return errors.New("want a directory, and ten rows or more")
	}
	if r.set == "users" && (r.members == 0 || r.members > min(r.users, r.rows)) {
		return fmt.Errorf("%d members of %d users in a set of %d", r.members, r.users, r.rows)
	}
	files, ok := map[string]func(request) []table{
		"users": request.usersFiles, "dense": request.denseFiles, "skew": request.skewFiles, "pair": request.pairFiles,
	}[r.set]
	if !ok {
		return fmt.Errorf("no set %q", r.set)
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, t := range files(r) {
		group.Go(func() error { return t.write(r.dir, r.group) })
	}
	return group.Wait()
}
