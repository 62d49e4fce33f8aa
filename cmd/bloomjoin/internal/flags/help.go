package flags

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// Group puts the flags that were added to f since the last call under a heading.
func Group(f *pflag.FlagSet, heading string) {
	f.SortFlags = false
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{groupMark: {heading}}
		}
	})
}

// Heading returns the heading of a flag's group.
func Heading(f *pflag.Flag) string {
	if h := f.Annotations[groupMark]; len(h) > 0 {
		return h[0]
	}
	return GroupOthers
}

// Annotations of commands: the guide, and the flags that --help lists, in this order.
const (
	GuideMark    = "guide"
	RequiredMark = "required"
	CommonMark   = "common"
)

// Help returns the annotations of a command: its guide, a page of docs, and the names of
// the flags that --help lists, which should fill no more than a screen. The first of two
// lists has those that are always given. Without lists --help lists all flags, as
// --help-all does for every command.
func Help(guide string, flags ...string) map[string]string {
	marks := map[string]string{GuideMark: guide}
	for i, names := range flags {
		marks[[]string{RequiredMark, CommonMark}[i]] = names
	}
	return marks
}

// AllFlag is the name of the flag that prints all flags.
const AllFlag = "help-all"

// AddHelpAll adds --help-all to a command.
func AddHelpAll(cmd *cobra.Command) {
	cmd.Flags().VarPF(helpAll{cmd}, AllFlag, "", "print all flags").NoOptDefVal = "true"
}

// helpAll is the value of --help-all. It sets --help, which cobra handles before it checks
// arguments.
type helpAll struct{ cmd *cobra.Command }

// String implements pflag.Value.
func (h helpAll) String() string { return "false" }

// Set implements pflag.Value.
func (h helpAll) Set(s string) error { return h.cmd.Flags().Set("help", s) }

// Type implements pflag.Value.
func (h helpAll) Type() string { return "bool" }

// UseLine returns the syntax of a command.
func UseLine(cmd *cobra.Command) string {
	if cmd.HasParent() {
		return cmd.Parent().CommandPath() + " " + cmd.Use
	}
	return cmd.Use
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
