package report

import "testing"

func TestReplace(t *testing.T) {
	doc := "before\n<!-- table: a -->\nold\n<!-- end -->\nbetween\n<!-- table: b -->\n<!-- end -->\nafter\n"
	got, err := Replace([]byte(doc), "a", "new\n")
	want := "before\n<!-- table: a -->\n\nnew\n\n<!-- end -->\nbetween\n<!-- table: b -->\n<!-- end -->\nafter\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	again, err := Replace(got, "a", "new\n")
	if err != nil || string(again) != want {
		t.Errorf("again: got %q, %v, want %q", again, err, want)
	}
	for _, bad := range []string{"", "<!-- table: a -->\n", "<!-- table: a -->\n<!-- table: b -->\n<!-- end -->\n"} {
		if got, err := Replace([]byte(bad), "a", "new"); err == nil {
			t.Errorf("%q: got %q, want an error", bad, got)
		}
	}
}

func TestMarkdown(t *testing.T) {
	table := Table{Head: []string{"a", "b"}}
	table.Row("1", "2")
	table.Note("so %d", 3)
	if got, want := table.Markdown(), "| a | b |\n| --- | ---: |\n| 1 | 2 |\n\nso 3\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
