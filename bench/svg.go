package main

import (
	"fmt"
	"html"
	"strings"
)

// bar is a contender in the image.
type bar struct {
	name string
	ours bool
	wall float64 // seconds
	peak int64   // bytes
}

// chief is a cell in the image.
type chief struct {
	title string
	bars  []bar
}

// chiefs returns the measured cells that the image shows. Floors are left out, and of ours
// all but the first.
func chiefs(tables []*Table, all map[string]Measurement) (cells []chief) {
	for _, t := range tables {
		for _, c := range t.Cells {
			if !c.Chief {
				continue
			}
			for _, m := range all[t.Name].Cells {
				if m.Name != c.Name {
					continue
				}
				one := chief{title: t.Title + ": " + c.Name}
				for i, r := range m.Results {
					if len(r.Runs) > 0 && r.Kind != Floor && (r.Kind != Ours || i == 0) {
						name, _, _ := strings.Cut(strings.NewReplacer("*", "", "`", "").Replace(r.Name), ",") // there is little room
						one.bars = append(one.bars, bar{name, r.Kind == Ours, r.Wall().Median(), r.Peak()})
					}
				}
				cells = append(cells, one)
			}
		}
	}
	return cells
}

// Sizes in the image.
const (
	width      = 860
	nameWidth  = 170
	panelWidth = 250 // of bars; figures stand after them
	timeX      = nameWidth
	peakX      = timeX + panelWidth + 90
	barHeight  = 12
	barStep    = 16
	titleStep  = 24
)

// The image has a background of its own, so that it is readable on light and dark pages.
const style = `text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}
.title{font-weight:600}.quiet{fill:#59636e}.ours{fill:#0969da}.peer{fill:#afb8c1}.page{fill:#fff;stroke:#d1d9e0}`

// Chart draws a bar of time and one of memory for each contender of each cell.
func Chart(cells []chief) string {
	var b strings.Builder
	y := 28
	text := func(x, y int, class, s string) {
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, class, html.EscapeString(s))
	}
	text(timeX, y, "title", "wall time, s")
	text(peakX, y, "title", "peak memory, MiB")
	for _, c := range cells {
		y += titleStep
		text(8, y, "title", c.title)
		var wall, peak float64
		for _, one := range c.bars {
			wall, peak = max(wall, one.wall), max(peak, float64(one.peak))
		}
		for _, one := range c.bars {
			y += barStep
			class := "peer"
			if one.ours {
				class = "ours"
			}
			text(8, y, "", one.name)
			draw := func(x int, part float64, label string) {
				length := max(1, int(part*panelWidth+0.5))
				fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"2\" class=\"%s\"/>\n", x, y-barHeight+2, length, barHeight, class)
				text(x+length+6, y, "", label)
			}
			draw(timeX, one.wall/wall, number(one.wall))
			draw(peakX, float64(one.peak)/peak, mib(one.peak))
		}
		y += 6
	}
	y += titleStep
	text(8, y, "quiet", "Less is better. Medians of time, maxima of memory; each group of bars has a scale of its own. RESULTS.md has all figures.")
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"Wall time and peak memory of bloomjoin and other tools\">\n<style>%s</style>\n<rect x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"6\" class=\"page\"/>\n%s</svg>\n",
		width, y+14, width, y+14, style, width-1, y+13, b.String())
}
