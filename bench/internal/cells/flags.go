package cells

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// Main runs a command until it ends or is interrupted. The process exits with 1 if it
// fails.
func Main(name string, command func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

// Quickest is the divisor of sizes with -quick.
const Quickest = 1000

// Flags has the values of the flags of a command.
type Flags struct {
	Command   string   // its name, below the module's directory
	Names     []string // of cells, see [Choose]
	List      bool
	Generate  bool
	Update    bool
	Quick     bool
	Smaller   uint64 // divisor of sizes; 0 is 1
	Rounds    int    // 0: the default of the cell
	Data, Out string // directories, see [Flags.Prepare]
	Ours      string // bloomjoin's binary
}

// Parse parses arguments. more, if not nil, defines flags that only this command has.
func (f *Flags) Parse(args []string, more func(*flag.FlagSet)) error {
	set := flag.NewFlagSet(f.Command, flag.ContinueOnError)
	set.Func("cell", "cell to measure; may be repeated, or all (default: all but big ones)", func(s string) error {
		f.Names = append(f.Names, strings.Split(s, ",")...)
		return nil
	})
	set.BoolVar(&f.List, "list", false, "name the cells, and do nothing")
	set.BoolVar(&f.Generate, "generate", false, "make the data of the cells, and do nothing else")
	set.BoolVar(&f.Update, "update", false, "write what was measured into the document as well")
	set.BoolVar(&f.Quick, "quick", false, "all cells, a thousandth of the size, few rounds: to see that everything runs, not for figures")
	set.Uint64Var(&f.Smaller, "smaller", 1, "divide sizes by this: to see that answers are right, not for figures")
	set.IntVar(&f.Rounds, "rounds", 0, "rounds (default: as the cell says)")
	set.IntVar(&f.Rounds, "n", 0, "short for -rounds")
	set.StringVar(&f.Data, "data", "", "directory for data and programs, kept from run to run (default: bloomjoin-bench in the user's cache directory)")
	set.StringVar(&f.Out, "out", "", "directory for outputs and temporary files, which are removed (default: that of -data)")
	set.StringVar(&f.Ours, "bloomjoin", "", "our binary (default: built from this checkout)")
	if more != nil {
		more(set)
	}
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 || f.Rounds < 0 || f.Smaller < 1 || f.Smaller > Quickest {
		return fmt.Errorf("want flags alone, and sizes divided by 1 to %d; got %q", Quickest, args)
	}
	if f.Quick {
		f.Smaller = Quickest
	}
	if f.Update && f.Smaller > 1 {
		return errors.New("-update needs figures of the full size: leave out -quick and -smaller")
	}
	return nil
}

// Prepare creates the directory for data and builds bloomjoin and other programs, unless
// the flags name them.
func (f *Flags) Prepare(ctx context.Context, programs ...race.Program) (err error) {
	if f.Data, err = race.Store(f.Data); err != nil {
		return err
	}
	if f.Out == "" {
		f.Out = f.Data
	}
	for _, p := range append(programs, race.Program{Path: &f.Ours, Module: "..", Package: "./cmd/bloomjoin"}) {
		if *p.Path != "" {
			continue
		}
		if *p.Path, err = race.Build(ctx, f.Data, p.Module, p.Package); err != nil {
			return err
		}
	}
	return nil
}

// Scaled returns a size reduced by -quick or -smaller.
func (f *Flags) Scaled(n uint64) uint64 { return n / max(f.Smaller, 1) }

// RoundsOf returns the number of rounds: that of the flag, or one of the cell's.
func (f *Flags) RoundsOf(usual, quick int) int {
	switch {
	case f.Rounds > 0:
		return f.Rounds
	case f.Quick:
		return quick
	}
	return usual
}

// commandFor returns the command that repeats the measurement of a cell.
func (f *Flags) commandFor(c Cell) string {
	text := "go run ./" + f.Command + " -data DIR -cell " + c.Name
	if f.Rounds > 0 {
		text += fmt.Sprintf(" -rounds %d", f.Rounds)
	}
	return text
}
