package pagecopy

import (
	"fmt"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/show"
)

// How pages of a file reach the output.
const (
	wholeChunks = "pages are copied, and whole chunks where no row is dropped or repeated"
	pagesOnly   = "pages are copied, but no whole chunk: " // followed by why
)

// maxNamed is the maximum number of columns that a reason names.
const maxNamed = 8

// HowPages says, by the footer, which of the piece's chunks may be copied as they are
// stored, and why others may not.
func (p *Source) HowPages() string {
	var groups []int // that may become row groups of the output
	rows := int64(0)
	for g := p.Piece.Lo; g < p.Piece.Hi; g++ {
		rows += p.Piece.File.GroupRows(g)
		if p.ownGroup(g) {
			groups = append(groups, g)
		}
	}
	switch {
	case rows == 0:
		return "pages are copied"
	case len(groups) == 0 && p.Own:
		return pagesOnly + "row groups below " + show.Size(minOwn) + " are merged"
	case len(groups) == 0:
		return pagesOnly + "row groups below " + show.Size(minCopied) + " are merged in an output of several files"
	}
	whole, byWhy := false, map[string][]string{}
	var whys []string // in the order of the columns
	for i, l := range p.Leaves {
		if l < 0 {
			continue // not of the file
		}
		if p.file().Constant(l) {
			continue
		}
		why := p.whyInPages(groups, i)
		if why == "" {
			whole = true
			continue
		}
		if byWhy[why] == nil {
			whys = append(whys, why)
		}
		byWhy[why] = append(byWhy[why], p.file().Leaves[l].Dotted)
	}
	if !whole && len(whys) == 1 {
		return pagesOnly + whys[0]
	}
	for i, why := range whys {
		whys[i] = someOf(byWhy[why]) + ": " + why
	}
	switch {
	case !whole:
		return pagesOnly + strings.Join(whys, "; ")
	case len(whys) > 0:
		return wholeChunks + "; no whole chunk of " + strings.Join(whys, ", nor of ")
	}
	return wholeChunks
}

// whyInPages says why chunks of leaf i of the row groups are not copied as they are
// stored. It returns "" if all may be.
func (p *Source) whyInPages(groups []int, i int) string {
	switch {
	case !p.unchanged(i) && p.Pairs != nil && p.Pairs.log == p.Piece.File.Schema(): // not that of a union
		return "the output's column is optional"
	case !p.unchanged(i):
		return "the output's column has another type"
	}
	n, first := 0, ""
	for _, g := range groups {
		why := p.Layout.MayCopy(p.file(), g, p.Leaves[i], i)
		if why == "" {
			continue
		}
		if n++; n == 1 {
			first = why
		}
	}
	if n == 0 || n == len(groups) {
		return first
	}
	return fmt.Sprintf("%s (%d of %d row groups)", first, n, len(groups))
}

// someOf lists names, the first ones if there are many.
func someOf(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
