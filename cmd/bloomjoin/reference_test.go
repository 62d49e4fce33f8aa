package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/help"
)

// TestReference compares docs/cli.md with the commands, or writes it with -update. What the
// flags do not say is in testdata/cli.txt: sections with the name of a verb follow its flags.
func TestReference(t *testing.T) {
	text, err := os.ReadFile("testdata/cli.txt")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(strings.TrimSpace(string(text)), "\n\n## ")
	notes := map[string]string{} // by verb
	var page, verbs strings.Builder
	eachVerb(t, func(cmd *cobra.Command) { notes[strings.Join(verb(cmd), " ")] = "" })
	fmt.Fprintf(&page, "<!-- Generated: go test ./cmd/bloomjoin -run TestReference -update -->\n%s\n", sections[0])
	for _, s := range sections[1:] {
		title, rest, _ := strings.Cut(s, "\n")
		if _, ok := notes[title]; ok {
			notes[title] = rest + "\n"
		} else {
			fmt.Fprintf(&page, "\n## %s\n", s)
		}
	}
	shared := sharedFlags(t)
	for _, top := range flags.Ordered((&cli{}).root()) {
		for _, cmd := range append([]*cobra.Command{top}, top.Commands()...) {
			if guide := cmd.Annotations[flags.GuideMark]; guide != "" {
				writeReference(&verbs, cmd, guide, shared)
				verbs.WriteString(notes[strings.Join(verb(cmd), " ")])
			}
		}
	}
	page.WriteString(verbs.String() + "\n## Shared flags\n\nSeveral commands have these, with the same meaning.\n\n")
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		page.WriteString(shared[name])
	}
	page.WriteString("\n## Flags of all commands\n\n")
	(&cli{}).root().PersistentFlags().VisitAll(func(f *pflag.Flag) { page.WriteString(flagLine(f)) })
	if n := len(strings.Fields(page.String())); n > 4500 {
		t.Errorf("%d words, want 4,500 at most: nobody reads more", n)
	}
	comparePage(t, "../../docs/cli.md", page.String())
}

// sharedFlags returns the lines of flags that three verbs or more have with the same words.
func sharedFlags(t *testing.T) map[string]string {
	verbs := map[string]int{} // by line
	of := map[string]string{}
	eachVerb(t, func(cmd *cobra.Command) {
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			line := flagLine(f)
			if verbs[line]++; verbs[line] > 2 && line != "" {
				of[f.Name] = line
			}
		})
	})
	return of
}

// writeReference describes a verb.
func writeReference(b *strings.Builder, cmd *cobra.Command, guide string, shared map[string]string) {
	fmt.Fprintf(b, "\n## %s\n\n%s.", strings.Join(verb(cmd), " "), cmd.Short)
	if guide != "cli" {
		fmt.Fprintf(b, " Guide: [%s](%s.md).", guide, guide)
	}
	fmt.Fprintf(b, "\n\n```\n%s\n```\n\n", flags.UseLine(cmd))
	var names []string
	own := cmd.LocalNonPersistentFlags()
	own.SortFlags = false
	own.VisitAll(func(f *pflag.Flag) {
		switch line := flagLine(f); {
		case line == "":
		case shared[f.Name] == line:
			names = append(names, "`--"+f.Name+"`")
		default:
			b.WriteString(line)
		}
	})
	if len(names) > 0 {
		fmt.Fprintf(b, "- [Shared](#shared-flags): %s\n", strings.Join(names, ", "))
	}
}

// flagLine returns the line of a flag, "" for help and hidden ones.
func flagLine(f *pflag.Flag) string {
	if f.Hidden || strings.HasPrefix(f.Name, "help") {
		return ""
	}
	value, _ := flags.Value(f)
	name := strings.TrimSpace("--" + f.Name + " " + value)
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	return fmt.Sprintf("- `%s` %s\n", name, help.Description(f))
}
