// Package nearest finds the name that was probably meant by one that does not
// exist, for hints in errors.
package nearest

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Index returns the index of the first of the names that differ least from got,
// at most in so many letters, whose case does not matter; -1 if there is none.
func Index(got string, names []string, most int) int {
	best, least := -1, most+1
	for i, name := range names {
		if d := levenshtein.ComputeDistance(strings.ToLower(got), strings.ToLower(name)); d < least {
			best, least = i, d
		}
	}
	return best
}

// Most is in how many letters a mistyped word may differ from the one that was
// meant: a third of them, and one.
func Most(got string) int { return 1 + len(got)/3 }

// shown is how many names a hint lists.
const shown = 20

// Hint lists the names that exist, after the one at index meant, if it is not -1.
func Hint(names []string, meant int) string {
	var hint string
	if meant >= 0 {
		hint = "did you mean " + names[meant] + "? "
	}
	if len(names) == 1 {
		return hint + fmt.Sprintf("there is only %q", names[0])
	}
	listed := strings.Join(names[:min(len(names), shown)], ", ")
	if len(names) > shown {
		listed += ", …"
	}
	return hint + "there are " + listed
}
