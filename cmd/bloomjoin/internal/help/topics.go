package help

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/docs"
)

// guideWord comes before a topic that has the name of a command: help guide join.
const guideWord = "guide"

// sentence matches the first sentence of a text, or its part before a colon.
var sentence = regexp.MustCompile(`^.*?([.?:]( |$)|$)`)

// topicNames returns the names of the guides: those of the pages, without .md.
func topicNames() (names []string) {
	pages, _ := fs.Glob(docs.Pages, "*.md") // embedded files are there
	for _, page := range pages {
		names = append(names, strings.TrimSuffix(page, ".md"))
	}
	return names
}

// topicPage returns the Markdown of a guide.
func topicPage(name string) string {
	page, _ := docs.Pages.ReadFile(name + ".md")
	return string(page)
}

// known returns the names of the guides and commands.
func known(root *cobra.Command) []string {
	names := topicNames()
	for _, sub := range flags.Ordered(root) {
		names = append(names, sub.Name())
	}
	return names
}

// findTopic returns the Markdown of the guide that the arguments of help name.
func findTopic(root *cobra.Command, args []string) (page string, err error) {
	name := args[0]
	if name == guideWord && len(args) > 1 {
		name = args[1]
	}
	if page = topicPage(name); page != "" {
		return page, nil
	}
	if near := words.Meant(name, known(root)); near != "" {
		return "", flags.Usagef("unknown command or topic %s (did you mean %s?)", name, near)
	}
	return "", flags.Usagef("unknown command or topic %s (bloomjoin help lists the commands, bloomjoin help topics the guides)", name)
}

// listTopics lists the guides with their titles and as much of the first sentences as fits
// a line.
func listTopics(width int) string {
	var b strings.Builder
	b.WriteString(words.Fold("", "", "bloomjoin help TOPIC prints a guide, and bloomjoin help guide TOPIC one that has the name of a command.", width) + "\n")
	names := topicNames()
	column := 0
	for _, name := range names {
		column = max(column, len(name))
	}
	for _, name := range names {
		text := summary(topicPage(name))
		if room := width - column - 4; utf8.RuneCountInString(text) > room {
			text, _, _ = strings.Cut(words.Fold("", "", text, room-2), "\n")
			text += " …"
		}
		fmt.Fprintf(&b, "  %-*s  %s\n", column, name, text)
	}
	return b.String()
}

// summary returns the title of a page, and the first sentence if the page starts with a
// paragraph.
func summary(page string) string {
	title, rest, _ := strings.Cut(strings.TrimSpace(comments.ReplaceAllString(page, "")), "\n")
	title = inline(strings.TrimLeft(title, "# "))
	first, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	if first == "" || strings.Contains("|#-<!", first[:1]) || strings.HasPrefix(first, "```") {
		return title
	}
	return strings.TrimRight(title, "?") + ": " + strings.TrimRight(sentence.FindString(inline(first)), ": ")
}
