package lake

import (
	"regexp"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// versionOf finds what follows the place of a table in its name.
var versionOf = regexp.MustCompile(`@(v\d+|\d{4}-\d\d-\d\d[^@/]*)$`)

// IsName reports whether a name is that of a table.
func IsName(name string) bool {
	return strings.HasPrefix(name, "delta:") || strings.HasPrefix(name, "uc:")
}

// ParseName parses KIND:PLACE, KIND:PLACE@vVERSION or KIND:PLACE@TIME.
func ParseName(name string) (n Name, err error) {
	n.Text = name
	n.Kind, n.Location, _ = strings.Cut(name, ":")
	if at := versionOf.FindStringIndex(n.Location); at != nil {
		which := n.Location[at[0]+1:]
		n.Location = n.Location[:at[0]]
		if which[0] == 'v' {
			n.Version = which[1:]
		} else if n.Time, err = time.Parse(time.RFC3339Nano, which); err != nil || n.Time.IsZero() {
			return n, wrong(name, "a time with a zone, as 2026-11-29T00:00:00Z", which)
		}
	}
	if n.Kind == "uc" {
		return n, faults.Unsupported(fault.At{File: name}, "names of a catalog").
			WithHint("name the table's directory, as delta:s3://bucket/table; tables whose commits the catalog manages can't be read")
	}
	if n.Location == "" {
		return n, wrong(name, n.Kind+":DIRECTORY", "no directory")
	}
	return n, nil
}

func wrong(name, want, got string) error {
	return faults.Mismatch(fault.At{File: name}, "the name of a table", want, got)
}
