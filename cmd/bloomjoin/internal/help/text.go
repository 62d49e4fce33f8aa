package help

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
)

// repository is where the pages and all other files are.
const repository = "https://github.com/bloomjoin/bloomjoin/blob/main"

var (
	comments = regexp.MustCompile(`(?s)<!--.*?-->\n?`)
	links    = regexp.MustCompile(`\[([^\]]+)\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`^(#+) +(.*)`)
	item     = regexp.MustCompile(`^( *)([-*]|[0-9]+\.) +(.*)`)
	rule     = regexp.MustCompile(`^\|[-:| ]+\|$`)
)

// Text returns a page of Markdown as plain text in lines of a width: titles are underlined,
// links say which guide or address they lead to, tables and lists are laid out, and code
// stays as it is. It knows what the guides use of Markdown.
func Text(markdown string, width int) string {
	var b strings.Builder
	var first, indent, text string // of the paragraph or list item that is read
	flush := func() {
		if text != "" {
			b.WriteString(words.Fold(first, indent, inline(text), width))
		}
		first, indent, text = "", "", ""
	}
	lines := strings.Split(strings.TrimSpace(comments.ReplaceAllString(markdown, "")), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			flush()
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
				b.WriteString(strings.TrimRight("    "+lines[i], " ") + "\n")
			}
			continue
		}
		if title := heading.FindStringSubmatch(line); title != nil {
			flush()
			b.WriteString(underlined(inline(title[2]), len(title[1])))
			continue
		}
		if part := item.FindStringSubmatch(line); part != nil {
			flush()
			first = part[1] + part[2] + " "
			indent, text = strings.Repeat(" ", len(first)), part[3]
			continue
		}
		if strings.HasPrefix(line, "|") {
			flush()
			end := i
			for end < len(lines) && strings.HasPrefix(lines[end], "|") {
				end++
			}
			b.WriteString(table(lines[i:end], width))
			i = end - 1
			continue
		}
		if line == "" || text == "" && strings.HasPrefix(line, "    ") { // code without a fence
			flush()
			b.WriteString(line + "\n")
			continue
		}
		text = strings.TrimSpace(text + " " + strings.TrimSpace(line))
	}
	flush()
	return b.String()
}

// underlined returns a title of a level.
func underlined(title string, level int) string {
	if level > 2 {
		return title + "\n"
	}
	return title + "\n" + strings.Repeat([]string{"=", "-"}[level-1], utf8.RuneCountInString(title)) + "\n"
}

// inline returns the text of a line: links as text, and nothing bold. Code keeps its quotes.
func inline(s string) string {
	s = links.ReplaceAllStringFunc(s, func(link string) string {
		part := links.FindStringSubmatch(link)
		return part[1] + leadsTo(part[1], part[2])
	})
	parts := strings.Split(s, "`")
	for i := 0; i < len(parts); i += 2 { // outside of code
		parts[i] = strings.ReplaceAll(parts[i], "**", "")
	}
	return strings.Join(parts, "`")
}

// leadsTo returns what a link's text does not say of its address.
func leadsTo(text, address string) string {
	page, _, _ := strings.Cut(address, "#")
	switch name, isPage := strings.CutSuffix(page, ".md"); {
	case page == "" || page == text: // on the same page, or the address itself
		return ""
	case strings.Contains(page, "://"):
		return " (" + address + ")"
	case !isPage || strings.Contains(page, "/"):
		return " (" + repository + "/" + strings.TrimPrefix(page, "../") + ")"
	default:
		return " (guide " + name + ")"
	}
}

// table lays out rows of cells in columns, whose cells have several lines where the width
// does not suffice. The first row is the head.
func table(lines []string, width int) string {
	var rows [][]string
	var widths, least []int // of the columns: as they are, and at least
	for _, line := range lines {
		if rule.MatchString(line) {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(strings.ReplaceAll(line, `\|`, "\x00")), "|"), "|")
		for i, cell := range cells {
			cells[i] = inline(strings.ReplaceAll(strings.TrimSpace(cell), "\x00", "|"))
			if i == len(widths) {
				widths, least = append(widths, 0), append(least, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cells[i]))
			for word := range strings.FieldsSeq(cells[i]) {
				least[i] = max(least[i], min(utf8.RuneCountInString(word), width/2)) // an address sticks out
			}
		}
		rows = append(rows, cells)
	}
	for excess := sum(widths) + 2*(len(widths)-1) - width; excess > 0; excess-- {
		widest := -1
		for i := range widths {
			if widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break // words are wider than the terminal
		}
		widths[widest]--
	}
	var b strings.Builder
	for i, cells := range rows {
		b.WriteString(tableRow(cells, widths))
		if i == 0 {
			var under []string
			for _, n := range widths {
				under = append(under, strings.Repeat("-", n))
			}
			b.WriteString(strings.Join(under, "  ") + "\n")
		}
	}
	return b.String()
}

// tableRow lays out a row of a table.
func tableRow(cells []string, widths []int) string {
	folded := make([][]string, len(cells))
	high := 0
	for i, cell := range cells {
		folded[i] = strings.Split(strings.TrimSuffix(words.Fold("", "", cell, widths[i]), "\n"), "\n")
		high = max(high, len(folded[i]))
	}
	var b strings.Builder
	for at := range high {
		var line strings.Builder
		for i, lines := range folded {
			part := ""
			if at < len(lines) {
				part = lines[at]
			}
			line.WriteString(part + strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(part))) + "  ")
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

func sum(all []int) (n int) {
	for _, v := range all {
		n += v
	}
	return n
}
