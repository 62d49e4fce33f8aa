package flags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Inputs are the flags that select the files of directories, and the
// directory that outputs mirror.
type Inputs struct {
	include, exclude []string
	base             string
	FilesFrom        string
	AllowEmpty       bool
	uncommitted      bool
	hive, hiveTypes  string
}

// Add adds the flags of all verbs that read files.
func (o *Inputs) Add(f *pflag.FlagSet) {
	f.StringArrayVar(&o.include, "include", nil, "`GLOB` read only matching files, as '*.parquet'; repeatable")
	f.StringArrayVar(&o.exclude, "exclude", nil, "`GLOB` skip matching files; repeatable")
	f.BoolVar(&o.uncommitted, "uncommitted", false, "read unfinished outputs")
	AddRaw(f)
	f.StringVar(&o.hive, "hive-partitioning", "auto", "`MODE` name=value directories are columns: auto, off")
	f.StringVar(&o.hiveTypes, "hive-types", "", "`NAME:TYPE,...` their types, as dt:date")
}

// AddRaw adds the flag of verbs that read files, which the session looks up.
func AddRaw(f *pflag.FlagSet) { f.Bool(RawFiles, false, "read tables as files") }

const RawFiles = "raw-files"

// AddFrom adds the flag that takes the place of arguments.
func (o *Inputs) AddFrom(f *pflag.FlagSet) {
	f.StringVar(&o.FilesFrom, "files-from", "", filesFromHelp)
}

// AddLog adds the flags of verbs that accept an empty log.
func (o *Inputs) AddLog(f *pflag.FlagSet) {
	f.BoolVar(&o.AllowEmpty, "allow-empty", false, "accept a directory without data")
}

// AddOutput adds the flags of verbs that write an output for each input.
func (o *Inputs) AddOutput(f *pflag.FlagSet) {
	f.StringVar(&o.base, "base", "", "`DIR` directory of inputs that OUT/ mirrors")
}

// Fill checks the flags and copies them to the options.
func (o *Inputs) Fill(open *source.Opening) error {
	for i, p := range slices.Concat(o.include, o.exclude) {
		if _, err := glob.ParseRule(p); err != nil {
			name := "include"
			if i >= len(o.include) {
				name = "exclude"
			}
			return Usagef("--%s %q: %w (want a pattern, as '*.parquet' or 'dt=2024-*/*')", name, p, err)
		}
	}
	open.Include, open.Exclude, open.AllowEmpty, open.Base = o.include, o.exclude, o.AllowEmpty, o.base
	return o.FillHive(open)
}

// FillHive checks the flags about name=value directories and copies them to the
// options.
func (o *Inputs) FillHive(open *source.Opening) error {
	open.Uncommitted = o.uncommitted
	if err := OneOf("hive-partitioning", o.hive, string(dataset.HiveAuto), string(dataset.HiveOff)); err != nil {
		return err
	}
	if _, err := hive.ParseTypes(o.hiveTypes); err != nil {
		return Usagef("--hive-types: %v", err)
	}
	open.Hive, open.HiveTypes = dataset.HiveMode(o.hive), o.hiveTypes
	return nil
}

// CheckHive returns an error if a type is given for a name that no directory of the
// inputs has.
func (o *Inputs) CheckHive(files ...*source.File) error {
	var names []string
	for _, f := range files {
		for _, p := range f.Partitions() {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	return o.CheckTypes(names, len(files))
}

// CheckTypes is CheckHive for the names of the directories of a number of files.
func (o *Inputs) CheckTypes(names []string, files int) error {
	types, _ := hive.ParseTypes(o.hiveTypes) // checked before
	for _, t := range types {
		switch {
		case slices.Contains(names, t.Name) || files == 0:
		case len(names) == 0:
			return fmt.Errorf("--hive-types %s: no input is in a directory named name=value", t.Name)
		default:
			return fmt.Errorf("--hive-types %s: no such name among the directories of the inputs, only %s", t.Name, strings.Join(names, ", "))
		}
	}
	return nil
}

const filesFromHelp = "`FILE` input names, a list of inputs, or -"

// Arguments checks that inputs are named by arguments or by --files-from.
func (o *Inputs) Arguments(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case o.FilesFrom == "":
			return SomeArguments(what)(cmd, args)
		case len(args) > 0:
			return Usagef("--files-from %s: it takes the place of the arguments (remove %s)", o.FilesFrom, args[0])
		}
		return nil
	}
}
