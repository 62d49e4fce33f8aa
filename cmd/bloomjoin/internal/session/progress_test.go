package session

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// Without a terminal, progress is reported in lines: with the share and the rate if the
// number of rows is known.
func TestProgressLines(t *testing.T) {
	log := sourcetest.Write(t, filepath.Join(t.TempDir(), "log.parquet"), 1000, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "k", Values: make([]int64, 1000)}))
	files, err := source.Open(t.Context(), []string{log}, source.Opening{OpenOptions: source.OpenOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close(files)
	for _, c := range []struct {
		mode  string
		quiet bool
		shown bool
	}{{"auto", false, true}, {"lines", false, true}, {"none", false, false}, {"auto", true, false}, {"lines", true, false}} {
		r, w := io.Pipe()
		out := &Session{Stderr: w, terminal: w, progressMode: c.mode, quiet: c.quiet, progressEvery: time.Millisecond}
		add, end := out.Progress("joining", source.Split(files, dataset.Shard{}))
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
		if !regexp.MustCompile(`^joining: 25 % \(250 of 1,000 rows\), [0-9,]+ rows/s\n$`).MatchString(line) {
			t.Errorf("%+v: %q", c, line)
		}
	}
}

func TestMeter(t *testing.T) {
	for _, c := range []struct {
		total, rows int64
		after       time.Duration
		want        string
	}{
		{1000, 0, time.Second, "0 % (0 of 1,000 rows), 0 rows/s"},
		{1000, 250, time.Second, "25 % (250 of 1,000 rows), 250 rows/s"},
		{1000, 1000, 2 * time.Second, "100 % (1,000 of 1,000 rows), 500 rows/s"},
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
	m := NewMeter("reading", nil)
	if s := fmt.Sprint(m); !strings.HasPrefix(s, "0 rows, ") {
		t.Error(s)
	}
}

// The time left is shown once two estimates, the later after twice the time, agree within
// a factor of two, and not before a hundredth of the rows.
func TestTimeLeft(t *testing.T) {
	type step struct {
		after time.Duration
		rows  int64
		left  string
	}
	for name, steps := range map[string][]step{
		"even":           {{time.Second, 100, ""}, {1500 * time.Millisecond, 150, ""}, {2 * time.Second, 200, "8s"}, {5 * time.Second, 500, "5s"}, {10 * time.Second, 1000, ""}},
		"a slow start":   {{4 * time.Second, 11, ""}, {6 * time.Second, 200, ""}, {8 * time.Second, 400, ""}, {16 * time.Second, 700, "7s"}},
		"a fast start":   {{time.Second, 500, ""}, {2 * time.Second, 501, "2s"}, {4 * time.Second, 502, "4s"}, {8 * time.Second, 503, "8s"}},
		"suddenly stuck": {{time.Second, 400, ""}, {time.Minute, 401, ""}, {3 * time.Minute, 402, ""}},
		"little":         {{time.Minute, 9, ""}, {2 * time.Minute, 9, ""}, {4 * time.Minute, 10, ""}, {8 * time.Minute, 20, "6h32m0s"}},
		"at once":        {{time.Millisecond, 500, ""}, {900 * time.Millisecond, 600, ""}},
	} {
		m := &meter{total: 1000}
		for _, s := range steps {
			m.rows.Store(s.rows)
			_, left, shown := strings.Cut(m.after(s.after), "rows/s, ")
			if got := strings.TrimSuffix(left, " left"); got != s.left || shown != (s.left != "") {
				t.Errorf("%s: after %v: %q left, want %q", name, s.after, got, s.left)
			}
		}
	}
}

// Each phase has its own rows and clock, and goes on where it stopped. Once all rows are
// read, the line says so.
func TestPhases(t *testing.T) {
	ids, log := &meter{what: "reading IDs", total: 30}, &meter{what: "joining", total: 20}
	p := &phases{begin: func(*meter) {}}
	p.show(ids)
	expect := func(want string) {
		t.Helper()
		if what, progress := p.line(); !strings.HasPrefix(what+": "+progress, want) {
			t.Errorf("%s: %s, want %s", what, progress, want)
		}
	}
	expect("reading IDs: 0 % (0 of 30 rows), 0 rows/s")
	p.add(ids, 15)
	p.add(log, 5)
	expect("joining: 25 % (5 of 20 rows), ")
	before := ids.elapsed()
	time.Sleep(time.Millisecond)
	if d := ids.elapsed(); d != before {
		t.Errorf("a phase that is not shown took %v more", d-before)
	}
	p.add(ids, 15)
	expect("reading IDs: 100 % (30 of 30 rows), ")
	p.add(log, 15)
	expect("joining: 100 %")
	log.before += time.Minute
	expect("finishing: 20 rows read, ")
	p.add(log, 1)
	expect("joining: 21 rows, ")
}

// On a terminal, a bar is drawn again and again in one line, which is clear in the end.
func TestProgressBar(t *testing.T) {
	p := &phases{begin: func(*meter) {}}
	m := &meter{what: "joining", total: 1000}
	p.add(m, 250)
	if got := p.bar(200); !strings.HasPrefix(got, "joining ["+strings.Repeat("=", 7)+strings.Repeat("-", 23)+"] 25 % (250 of 1,000 rows), ") {
		t.Errorf("%q", got)
	}
	for room := range 120 { // the figures have the first room
		if got := p.bar(room); strings.Contains(got, "[") && len(got) > room || room < 40 && strings.Contains(got, "[") {
			t.Errorf("%d columns: %q", room, got)
		}
	}
	p.add(m, 750)
	if got := p.bar(200); !strings.HasPrefix(got, "joining ["+strings.Repeat("=", 30)+"] 100 % ") {
		t.Errorf("%q", got)
	}
	p.add(m, 1) // read twice
	if got := p.bar(200); !strings.HasPrefix(got, "joining 1,001 rows, ") {
		t.Errorf("%q", got)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	draw := p.drawer(f)
	draw(false)
	p.add(&meter{what: strings.Repeat("scanning", 20)}, 5)
	draw(false)
	draw(true)
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	screen, at := make([]byte, 200), 0 // what is on the line
	for _, c := range b {
		if c == '\r' {
			at = 0
			continue
		}
		screen[at] = c
		at++
	}
	lines := strings.Split(string(b), "\r")
	if n := len(lines); n != 7 || !strings.HasPrefix(lines[1], "joining 1,001 rows") || len(lines[3]) != 79 || strings.Trim(string(screen), " \x00") != "" {
		t.Errorf("%d: %q, in the end %q", n, lines, screen)
	}
}
