package lake

import (
	"regexp"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// versionOf finds what follows the place of a table in its name.
var versionOf = regexp.MustCompile(`@(v\d+|\d{4}-\d\d-\d\d[^@/]*|(?:snapshot|branch|tag)=[^@]+)$`)

// forms are those of names, by kind.
var forms = map[string]string{"delta": "delta:DIRECTORY", "iceberg": "iceberg:DIRECTORY", "rest": "rest:URL#NAMESPACE.TABLE", "uc": ""}

// IsName reports whether a name is that of a table.
func IsName(name string) bool {
	kind, _, ok := strings.Cut(name, ":")
	_, is := forms[kind]
	return ok && is
}

// ParseName parses KIND:PLACE, or that with @TIME or another version: @vNUMBER for delta, for the others
// @snapshot=ID, @branch=NAME or @tag=NAME.
func ParseName(name string) (n Name, err error) {
	n.Text = name
	n.Kind, n.Location, _ = strings.Cut(name, ":")
	if at := versionOf.FindStringIndex(n.Location); at != nil {
		which := n.Location[at[0]+1:]
		n.Location = n.Location[:at[0]]
		switch number := which[0] == 'v'; {
		case number && n.Kind == "delta":
			n.Version = which[1:]
		case !number && n.Kind != "delta" && strings.Contains(which, "="):
			n.Version = which
		case number || strings.Contains(which, "="):
			return n, wrong(name, map[bool]string{true: "@vNUMBER", false: "@snapshot=ID, @branch=NAME, @tag=NAME"}[n.Kind == "delta"]+" or a time", "@"+which)
		default:
			if n.Time, err = time.Parse(time.RFC3339Nano, which); err != nil || n.Time.IsZero() {
				return n, wrong(name, "a time with a zone, as 2026-11-29T00:00:00Z", which)
			}
		}
	}
	if n.Kind == "uc" {
		return n, faults.Unsupported(fault.At{File: name}, "names of a catalog").
			WithHint("name the table's directory, as delta:s3://bucket/table; tables whose commits the catalog manages can't be read")
	}
	catalog, table, _ := strings.Cut(n.Location, "#")
	switch {
	case n.Location == "":
		return n, wrong(name, forms[n.Kind], "no directory")
	case n.Kind == "rest" && (!address.IsWeb(catalog) || table == ""):
		return n, wrong(name, forms[n.Kind], "another form")
	}
	return n, nil
}

func wrong(name, want, got string) error {
	return faults.Mismatch(fault.At{File: address.Redact(name)}, "the name of a table", want, got)
}
