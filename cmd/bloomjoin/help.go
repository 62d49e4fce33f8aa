package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Headings of the flag groups in --help, in this order.
const (
	groupInput   = "Input"
	groupKeys    = "Keys"
	groupFilter  = "Filter"
	groupJoin    = "Join"
	groupPlan    = "Plan"
	groupOutput  = "Output"
	groupChecks  = "Checks"
	groupStorage = "Storage"
	groupMemory  = "Memory and threads"
	groupReports = "Reports"
	groupOthers  = "Help"
)

var groupOrder = []string{
	groupInput, groupKeys, groupFilter, groupJoin, groupPlan, groupOutput, groupChecks, groupStorage, groupMemory, groupReports, groupOthers,
}

// groupMark is the flag annotation that holds the heading of its group.
const groupMark = "group"

// flagGroup adds the flags that add defines to f, under a heading.
func flagGroup(f *pflag.FlagSet, heading string, add func(f *pflag.FlagSet)) {
	group := pflag.NewFlagSet(heading, pflag.ContinueOnError)
	group.SortFlags = false
	add(group)
	f.SortFlags = false
	group.VisitAll(func(flag *pflag.Flag) {
		flag.Annotations = map[string][]string{groupMark: {heading}}
		f.AddFlag(flag)
	})
}

// headingOf returns the heading of a flag's group.
func headingOf(f *pflag.Flag) string {
	if h := f.Annotations[groupMark]; len(h) > 0 {
		return h[0]
	}
	return groupOthers
}

// docsMark is the command annotation that names its page of documentation.
const docsMark = "docs"

// docs returns the annotation for a page in docs/.
func docs(page string) map[string]string { return map[string]string{docsMark: "docs/" + page} }

// help prints what a command does and its usage. Cobra calls it before it checks
// arguments, so help detects mistyped commands itself.
func (c *cli) help(cmd *cobra.Command, _ []string) {
	if !cmd.HasParent() {
		if c.mistyped = commands(cmd, cmd.Flags().Args()); c.mistyped != nil {
			return
		}
	}
	what := cmd.Long
	if what == "" {
		what = cmd.Short + "."
	}
	fmt.Fprintln(cmd.OutOrStdout(), what)
	fmt.Fprintln(cmd.OutOrStdout())
	_ = writeUsage(cmd.OutOrStdout(), cmd) // the writer remembers a failure, see interruptibleWriter
}

// helpCmd returns the command that prints the help of another.
func helpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if len(args) == 0 {
				for _, sub := range orderedVerbs(cmd.Root()) {
					names = append(names, sub.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if err == nil && !of.HasParent() {
				err = commands(of, rest)
			}
			if err != nil {
				return err
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// usage prints a command's syntax, its most common invocations, its verbs, and
// its flags in groups.
func usage(cmd *cobra.Command) error { return writeUsage(cmd.OutOrStdout(), cmd) }

func writeUsage(w io.Writer, cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() && !cmd.HasParent() || cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
	} else {
		fmt.Fprintf(&b, "  %s\n", useLine(cmd))
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range orderedVerbs(cmd) {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(&b, "  %-11s %s\n", sub.Name(), sub.Short)
			}
		}
	}
	groups := map[string]*pflag.FlagSet{}
	add := func(f *pflag.Flag) {
		h := headingOf(f)
		if groups[h] == nil {
			groups[h] = pflag.NewFlagSet(h, pflag.ContinueOnError)
			groups[h].SortFlags = false
		}
		groups[h].AddFlag(f)
	}
	cmd.LocalFlags().VisitAll(add)
	if cmd.Annotations[docsMark] != "" { // others, such as version, do not use them
		cmd.InheritedFlags().VisitAll(add)
	}
	for _, h := range groupOrder {
		if g := groups[h]; g != nil && g.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s:\n", h)
			writeFlags(&b, g)
		}
	}
	switch page := cmd.Annotations[docsMark]; {
	case page != "":
		fmt.Fprintf(&b, "\nMore: %s\n", page)
	case cmd.HasAvailableSubCommands():
		fmt.Fprintf(&b, "\n%s COMMAND --help says more about a command.\n", cmd.CommandPath())
		if !cmd.HasParent() {
			b.WriteString("The pages of docs/ are at https://github.com/bloomjoin/bloomjoin.\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// useLine returns the syntax of a command.
func useLine(cmd *cobra.Command) string {
	if cmd.HasParent() {
		return cmd.Parent().CommandPath() + " " + cmd.Use
	}
	return cmd.Use
}

// writeFlags lists the flags of a group: name, kind of value, and what it does.
func writeFlags(w io.Writer, g *pflag.FlagSet) {
	var lines [][2]string
	width := 0
	g.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "    --" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", --" + f.Name
		}
		value, what := valueOf(f)
		if value != "" {
			name += " " + value
		}
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" && f.DefValue != "[]" {
			what += " (default " + f.DefValue + ")"
		}
		lines, width = append(lines, [2]string{name, what}), max(width, len(name))
	})
	for _, l := range lines {
		fmt.Fprintf(w, "  %-*s  %s\n", width, l[0], l[1])
	}
}

// valueOf splits the usage of a flag into the kind of its value, which is in
// backquotes at the start, and what the flag does.
func valueOf(f *pflag.Flag) (value, what string) {
	if rest, ok := strings.CutPrefix(f.Usage, "`"); ok {
		value, what, _ = strings.Cut(rest, "` ")
		return value, what
	}
	return "", f.Usage
}

// commands returns an error if args start with an unknown command. The error
// suggests the nearest command.
func commands(cmd *cobra.Command, args []string) error {
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
	if near := meant(args[0], names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return usagef("unknown command %s (%s)", args[0], hint)
}

// anyInputs returns the argument check of a command that needs at least one
// argument. what names the arguments in the error.
func anyInputs(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return usagef("no %s given (usage: %s)", what, useLine(cmd))
	}
}

// noArgs checks the arguments of a command that takes none.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("%s takes no arguments, got %s", cmd.CommandPath(), args[0])
}

// flagError returns the error for wrong flag syntax. If the command is mistyped,
// that is reported instead, since the flags belong to the command that was meant.
func flagError(cmd *cobra.Command, err error) error {
	if !cmd.HasParent() {
		if err := commands(cmd, cmd.Flags().Args()); err != nil {
			return err
		}
	}
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		want := map[string]string{
			"int": "a whole number", "int64": "a whole number", "uint64": "a whole number of 0 or more",
			"float64": "a number, as 0.01", "bool": "true or false",
		}[f.Value.Type()]
		if want == "" || errors.Is(err, errTwice) {
			return usagef("--%s %s: %w", f.Name, invalid.GetValue(), errors.Unwrap(invalid))
		}
		return usagef("--%s %s: want %s", f.Name, invalid.GetValue(), want)
	case errors.As(err, &missing):
		f := missing.GetFlag()
		value, _ := valueOf(f)
		return usagef("--%s needs a value: --%s %s", f.Name, f.Name, value)
	}
	return usagef("%w (%s --help lists the flags)", err, cmd.CommandPath())
}

// unknownFlag returns the error for a flag that the command does not have. It
// suggests the nearest flag of the command, or names the commands that have it.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	name := unknown.GetSpecifiedName()
	lists := cmd.CommandPath() + " --help lists the flags"
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		if len(short) > 1 {
			lists = "only -h, -o and -v are single letters; others need two dashes, as --help"
		}
		return usagef("unknown flag -%s (%s)", name, lists)
	}
	// The key columns are --key of one input and --on of two.
	if other := map[string]string{"key": "on", "on": "key"}[name]; other != "" && cmd.Flags().Lookup(other) != nil {
		return usagef("unknown flag --%s (did you mean --%s?)", name, other)
	}
	if owners := commandsWith(cmd.Root(), name); len(owners) > 0 {
		return usagef("unknown flag --%s (it belongs to %s; %s)", name, strings.Join(owners, ", "), lists)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := meant(name, names); near != "" {
		return usagef("unknown flag --%s (did you mean --%s?)", name, near)
	}
	return usagef("unknown flag --%s (%s)", name, lists)
}

// commandsWith returns the names of the commands that have a flag.
func commandsWith(root *cobra.Command, flag string) (names []string) {
	for _, sub := range orderedVerbs(root) {
		if sub.Flags().Lookup(flag) != nil {
			names = append(names, "bloomjoin "+sub.Name())
		}
	}
	return names
}

// exclusiveMark is the command annotation that lists mutually exclusive flags:
// groups separated by semicolons, names by spaces.
const exclusiveMark = "exclusive"

// exclusive declares flags of which at most one may be given.
func exclusive(cmd *cobra.Command, names ...string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[exclusiveMark] += strings.Join(names, " ") + ";"
}

// checkExclusive returns an error if mutually exclusive flags are given.
func checkExclusive(cmd *cobra.Command) error {
	for group := range strings.SplitSeq(cmd.Annotations[exclusiveMark], ";") {
		var given []string
		for name := range strings.FieldsSeq(group) {
			if cmd.Flags().Changed(name) {
				given = append(given, "--"+name)
			}
		}
		if len(given) > 1 {
			return usagef("%s exclude each other: give one of them", strings.Join(given, " and "))
		}
	}
	return nil
}

// errTwice is the error of a flag that is given again with another value.
var errTwice = errors.New("the flag is given once")

// once is the value of a flag that may be given once. The same value again changes
// nothing.
type once struct {
	pflag.Value
	first *string // as it was given; nil: not yet
}

func (o *once) Set(s string) error {
	if o.first != nil && *o.first != s {
		return fmt.Errorf("%w, and before it was %q (leave one of them out)", errTwice, *o.first)
	}
	err := o.Value.Set(s)
	if err == nil {
		o.first = &s
	}
	return err
}

// repeatable is how the help of a flag says that it may be given several times.
const repeatable = "; may be repeated"

// atMostOnce wraps the values of the flags that may not be repeated.
func atMostOnce(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !strings.HasSuffix(f.Usage, repeatable) {
			f.Value = &once{Value: f.Value}
		}
	})
}

// joined is the value of a flag that is a list in one text, whose parts may be given one
// by one.
type joined struct{ list *string }

func (j joined) String() string { return *j.list }

func (j joined) Set(s string) error {
	if *j.list != "" {
		s = *j.list + "," + s
	}
	*j.list = s
	return nil
}

func (j joined) Type() string { return "string" }

// rightForm returns the command line with its first argument moved to the missing
// flag. Flags come first, then the other arguments.
func rightForm(cmd *cobra.Command, flag string, args []string, rest string) string {
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

// oneOf returns a usage error if the value of a flag is not one of words.
func oneOf(flag, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	if near := meant(value, words); near != "" {
		return usagef("--%s %s: want %s (did you mean %s?)", flag, value, orList(words), near)
	}
	return usagef("--%s %s: want %s", flag, value, orList(words))
}

// orList joins words as in "a, b or c".
func orList(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}
