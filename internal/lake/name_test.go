package lake_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/lake"
)

func TestParseName(t *testing.T) {
	const wanted = "the name of a table: want "
	for name, want := range map[string]string{
		"delta:t":                                 "delta t",
		"delta:s3://b/t@v12":                      "delta s3://b/t 12",
		"delta:t@v":                               "delta t@v",
		"delta:t@v1/x":                            "delta t@v1/x",
		"delta:a@v1@v2":                           "delta a@v1 2",
		"delta:t@2026-11-29T00:00:00Z":            "delta t  2026-11-29T00:00:00Z",
		"iceberg:t@2026-11-29T00:00:00.5+01:00":   "iceberg t  2026-11-28T23:00:00.5Z",
		"iceberg:t@2026-11-29/metadata":           "iceberg t@2026-11-29/metadata",
		"iceberg:v1.metadata.json@snapshot=7":     "iceberg v1.metadata.json snapshot=7",
		"iceberg:t@branch=a/b=c d":                "iceberg t branch=a/b=c d",
		"iceberg:t@tag=x":                         "iceberg t tag=x",
		"iceberg:t@tag=":                          "iceberg t@tag=",
		"iceberg:user@host":                       "iceberg user@host",
		"iceberg:/a#b":                            "iceberg /a#b",
		"rest:https://u@h/api#db.events@branch=b": "rest https://u@h/api#db.events branch=b",
		"rest:http://h:81/api/?warehouse=w#a.b.c": "rest http://h:81/api/?warehouse=w#a.b.c",
		"delta:":                                   wanted + "delta:DIRECTORY, got no directory",
		"iceberg:@2026-11-29T00:00:00Z":            wanted + "iceberg:DIRECTORY, got no directory",
		"rest:":                                    wanted + "rest:URL#NAMESPACE.TABLE, got no directory",
		"rest:https://h/api":                       wanted + "rest:URL#NAMESPACE.TABLE, got another form",
		"rest:https://h/api#":                      wanted + "rest:URL#NAMESPACE.TABLE, got another form",
		"rest:s3://h/api#a.b":                      wanted + "rest:URL#NAMESPACE.TABLE, got another form",
		"rest:#a.b":                                wanted + "rest:URL#NAMESPACE.TABLE, got another form",
		"delta:t@snapshot=7":                       wanted + "@vNUMBER or a time, got @snapshot=7",
		"iceberg:t@v12":                            wanted + "@snapshot=ID, @branch=NAME, @tag=NAME or a time, got @v12",
		"rest:https://h#a.b@v12":                   wanted + "@snapshot=ID, @branch=NAME, @tag=NAME or a time, got @v12",
		"iceberg:t@2026-11-29":                     wanted + "a time with a zone, as 2026-11-29T00:00:00Z, got 2026-11-29",
		"iceberg:t@2026-11-29T00:00:00":            wanted + "a time with a zone, as 2026-11-29T00:00:00Z, got 2026-11-29T00:00:00",
		"delta:t@0001-01-01T00:00:00Z":             wanted + "a time with a zone",
		"rest:https://u:secret@h/api?token=secret": wanted + "rest:URL#NAMESPACE.TABLE, got another form",
		"uc:a.b.c":                                 "names of a catalog (name the table's directory, as delta:s3://bucket/table",
	} {
		n, err := lake.ParseName(name)
		got := strings.TrimRight(fmt.Sprint(n.Kind, " ", n.Location, " ", n.Version), " ")
		if !n.Time.IsZero() {
			got += "  " + n.Time.UTC().Format("2006-01-02T15:04:05.999Z")
		}
		if err != nil {
			got = err.Error()
		}
		if bad := strings.Contains(want, "want") || strings.HasPrefix(want, "names"); bad != (err != nil) || !bad && got != want || !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if err != nil && !errors.Is(err, fault.ErrMismatch) && !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
		if n.Text != name {
			t.Errorf("%s: the text is %s", name, n.Text)
		}
	}
}

func TestIsName(t *testing.T) {
	for name, want := range map[string]bool{
		"delta:": true, "iceberg:x": true, "rest:https://h": true, "uc:a": true, "delta": false, "Delta:x": false, "s3://b/delta:x": false, "C:x": false, "": false, "file:delta:x": false,
	} {
		if got := lake.IsName(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Files of positions are compared by what they are, lists of one file also by how many rows they have.
func TestSame(t *testing.T) {
	p := lake.DeleteFile{Place: "p", Size: 1, Rows: 2}
	all := []*lake.Deleted{
		nil, {Place: "v", Offset: 4, Size: 5, Count: 6}, {Place: "v", Offset: 4, Size: 5, Count: 7}, {Inline: []byte("v")}, {Of: "a", In: []lake.DeleteFile{p}},
		{Of: "b", In: []lake.DeleteFile{p}}, {Of: "a", In: []lake.DeleteFile{p, p}}, {Of: "a", In: []lake.DeleteFile{{Place: "p", Size: 1, Rows: 3}}},
	}
	for i, d := range all {
		for j, o := range all {
			if got := d.Same(o); got != (i == j) {
				t.Errorf("%+v and %+v: %t", d, o, got)
			}
		}
	}
	d, o := *all[4], *all[4]
	if d.Count = 9; !o.Same(&d) || !d.Same(&o) {
		t.Error("files of positions do not say how many rows of a file are deleted")
	}
}
