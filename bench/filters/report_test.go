package main

import (
	"os"
	"testing"

	"github.com/bloomjoin/bloomjoin/bench/internal/report"
)

func TestReplaceTable(t *testing.T) {
	doc := "before\n<!-- table: a -->\nold\n<!-- end -->\nbetween\n<!-- table: b -->\n<!-- end -->\nafter\n"
	got, err := report.Replace([]byte(doc), "a", "new\n")
	want := "before\n<!-- table: a -->\n\nnew\n\n<!-- end -->\nbetween\n<!-- table: b -->\n<!-- end -->\nafter\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	again, err := report.Replace(got, "a", "new\n")
	if err != nil || string(again) != want {
		t.Errorf("again: got %q, %v, want %q", again, err, want)
	}
	for _, bad := range []string{"", "<!-- table: a -->\n", "<!-- table: a -->\n<!-- table: b -->\n<!-- end -->\n"} {
		if got, err := report.Replace([]byte(bad), "a", "new"); err == nil {
			t.Errorf("%q: got %q, want an error", bad, got)
		}
	}
}

// The document has markers for every table.
func TestDocumentHasMarkers(t *testing.T) {
	doc, err := os.ReadFile("../" + document)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tableNames() {
		if _, err := report.Replace(doc, name, ""); err != nil {
			t.Error(err)
		}
	}
}
