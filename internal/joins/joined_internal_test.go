package joins

import (
	"fmt"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Row groups are read in one piece only if they follow each other: the rows of those between
// belong to other keys, or to another worker.
func TestJoinedPieces(t *testing.T) {
	a, b := new(source.File), new(source.File)
	names := map[*source.File]string{a: "a", b: "b"}
	got := ""
	for _, p := range joined([]source.Piece{{File: a, Lo: 0, Hi: 1}, {File: a, Lo: 1, Hi: 2}, {File: a, Lo: 3, Hi: 4}, {File: a, Lo: 4, Hi: 6}, {File: b, Lo: 6, Hi: 7}, {File: a, Lo: 7, Hi: 8}}) {
		got += fmt.Sprintf(" %s %d-%d", names[p.File], p.Lo, p.Hi)
	}
	if want := " a 0-2 a 3-6 b 6-7 a 7-8"; got != want {
		t.Errorf("got%s, want%s", got, want)
	}
}
