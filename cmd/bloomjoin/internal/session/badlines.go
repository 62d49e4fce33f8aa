package session

import (
	"fmt"
	"strings"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// BadLines reports the lines of text IDs that --skip-bad left out, for --json.
type BadLines struct {
	Lines int64     `json:"bad_lines"`
	In    []badFile `json:"bad_lines_in"`
}

// badFile reports the bad lines of one file. Lines has the first 20 line numbers.
type badFile struct {
	File  string `json:"file"`
	Count int64  `json:"bad_lines"`
	Lines []int  `json:"lines"`
}

// BadLinesOf returns the lines that the files left out; nil unless skip is set.
func BadLinesOf(files []*source.File, skip bool) *BadLines {
	if !skip {
		return nil
	}
	b := &BadLines{In: []badFile{}}
	for _, f := range files {
		if n, first, _ := f.BadLines(); n > 0 {
			b.Lines += n
			b.In = append(b.In, badFile{publish.EscapeName(f.Name()), n, first})
		}
	}
	return b
}

// SayBad warns about lines that were left out.
func (c *Session) SayBad(b *BadLines) {
	if b == nil {
		return
	}
	for _, f := range b.In {
		numbers := strings.Trim(fmt.Sprint(f.Lines), "[]")
		numbers = strings.ReplaceAll(numbers, " ", ", ")
		if f.Count > int64(len(f.Lines)) {
			numbers += ", …"
		}
		lines := "lines"
		if f.Count == 1 {
			lines = "line"
		}
		c.Warn("%s: %s bad %s left out (%s %s)", f.File, words.Count(f.Count), lines, lines, numbers)
	}
}
