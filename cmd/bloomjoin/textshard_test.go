package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// build --shard says which text files one worker reads as a whole, and only those.
func TestUndividedText(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, content, 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	_, _ = w.Write([]byte("1\n2\n3\n"))
	_ = w.Close()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	zip, one := write("a.txt.gz", gz.Bytes()), write("b.txt.zst", enc.EncodeAll([]byte("4\n5\n"), nil))
	plain := write("c.txt", bytes.Repeat([]byte("6789012\n"), 1<<20))
	for _, c := range []struct {
		ids  []string
		note string
	}{
		{[]string{plain}, ""},
		{[]string{plain, zip}, "one worker reads all of " + zip + " (gzip), which cannot be divided; see bloomjoin help workers"},
		{[]string{one, plain, zip}, "one worker each reads all of 2 files that cannot be divided: " + zip + " (gzip), " + one + " (a single zstd frame); see bloomjoin help workers"},
	} {
		var parts []string
		rows, shares := 0.0, 0
		for i := range 3 {
			parts = append(parts, filepath.Join(dir, fmt.Sprint(len(c.ids), "-", i)))
			got := do(t, append([]string{"build", "--expect", "2000000", "--shard", fmt.Sprint(i, "/3"), "-o", parts[i]}, c.ids...)...)
			if notes := fmt.Sprint(got["notes"]); strings.Contains(notes, "be divided") != (c.note != "") || !strings.Contains(notes, c.note) {
				t.Errorf("%s: notes %s", c.ids, notes)
			}
			n := got["rows"].(float64)
			if rows += n; n > 1<<17 {
				shares++
			}
		}
		if least := float64(1 << 20); rows < least || rows > least+5 || shares != 3 {
			t.Errorf("%s: %v rows in %d large shares", c.ids, rows, shares)
		}
		merged, whole := filepath.Join(dir, "merged"), filepath.Join(dir, "whole")
		do(t, append([]string{"merge", "--force", "-o", merged}, parts...)...)
		got := do(t, append([]string{"build", "--force", "--expect", "2000000", "-o", whole}, c.ids...)...)
		if notes := fmt.Sprint(got["notes"]); strings.Contains(notes, "be divided") {
			t.Errorf("one process: notes %s", notes)
		}
		a, err1 := os.ReadFile(merged)
		b, err2 := os.ReadFile(whole)
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: another filter than that of one process %v %v", c.ids, err1, err2)
		}
	}
}
