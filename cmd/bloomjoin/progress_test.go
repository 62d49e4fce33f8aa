package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/partition"
)

// Without a terminal, progress is reported in lines: with the share, the rate and
// the time left if the number of rows is known.
func TestProgressLines(t *testing.T) {
	dir := t.TempDir()
	n := int64(-1)
	log := putInts(t, filepath.Join(dir, "log.parquet"), func() (int64, bool) {
		n++
		return n, n < 1000
	})
	files, err := partition.Open(t.Context(), []string{log}, partition.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer partition.Close(files)
	for _, c := range []struct {
		mode  string
		quiet bool
		shown bool
	}{{"auto", false, true}, {"lines", false, true}, {"none", false, false}, {"auto", true, false}, {"lines", true, false}} {
		r, w := io.Pipe()
		out := &cli{stderr: w, terminal: w, progressMode: c.mode, quiet: c.quiet, progressEvery: time.Millisecond}
		add, end := out.progress("joining", partition.Split(files, partition.Shard{}))
		if (add != nil) != c.shown {
			t.Fatalf("%+v: shown: %v", c, add != nil)
		}
		if !c.shown {
			end()
			continue
		}
		add(250)
		lines := bufio.NewReader(r)
		line, err := lines.ReadString('\n')                                           // blocks until there is one
		for err == nil && strings.HasPrefix(line, "joining: 0 % (0 of 1,000 rows)") { // printed before add
			line, err = lines.ReadString('\n')
		}
		if err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, lines)
		end()
		end() // may be called again
		w.Close()
		if !regexp.MustCompile(`^joining: 25 % \(250 of 1,000 rows\), [0-9,]+ rows/s, [0-9]+s left\n$`).MatchString(line) {
			t.Errorf("%+v: %q", c, line)
		}
	}
}

// TestProgressOfARun: lines are printed while a command works, and none after it.
func TestProgressOfARun(t *testing.T) {
	dir := t.TempDir()
	n, rows := int64(-1), int64(1_500_000)
	if cases.Race { // which takes longer
		rows /= 5
	}
	log := putInts(t, filepath.Join(dir, "log.parquet"), func() (int64, bool) {
		n++
		return n, n < rows
	})
	var out, said bytes.Buffer
	if code := run([]string{"join", "--ids", log, "--on", "k", "--strategy", "lookup", "--progress-interval", "10ms", "-o", filepath.Join(dir, "out.parquet"), log}, strings.NewReader(""), &out, &said); code != exitDone {
		t.Fatalf("exit code %d: %s", code, &said)
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	progress := 0
	for i, l := range lines {
		if strings.HasPrefix(l, "joining: ") {
			progress++
			if i > 0 && !strings.HasPrefix(lines[i-1], "joining: ") {
				t.Errorf("progress after %q", lines[i-1])
			}
		}
	}
	if progress == 0 {
		t.Errorf("no line of progress in %q", lines)
	}
}

func TestMeter(t *testing.T) {
	for _, c := range []struct {
		total, rows int64
		after       time.Duration
		want        string
	}{
		{1000, 0, time.Second, "0 % (0 of 1,000 rows), 0 rows/s"},
		{1000, 250, time.Second, "25 % (250 of 1,000 rows), 250 rows/s, 3s left"},
		{1000, 1000, 2 * time.Second, "100 % (1,000 of 1,000 rows), 500 rows/s, 0s left"},
		{1000, 1500, time.Second, "1,500 rows, 1,500 rows/s"}, // read twice
		{0, 12345, 10 * time.Second, "12,345 rows, 1,234 rows/s"},
		{1000, 0, 0, "0 % (0 of 1,000 rows), 0 rows/s"},
	} {
		m := &meter{total: c.total}
		m.rows.Store(c.rows)
		if got := m.after(c.after); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	m := newMeter("reading", nil)
	if s := fmt.Sprint(m); !strings.HasPrefix(s, "0 rows, ") {
		t.Error(s)
	}
}
