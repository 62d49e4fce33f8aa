// Package help prints what the command can do: the help of its verbs, from their flags and
// annotations, and the guides, from the pages of docs. Text is folded to the width of the
// terminal; nothing here reads an input.
package help

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/causes"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
)

// Command returns the command help, which prints the help of another, lists, or a guide.
func Command(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC | CODE | flags | topics]",
		Short: "Print the help of a command, a guide, or what an error means",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			switch {
			case len(args) == 0:
				names = append(known(cmd.Root()), "flags", "topics", guideWord)
			case args[0] == guideWord:
				names = topicNames()
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, _, err := cmd.Root().Find(args)
			switch {
			case slices.Equal(args, []string{"flags"}):
				return s.Page(cmd.Context(), "Flags of all commands:\n"+groups(cmd.Root().PersistentFlags(), s.LineWidth()))
			case slices.Equal(args, []string{"topics"}), slices.Equal(args, []string{guideWord}):
				return s.Page(cmd.Context(), listTopics(s.LineWidth()))
			case len(args) == 1 && causes.IsCode(args[0]):
				return explain(s, args[0])
			case err == nil && of.HasParent() || len(args) == 0:
				of.InitDefaultHelpFlag()
				return of.Help()
			}
			page, err := findTopic(cmd.Root(), args)
			if err != nil {
				return err
			}
			return s.Page(cmd.Context(), Text(page, s.LineWidth()))
		},
	}
}

// explain prints what an error's code means.
func explain(s *session.Session, code string) error {
	c, ok := causes.Find(code)
	if !ok {
		return flags.Usagef("no error has the code %s (there are%s)", code, causes.Near(code))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", c.Code, c.Title)
	for _, p := range c.Parts() {
		fmt.Fprintf(&b, "\n%s\n%s", p[0], words.Fold("  ", "  ", strings.ReplaceAll(p[1], "`", ""), s.LineWidth()))
	}
	_, err := io.WriteString(s.Stdout, b.String())
	return err
}

// Of returns the help of a command in lines of a width. all is with --help-all.
func Of(cmd *cobra.Command, width int, all bool) string {
	var b strings.Builder
	local := cmd.LocalNonPersistentFlags()
	local.SortFlags = false
	guide, common := cmd.Annotations[flags.GuideMark], cmd.Annotations[flags.CommonMark]
	if all && common != "" {
		fmt.Fprintf(&b, "Flags of %s:\n%s", cmd.CommandPath(), groups(local, width))
		return b.String()
	}
	for line := range strings.Lines(cmp.Or(cmd.Long, cmd.Short+".")) {
		b.WriteString(paragraph(strings.TrimSuffix(line, "\n"), width))
	}
	use := flags.UseLine(cmd)
	if !cmd.HasParent() || cmd.HasAvailableSubCommands() && guide == "" {
		use = cmd.CommandPath() + " COMMAND"
	}
	b.WriteString("\nUsage:\n" + words.Fold("  ", "      ", use, width))
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range flags.Ordered(cmd) {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				b.WriteString(words.Fold(fmt.Sprintf("  %-11s ", sub.Name()), strings.Repeat(" ", 14), sub.Short, width))
			}
		}
	}
	if common == "" {
		b.WriteString(groups(local, width))
	} else {
		b.WriteString("\nRequired:\n" + list(chosen(cmd, flags.RequiredMark), width))
		b.WriteString("\nCommon flags:\n" + list(chosen(cmd, flags.CommonMark), width))
	}
	writeMore(&b, cmd)
	return b.String()
}

// writeMore says where more is.
func writeMore(b *strings.Builder, cmd *cobra.Command) {
	guide, name := cmd.Annotations[flags.GuideMark], cmd.Root().Name()
	switch {
	case guide != "":
		b.WriteByte('\n')
		if cmd.Annotations[flags.CommonMark] != "" {
			fmt.Fprintf(b, "All flags: %s --%s\n", cmd.CommandPath(), flags.AllFlag)
		}
		if of, _, err := cmd.Root().Find([]string{guide}); err == nil && of.HasParent() {
			guide = guideWord + " " + guide
		}
		fmt.Fprintf(b, "--memory, --json and others: %s help flags\nGuide: %s help %s\n", name, name, guide)
	case cmd.HasAvailableSubCommands():
		fmt.Fprintf(b, "\n%s COMMAND --help says more about a command.\n", cmd.CommandPath())
		if !cmd.HasParent() {
			fmt.Fprintf(b, "%s help topics lists the guides, which are also at\n%s/docs.\n", name, repository)
		}
	}
}

// paragraph folds text that is not laid out by hand.
func paragraph(line string, width int) string {
	if line == "" || strings.ContainsRune(" \t#", rune(line[0])) {
		return line + "\n"
	}
	return words.Fold("", "", line, width)
}

// chosen returns the flags that an annotation of a command names.
func chosen(cmd *cobra.Command, mark string) (all []*pflag.Flag) {
	for name := range strings.FieldsSeq(cmd.Annotations[mark]) {
		all = append(all, cmd.Flags().Lookup(name))
	}
	return all
}

// groups lists flags under their headings.
func groups(all *pflag.FlagSet, width int) string {
	under := map[string][]*pflag.Flag{}
	all.VisitAll(func(f *pflag.Flag) {
		if h := flags.Heading(f); !f.Hidden && !strings.HasPrefix(f.Name, "help") {
			under[h] = append(under[h], f)
		}
	})
	var b strings.Builder
	for _, h := range flags.Groups {
		if len(under[h]) > 0 {
			fmt.Fprintf(&b, "\n%s:\n%s", h, list(under[h], width))
		}
	}
	return b.String()
}

// maxName is the width of a flag's name and value beside its description; a longer one has
// a line of its own.
const maxName = 28

// list lists flags: name, kind of value, and what it does.
func list(all []*pflag.Flag, width int) string {
	names := make([]string, len(all))
	column := 0
	for i, f := range all {
		value, _ := flags.Value(f)
		names[i] = strings.TrimRight("    --"+f.Name+" "+value, " ")
		if f.Shorthand != "" {
			names[i] = "-" + f.Shorthand + "," + names[i][3:]
		}
		if n := len(names[i]); n <= maxName {
			column = max(column, n)
		}
	}
	if column == 0 {
		column = maxName - 4
	}
	var b strings.Builder
	indent := strings.Repeat(" ", column+4)
	for i, f := range all {
		name := fmt.Sprintf("  %-*s  ", column, names[i])
		if len(name) > len(indent) {
			fmt.Fprintf(&b, "  %s\n", names[i])
			name = indent
		}
		b.WriteString(words.Fold(name, indent, Description(f), width))
	}
	return b.String()
}

// Description returns what a flag does, with its default.
func Description(f *pflag.Flag) string {
	_, what := flags.Value(f)
	if slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
		return what
	}
	return what + " (default " + f.DefValue + ")"
}
