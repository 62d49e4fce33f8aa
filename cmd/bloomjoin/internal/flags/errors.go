package flags

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/cause"
)

// CheckCommand returns an error if args start with an unknown command. The error
// suggests the nearest command.
func CheckCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	hint := "there are " + strings.Join(names, ", ")
	if near := words.Meant(args[0], names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return cause.Mark(cause.UnknownName, Usagef("unknown command %s (%s)", args[0], hint))
}

// SomeArguments returns the argument check of a command that needs at least one
// argument. what names the arguments in the error.
func SomeArguments(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return Required("no %s given (usage: %s)", what, UseLine(cmd))
	}
}

// NoArguments checks the arguments of a command that takes none.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Usagef("%s takes no arguments, got %s", cmd.CommandPath(), args[0])
}

// Error returns the error for wrong flag syntax. If the command is mistyped,
// that is reported instead, since the flags belong to the command that was meant.
func Error(cmd *cobra.Command, err error) error {
	if !cmd.HasParent() {
		if err := CheckCommand(cmd, cmd.Flags().Args()); err != nil {
			return err
		}
	}
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		return cause.Mark(cause.UnknownName, unknownFlag(cmd, unknown))
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		want := map[string]string{
			"int": "a whole number", "int64": "a whole number", "uint64": "a whole number of 0 or more", "count": "a number of things, as 5000000 or 1e9",
			"float64": "a number, as 0.01", "duration": "a duration, as 90s, 24h or 7d", "bool": "true or false",
		}[f.Value.Type()]
		if want == "" || errors.Is(err, errTwice) {
			return Usagef("--%s %s: %w", f.Name, invalid.GetValue(), errors.Unwrap(invalid))
		}
		return Usagef("--%s %s: want %s", f.Name, invalid.GetValue(), want)
	case errors.As(err, &missing):
		f := missing.GetFlag()
		value, _ := Value(f)
		return Required("--%s needs a value: --%s %s", f.Name, f.Name, value)
	}
	return Usagef("%w (%s)", err, listsFlags(cmd))
}

// unknownFlag returns the error for a flag that the command does not have. It
// suggests the nearest flag of the command, or names the commands that have it.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	name := unknown.GetSpecifiedName()
	lists := listsFlags(cmd)
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		if len(short) > 1 {
			lists = "only -h, -o and -v are single letters; others need two dashes, as --help"
		}
		return Usagef("unknown flag -%s (%s)", name, lists)
	}
	// The key columns are --key of one input and --on of two. Other tools have other words.
	if other := map[string]string{"key": "on", "on": "key", "how": "type", "left-on": "on", "select": "columns", "out": "output", "sep": "delimiter", "limit": "head"}[name]; other != "" && cmd.Flags().Lookup(other) != nil {
		return Usagef("unknown flag --%s (did you mean --%s?)", name, other)
	}
	if owners := commandsWith(cmd.Root(), name); len(owners) > 0 {
		return Usagef("unknown flag --%s (it belongs to %s; %s)", name, strings.Join(owners, ", "), lists)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			names = append(names, f.Name)
		}
	})
	if near := words.Meant(name, names); near != "" {
		return Usagef("unknown flag --%s (did you mean --%s?)", name, near)
	}
	return Usagef("unknown flag --%s (%s)", name, lists)
}

// listsFlags says what lists all flags of a command.
func listsFlags(cmd *cobra.Command) string {
	name := "help"
	if cmd.Annotations[CommonMark] != "" {
		name = AllFlag
	}
	return cmd.CommandPath() + " --" + name + " lists the flags"
}

// commandsWith returns the names of the commands that have a flag.
func commandsWith(root *cobra.Command, flag string) (names []string) {
	for _, sub := range Ordered(root) {
		if sub.Flags().Lookup(flag) != nil {
			names = append(names, "bloomjoin "+sub.Name())
		}
	}
	return names
}

// Owner returns a lookup for flags that an error of cmd names but cmd lacks: it returns a command
// that has the flag, preferably bloomjoin build. It returns "" for flags of cmd, and for --force,
// which errors of a commit name for the workers' runs.
func Owner(cmd *cobra.Command) func(flag string) string {
	return func(flag string) string {
		owners := commandsWith(cmd.Root(), flag)
		if cmd.Flag(flag) != nil || flag == "force" || len(owners) == 0 {
			return ""
		}
		if build := "bloomjoin build"; slices.Contains(owners, build) {
			return build
		}
		return owners[0]
	}
}

// RightForm returns the command line with its first argument moved to the missing
// flag. Flags come first, then the other arguments.
func RightForm(cmd *cobra.Command, flag string, args []string, rest string) string {
	words := []string{cmd.CommandPath(), "--" + flag, quoteWord(args[0])}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch v := f.Value.(type) {
		case pflag.SliceValue:
			for _, s := range v.GetSlice() {
				words = append(words, "--"+f.Name, quoteWord(s))
			}
		default:
			words = append(words, "--"+f.Name)
			if f.Shorthand != "" {
				words[len(words)-1] = "-" + f.Shorthand
			}
			if f.Value.Type() != "bool" {
				words = append(words, quoteWord(f.Value.String()))
			}
		}
	})
	if f := cmd.Flags().Lookup("on"); f != nil && !f.Changed {
		words = append(words, "--on", "LOGCOL=IDCOL")
	}
	if f := cmd.Flags().Lookup("output"); f != nil && !f.Changed && !cmd.Flags().Changed("count") {
		words = append(words, "-o", "OUT")
	}
	if len(args) == 1 {
		return strings.Join(append(words, rest), " ")
	}
	for _, a := range args[1:] {
		words = append(words, quoteWord(a))
	}
	return strings.Join(words, " ")
}

// quoteWord quotes a word for a shell if necessary.
func quoteWord(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n*?[]\\'\"$`&;()<>|!#~{}") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
