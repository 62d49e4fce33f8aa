package flags

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/causes"
)

// Headings of the flag groups in --help, in this order.
const (
	GroupInput   = "Input"
	GroupKeys    = "Keys"
	GroupFilter  = "Filter"
	GroupJoin    = "Join"
	GroupPlan    = "Plan"
	GroupOutput  = "Output"
	GroupChecks  = "Checks"
	GroupStorage = "Storage"
	GroupMemory  = "Memory and threads"
	GroupReports = "Reports"
	GroupOthers  = "Help"
)

// Groups are the headings in the order of --help.
var Groups = []string{
	GroupInput, GroupKeys, GroupFilter, GroupJoin, GroupPlan, GroupOutput, GroupChecks, GroupStorage, GroupMemory, GroupReports, GroupOthers,
}

// groupMark is the flag annotation that holds the heading of its group.
const groupMark = "group"

// Group adds the flags that add defines to f, under a heading.
func Group(f *pflag.FlagSet, heading string, add func(f *pflag.FlagSet)) {
	group := pflag.NewFlagSet(heading, pflag.ContinueOnError)
	group.SortFlags = false
	add(group)
	f.SortFlags = false
	group.VisitAll(func(flag *pflag.Flag) {
		flag.Annotations = map[string][]string{groupMark: {heading}}
		f.AddFlag(flag)
	})
}

// Heading returns the heading of a flag's group.
func Heading(f *pflag.Flag) string {
	if h := f.Annotations[groupMark]; len(h) > 0 {
		return h[0]
	}
	return GroupOthers
}

// DocsMark is the command annotation that names its page of documentation.
const DocsMark = "docs"

// Docs returns the annotation for a page in docs/.
func Docs(page string) map[string]string { return map[string]string{DocsMark: "docs/" + page} }

// HelpCommand returns the command that prints the help of another.
func HelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | flags | CODE]",
		Short: "Print the help of a command, the common flags, or an error's code",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if len(args) == 0 {
				for _, sub := range Ordered(cmd.Root()) {
					names = append(names, sub.Name())
				}
			}
			return append(names, "flags"), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Equal(args, []string{"flags"}) {
				return printCommon(cmd)
			}
			if len(args) == 1 && causes.IsCode(args[0]) {
				return printCause(cmd, args[0])
			}
			of, rest, err := cmd.Root().Find(args)
			if err == nil && !of.HasParent() {
				err = CheckCommand(of, rest)
			}
			if err != nil {
				return err
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// PrintUsage prints a command's syntax, its most common invocations, its verbs, and
// its flags in groups.
func PrintUsage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if !cmd.HasParent() || cmd.HasAvailableSubCommands() && cmd.Annotations[DocsMark] == "" {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
	} else {
		fmt.Fprintf(&b, "  %s\n", useLine(cmd))
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range Ordered(cmd) {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(&b, "  %-11s %s\n", sub.Name(), sub.Short)
			}
		}
	}
	local := cmd.LocalNonPersistentFlags()
	local.SortFlags = false
	if help := local.Lookup("help"); help != nil {
		help.Hidden = true
	}
	writeGroups(&b, local)
	switch page := cmd.Annotations[DocsMark]; {
	case page != "":
		fmt.Fprintf(&b, "\n--memory, --threads, --json, --quiet and others: %s help flags\nMore: %s\n", cmd.Root().Name(), page)
	case cmd.HasAvailableSubCommands():
		fmt.Fprintf(&b, "\n%s COMMAND --help says more about a command.\n", cmd.CommandPath())
		if !cmd.HasParent() {
			b.WriteString("The pages of docs/ are at https://github.com/bloomjoin/bloomjoin.\n")
		}
	}
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}

// printCommon prints the flags of all commands.
func printCommon(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Flags of all commands:\n")
	writeGroups(&b, cmd.Root().PersistentFlags())
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}

// printCause explains the cause of errors that a code stands for.
func printCause(cmd *cobra.Command, code string) error {
	text, ok := causes.Text(code)
	if !ok {
		return Usagef("no error has the code %s (there are%s)", code, causes.Near(code))
	}
	_, err := io.WriteString(cmd.OutOrStdout(), text)
	return err
}

// writeGroups lists flags under their headings.
func writeGroups(b *strings.Builder, all *pflag.FlagSet) {
	groups := map[string]*pflag.FlagSet{}
	all.VisitAll(func(f *pflag.Flag) {
		h := Heading(f)
		if groups[h] == nil {
			groups[h] = pflag.NewFlagSet(h, pflag.ContinueOnError)
			groups[h].SortFlags = false
		}
		groups[h].AddFlag(f)
	})
	for _, h := range Groups {
		if g := groups[h]; g != nil && g.HasAvailableFlags() {
			fmt.Fprintf(b, "\n%s:\n", h)
			writeFlags(b, g)
		}
	}
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
		value, what := Value(f)
		if value != "" {
			name += " " + value
		}
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "0s" && f.DefValue != "false" && f.DefValue != "[]" {
			what += " (default " + f.DefValue + ")"
		}
		lines, width = append(lines, [2]string{name, what}), max(width, len(name))
	})
	for _, l := range lines {
		fmt.Fprintf(w, "  %-*s  %s\n", width, l[0], l[1])
	}
}

// Value splits the usage of a flag into the kind of its value, which is in
// backquotes at the start, and what the flag does.
func Value(f *pflag.Flag) (value, what string) {
	if rest, ok := strings.CutPrefix(f.Usage, "`"); ok {
		value, what, _ = strings.Cut(rest, "` ")
		return value, what
	}
	return "", f.Usage
}

// Ordered returns the commands in the order in which a user needs them.
func Ordered(root *cobra.Command) []*cobra.Command {
	order := []string{
		"join", "plan", "build", "merge", "scan", "probe", "inspect", "inputs", "commit",
		"size", "update", "find", "dedup", "sketch", "version", "completion", "help",
	}
	list := slices.Clone(root.Commands())
	slices.SortStableFunc(list, func(a, b *cobra.Command) int {
		return slices.Index(order, a.Name()) - slices.Index(order, b.Name())
	})
	return list
}
