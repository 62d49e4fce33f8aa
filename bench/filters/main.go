// Command filters measures the filter engine: its speed compared with other filters,
// its false-positive rate compared with theory, its size compared with the
// information-theoretic limit, and its files.
//
//	cd bench && go run ./filters                      everything, to standard output
//	cd bench && go run ./filters -table add,probe     some tables
//	cd bench && go run ./filters -update              into ../docs/filters.md
//	cd bench && go run ./filters -quick               small, in a minute or two: does it run?
//
// It needs Linux, whose /proc reports memory usage.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

// config has the values of the flags.
type config struct {
	quick   bool
	maxKeys uint64
}

// keys returns the sizes that the flags allow.
func (c config) keys(sizes ...uint64) []uint64 {
	return slices.DeleteFunc(sizes, func(n uint64) bool { return n > c.maxKeys })
}

// pick returns small under -quick, else full.
func pick[T any](c config, full, small T) T {
	if c.quick {
		return small
	}
	return full
}

// topic is a measurement that results in one or more tables.
type topic struct {
	tables []string
	run    func(config) ([]table, error)
}

// topics returns all topics, in the order of the document.
func topics() []topic {
	return []topic{
		{[]string{"add", "probe", "work", "targets"}, speedTables},
		{[]string{"cores"}, coresTable},
		{[]string{"fpr"}, fprTable},
		{[]string{"formula"}, formulaTable},
		{[]string{"size"}, sizeTable},
		{[]string{"large"}, largeTable},
		{[]string{"exact"}, exactTable},
		{[]string{"codec"}, codecTable},
		{[]string{"merge"}, mergeTable},
	}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "filters:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == childFlag {
		return serve(args[1])
	}
	if len(args) == 2 && args[0] == childSmallPagesFlag {
		return withoutHugePages(childFlag, args[1])
	}
	var cfg config
	flags := flag.NewFlagSet("filters", flag.ContinueOnError)
	names := flags.String("table", "", "tables to make, separated by commas (default: all of "+strings.Join(tableNames(), ",")+")")
	update := flags.Bool("update", false, "write the tables into "+document+" instead of printing them")
	flags.BoolVar(&cfg.quick, "quick", false, "fewer rounds and smaller sets: to see that everything runs, not for figures")
	flags.Uint64Var(&cfg.maxKeys, "max-keys", 0, "leave out sets of more keys than that (default 1e9, 1e6 with -quick)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	options := ""
	if cfg.quick {
		options += " -quick"
	}
	if cfg.maxKeys > 0 {
		options += fmt.Sprintf(" -max-keys %d", cfg.maxKeys)
	} else {
		cfg.maxKeys = pick(cfg, uint64(1e9), 1e6)
	}
	wanted, err := wantedTables(*names)
	if err != nil {
		return err
	}
	return makeTables(cfg, wanted, options, *update)
}

func tableNames() []string {
	var names []string
	for _, t := range topics() {
		names = append(names, t.tables...)
	}
	return names
}

// wantedTables parses the -table flag. An empty flag means all tables.
func wantedTables(list string) ([]string, error) {
	all := tableNames()
	if list == "" {
		return all, nil
	}
	wanted := strings.Split(list, ",")
	for _, name := range wanted {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("no table %q; there are %s", name, strings.Join(all, ", "))
		}
	}
	return wanted, nil
}

// makeTables runs the topics of the wanted tables, and prints or inserts each table
// when it is complete.
func makeTables(cfg config, wanted []string, options string, update bool) error {
	on, err := report.Machine()
	if err != nil {
		return err
	}
	for _, t := range topics() {
		if !slices.ContainsFunc(t.tables, func(name string) bool { return slices.Contains(wanted, name) }) {
			continue
		}
		tables, err := t.run(cfg)
		if err != nil {
			return fmt.Errorf("%s: %w", strings.Join(t.tables, ", "), err)
		}
		for _, tab := range tables {
			if !slices.Contains(wanted, tab.name) {
				continue
			}
			text := tab.markdown("go run ./filters -table "+strings.Join(t.tables, ",")+options, on)
			if update {
				err = report.Update(document, tab.name, text)
			} else {
				_, err = fmt.Fprintf(os.Stdout, "## %s\n\n%s\n", tab.name, text)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
