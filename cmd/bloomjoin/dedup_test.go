package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// click is a row of a stream with duplicates.
type click struct {
	id   string // empty: NULL
	time int64  // seconds; negative: NULL
}

// clicks returns n rows of which many are duplicates, some late, and some lack a key or a time.
func clicks(random *rand.Rand, n int) (rows []click) {
	now := int64(1_000_000)
	for range n {
		now += random.Int64N(3)
		if random.IntN(n/4) == 0 {
			now += 40_000
		}
		c := click{"id " + strconv.Itoa(random.IntN(n/2)), now - random.Int64N(1+now%12_000)}
		switch random.IntN(40) {
		case 0:
			c.id = ""
		case 1:
			c.time = -1
		}
		rows = append(rows, c)
	}
	return rows
}

// unique returns the numbers of the rows that stay, by a map, where the window has slots of a
// number of seconds; 0: there are no times.
func unique(rows []click, width, slots int64) (stay []string) {
	passed, newest := map[string]int64{}, int64(-1<<40)
	for i, c := range rows {
		if c.id != "" && (c.time >= 0 || width == 0) {
			slot := int64(0)
			if width > 0 {
				slot = c.time / width
			}
			if newest = max(newest, slot); slot > newest-slots {
				if at, ok := passed[c.id]; ok && at > newest-slots {
					continue
				}
				passed[c.id] = slot
			}
		}
		stay = append(stay, strconv.Itoa(i))
	}
	return stay
}

// texts returns the rows as text, with their numbers in a column n.
func texts(format string, rows []click) string {
	var b strings.Builder
	by := map[string]string{"csv": ",", "tsv": "\t"}[format]
	if by != "" {
		b.WriteString("n" + by + "id" + by + "at\r\n")
	}
	for i, c := range rows {
		at := ""
		if c.time >= 0 {
			at = time.Unix(c.time, 0).UTC().Format(time.RFC3339)
		}
		id := c.id
		if by != "" {
			if i%5 == 0 && format == "csv" && id != "" {
				id = `"` + id + `"`
			}
			fmt.Fprintf(&b, "%d%s%s%s%s\r\n", i, by, id, by, at)
			continue
		}
		fmt.Fprintf(&b, `{"n":%d`, i)
		if id != "" {
			fmt.Fprintf(&b, `,"id": %q`, id)
		}
		if at != "" {
			fmt.Fprintf(&b, `,"at":%q`, at)
		}
		b.WriteString("}\n")
		if i%100 == 0 {
			b.WriteString("\n") // no row
		}
	}
	return b.String()
}

// numbers returns the values of n in text.
func numbers(format, text string) (n []string) {
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if format == "ndjson" {
			_, line, _ = strings.Cut(line, ":")
			line, _, _ = strings.Cut(strings.TrimSuffix(line, "}"), ",")
		} else if i == 0 {
			continue
		}
		n = append(n, strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == '\t' || r == '\r' })[0])
	}
	return n
}

// clickRecord returns rows as a record, numbered from a first one.
func clickRecord(rows []click, first int) arrow.Record {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "id", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "at", Type: arrow.FixedWidthTypes.Timestamp_ms, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i, c := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(first + i))
		if c.id == "" {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append(c.id)
		}
		if c.time < 0 {
			b.Field(2).AppendNull()
		} else {
			b.Field(2).(*array.TimestampBuilder).Append(arrow.Timestamp(c.time * 1000))
		}
	}
	return b.NewRecord()
}

// firsts returns the first cells of rendered rows.
func firsts(rows []string) (n []string) {
	for _, r := range rows {
		first, _, _ := strings.Cut(r, "|")
		n = append(n, first)
	}
	return n
}

// The rows that stay are those of a map, in all formats, from files and standard input, by a ring
// without false positives and exactly, by any number of threads.
func TestDedup(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	rows := clicks(random, 3000)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	var stream bytes.Buffer
	stream.Write(arrowStream(t, clickRecord(rows[:1000], 0), clickRecord(rows[1000:], 1000)))
	sourcetest.Write(t, at("log/a.parquet"), 100, clickRecord(rows[:1500], 0))
	sourcetest.Write(t, at("log/b.arrow"), 300, clickRecord(rows[1500:2000], 1500))
	sourcetest.Write(t, at("log/c.parquet"), 1000, clickRecord(rows[2000:], 2000))
	for _, format := range []string{"csv", "tsv", "ndjson"} {
		sourcetest.Put(t, at("all."+format), texts(format, rows))
	}
	outs := 0
	for _, window := range []struct {
		flags string
		want  []string
	}{
		{"--expect 40000", unique(rows, 0, 1)},
		{"--time at --window 6h --slots 12 --expect 40000", unique(rows, 1800, 12)},
		{"--time at --window 64m --slots 64 --rate 10", unique(rows, 60, 64)},
		{"--time at --window 1h --slots 1 --expect 40000", unique(rows, 3600, 1)},
	} {
		for _, how := range []string{"--fpr 1e-9", "--exact --fpr 0.3", "--exact --threads 8", "--fpr 1e-9 --threads 1"} {
			line := strings.Fields("dedup --quiet --key id " + window.flags + " " + how)
			same := func(what string, got []string) {
				t.Helper()
				if !slices.Equal(got, window.want) {
					t.Errorf("%v: %s: %d rows, want %d", line, what, len(got), len(window.want))
				}
			}
			for _, format := range []string{"csv", "tsv", "ndjson"} {
				text := sourcetest.Get(t, at("all."+format))
				got := works(t, text, append(line, "--format", format)...)
				same(format, numbers(format, got))
				if from := works(t, "", append(line, at("all."+format))...); from != got {
					t.Errorf("%v: %s: another answer from a file", line, format)
				}
				if format == "csv" && !strings.HasPrefix(got, "n,id,at\r\n") {
					t.Errorf("header %.20q", got)
				}
			}
			var got []string
			for _, rec := range batchesOf(t, []byte(works(t, stream.String(), line...))) {
				got = append(got, firsts(sourcetest.Rows(rec))...)
			}
			same("stream", got)
			for _, name := range []string{"o.parquet", "o.arrow"} {
				outs++
				out := at(strconv.Itoa(outs) + name)
				works(t, "", append(line, "-o", out, at("log"))...)
				all, _ := sourcetest.Contents(t, out)
				same(name, firsts(all))
			}
		}
		out := at(strconv.Itoa(outs) + "out")
		works(t, "", append(strings.Fields("dedup --quiet --key id --fpr 1e-9 "+window.flags), "-o", out+"/", at("log"))...)
		var got []string
		for _, name := range []string{"a.parquet", "b.arrow", "c.parquet"} {
			all, _ := sourcetest.Contents(t, filepath.Join(out, strings.TrimSuffix(name, filepath.Ext(name))+".parquet"))
			got = append(got, firsts(all)...)
		}
		if !slices.Equal(got, window.want) {
			t.Errorf("%s: directory: %d rows, want %d", window.flags, len(got), len(window.want))
		}
	}
}

// Rows that cannot be judged are kept, dropped or an error, and the report counts them.
func TestDedupLate(t *testing.T) {
	const in = "id,at\na,1000\nb,5000\na,100\nb,\n,7000\na,9000\n"
	flags := strings.Fields("dedup --json --key id --time at --time-unit s --window 1h --slots 2 --expect 100 --format csv")
	for late, want := range map[string]string{"keep": in, "drop": "id,at\na,1000\nb,5000\n,7000\na,9000\n", "error": ""} {
		out, said, code := called(t, in, append(flags, "--late", late)...)
		switch {
		case late == "error":
			if code != session.ExitFailed || !strings.Contains(said, "row 3 of the input") || !strings.Contains(said, "--late keep") {
				t.Errorf("exit code %d: %s", code, said)
			}
		case code != session.ExitDone || out != want || !strings.Contains(said, `"late":1,"ahead":0,"keys_null":1,"times_null":1`):
			t.Errorf("--late %s: exit code %d: %q: %s", late, code, out, said)
		}
	}
	out, said, code := called(t, in, append(flags, "--max-jump", "1h")...)
	if code != session.ExitDone || out != in || !strings.Contains(said, `"ahead":1`) {
		t.Errorf("exit code %d: %q: %s", code, out, said)
	}
}

// A ring that holds more keys than planned says so, and what does not fit is refused.
func TestDedupOverfull(t *testing.T) {
	var in strings.Builder
	for i := range 20_000 {
		fmt.Fprintln(&in, i)
	}
	out, said, code := called(t, in.String(), "dedup", "--key", "id", "--expect", "5000", "--format", "lines")
	if code != session.ExitGate || !strings.Contains(said, "raise --expect") || len(out) == in.Len() || len(out) < 5000 {
		t.Errorf("exit code %d: %s", code, said)
	}
	_, said, code = called(t, "", "dedup", "--key", "id", "--expect", "1e9", "--memory", "64MiB", "--format", "lines")
	if code != session.ExitFailed || !strings.Contains(said, "raise --memory") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// Runs that continue from a state write what one run over all inputs would, whatever is killed.
func TestDedupKilled(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	rows := clicks(random, 60_000)
	for _, format := range []string{"ndjson", "csv"} {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name+"."+format) }
		sourcetest.Put(t, at("a"), texts(format, rows[:45_000]))
		sourcetest.Put(t, at("b"), texts(format, rows[45_000:]))
		line := []string{"dedup", "--quiet", "--key", "id", "--time", "at", "--window", "6h", "--expect", "200000", "-o"}
		began := time.Now()
		must(t, append(line, at("want"), at("a"), at("b"))...)
		took := time.Since(began)
		with := append(line, at("out"), "--state", filepath.Join(dir, "s"), "--checkpoint", "1ms", at("a"), at("b"))
		died, rounds := 0, cases.Count(5, 20, 100)
		for died < rounds {
			cmd := exec.Command("bloomjoin", with...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(random.Int64N(int64(took))))
			if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil {
				break // it was faster
			}
			died++
		}
		must(t, with...)
		if !bytes.Equal(read(t, at("out")), read(t, at("want"))) {
			t.Errorf("%s: another output after %d kills", format, died)
		}
		if left := names(t, dir); len(left) != 5 { // inputs, outputs and the state
			t.Errorf("%s: %q are left", format, left)
		}
		t.Logf("%s: %d kills", format, died)
		if died == 0 {
			t.Error("nothing was killed: the test shows nothing")
		}
	}
}

// A log that grows is continued, and what has changed is refused.
func TestDedupState(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	base := []string{"dedup", "--quiet", "--key", "id", "--expect", "1000", "--state", at("s"), "-o", at("out.csv"), at("in.csv")}
	flags := slices.Clone(base)
	passes := func(in, want string) {
		t.Helper()
		sourcetest.Put(t, at("in.csv"), in)
		works(t, "", flags...)
		if got := sourcetest.Get(t, at("out.csv")); got != want {
			t.Errorf("after %q: %q, want %q", in, got, want)
		}
	}
	refused := func(in string, words ...string) {
		t.Helper()
		sourcetest.Put(t, at("in.csv"), in)
		out, said, code := called(t, "", flags...)
		if code != session.ExitFailed || out != "" {
			t.Errorf("%q: exit code %d: %s", in, code, said)
		}
		for _, w := range words {
			if !strings.Contains(said, w) {
				t.Errorf("no %q: %s", w, said)
			}
		}
	}
	passes("id,n\na,1\nb,2\na,3", "id,n\na,1\nb,2\n")
	passes("id,n\na,1\nb,2\na,3\n", "id,n\na,1\nb,2\n")
	passes("id,n\na,1\nb,2\na,3\nb,4\nc,5", "id,n\na,1\nb,2\n") // the last row may go on
	passes("id,n\na,1\nb,2\na,3\nb,4\nc,55\n", "id,n\na,1\nb,2\nc,55\n")
	refused("id,n\na,1\nX,2\na,3\nb,4\nc,55\n", "want", "got", "in.csv")
	refused("id,n\na,1\n", "26 bytes or more, got 9")
	refused("id,n\na,1\nb,2\na,3\nb,4\nc,55\nd\n", "line 7", "want 2, got 1")
	passes("id,n\na,1\nb,2\na,3\nb,4\nc,55\nd,6\n", "id,n\na,1\nb,2\nc,55\nd,6\n")
	state := sourcetest.Get(t, at("s"))
	flags = append(slices.Clone(base), "--fpr", "0.5")
	refused("id,n\na,1\nb,2\na,3\nb,4\nc,55\nd,6\ne,7\n", "fpr 0.001", "fpr 0.5")
	flags = append(slices.Clone(base)[:2], append([]string{"--key", "id::int64"}, base[4:]...)...)
	refused("id,n\na,1\nb,2\na,3\nb,4\nc,55\nd,6\ne,7\n", "key id::int64")
	flags = base
	for cut := range len(state) {
		if cut%101 == 0 {
			sourcetest.Put(t, at("s"), state[:cut])
			refused("id,n\na,1\nb,2\na,3\nb,4\nc,55\nd,6\ne,7\n", "s: ")
		}
	}
	sourcetest.Put(t, at("s"), "id,n\nnot a state of anything")
	refused("id,n\na,1\n", "want a state of duplicates")
	sourcetest.Put(t, at("s"), state)
	sourcetest.Put(t, at("out.csv"), "id,n\na,1\n")
	refused("id,n\na,1\nb,2\na,3\nb,4\nc,55\nd,6\ne,7\n", "out.csv", "size of the output")
	flags = append(slices.Clone(base), at("other.csv"))
	flags[slices.Index(flags, at("out.csv"))] = at("later.csv")
	sourcetest.Put(t, at("other.csv"), "id,n\ne,8\nf,9\n")
	works(t, "", flags...)
	if got := sourcetest.Get(t, at("later.csv")); got != "id,n\ne,7\nf,9\n" {
		t.Errorf("%q", got)
	}
	for _, wrong := range [][]string{{"-"}, {at("x.csv.gz")}, {"s3://bucket/x.csv"}, {}} {
		line := append(slices.Clone(base[:len(base)-1]), wrong...)
		if _, said, code := called(t, "", line...); code != session.ExitUsage {
			t.Errorf("%v: exit code %d: %s", wrong, code, said)
		}
	}
}

// Runs over tables with a state read each file once, in any run, and commit the state after the
// output.
func TestDedupTables(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	rows := clicks(random, 4000)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	sourcetest.Write(t, at("log/a.parquet"), 500, clickRecord(rows[:2500], 0))
	line := func(out string) []string {
		return append(strings.Fields("dedup --quiet --key id --time at --window 6h --expect 90000 --fpr 1e-9 --state"), at("s"), "-o", at(out), at("log"))
	}
	works(t, "", line("1.parquet")...)
	state := sourcetest.Get(t, at("s"))
	if said := works(t, "", append(line("1.parquet"), "--json")...); !strings.Contains(said, `"already_done":true`) {
		t.Error(said)
	}
	sourcetest.Write(t, at("log/b.parquet"), 300, clickRecord(rows[2500:], 2500))
	works(t, "", line("2.parquet")...)
	after := sourcetest.Get(t, at("s"))
	sourcetest.Put(t, at("s"), state) // as if it was killed between output and state
	works(t, "", line("2.parquet")...)
	if sourcetest.Get(t, at("s")) != after {
		t.Error("another state")
	}
	one, _ := sourcetest.Contents(t, at("1.parquet"))
	two, _ := sourcetest.Contents(t, at("2.parquet"))
	if got, want := firsts(append(one, two...)), unique(rows, 900, 24); !slices.Equal(got, want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
	if out, said, code := called(t, "", line("3.parquet")...); code != session.ExitFailed || !strings.Contains(said, "all inputs are done") {
		t.Errorf("exit code %d: %s%s", code, out, said)
	}
	sourcetest.Write(t, at("other/c.parquet"), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: []int64{1}}, sourcetest.Col{Name: "at", Values: clickRecord(rows[:1], 0).Column(2)}))
	other := append(line("4.parquet")[:len(line(""))-1], at("other"))
	if _, said, code := called(t, "", other...); code != session.ExitFailed || !strings.Contains(said, "want bytes (the inputs before), got integer") {
		t.Errorf("exit code %d: %s", code, said)
	}
	both := []string{"dedup", "--key", "id", "-o", at("both.parquet"), at("log/a.parquet"), at("other/c.parquet")}
	if _, said, code := called(t, "", both...); code != session.ExitFailed || !strings.Contains(said, "want bytes (the inputs before), got integer") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// A table is done if its name and its content are: the rows of an equal one stay to be judged.
func TestDedupTableNames(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, ids ...int64) {
		sourcetest.Write(t, at(name), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: ids}))
	}
	line := func(out string, in ...string) []string {
		args := []string{"dedup", "--quiet", "--json", "--key", "id", "--expect", "100", "--state", at("s"), "-o", at(out)}
		for _, name := range in {
			args = append(args, at(name))
		}
		return args
	}
	write("a.parquet", 1, 2)
	write("b.parquet", 1, 2)
	works(t, "", line("1.parquet", "a.parquet")...)
	if said := works(t, "", line("2.parquet", "a.parquet", "b.parquet")...); !strings.Contains(said, `"rows_in":2,"duplicates":2`) {
		t.Error(said)
	}
	write("a.parquet", 1, 3)
	if _, said, code := called(t, "", line("3.parquet", "a.parquet")...); code != session.ExitFailed || !strings.Contains(said, "a.parquet: mismatch: checksum of an input that is done: want ") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if _, said, code := called(t, "1\n", "dedup", "--key", "id", "--time", "at", "--window", "24h", "--expect", "9"); code != session.ExitUsage || !strings.Contains(said, "--time at: a line is one value") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// Line ends stay as they are, also those of headers, which are equal in spite of them.
func TestDedupLineEnds(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.csv")
	for _, end := range []string{"\r", "\r\n", "\n"} {
		rows, want := "", ""
		for i, row := range []string{"id,n", "a,1", "b,2", "a,3", "c,4"} {
			if rows += row + end; i != 3 {
				want += row + end
			}
			if i > 0 {
				sourcetest.Put(t, in, rows)
				works(t, "", "dedup", "--quiet", "--key", "id", "--expect", "10", "--state", filepath.Join(dir, "s"), "-o", out, in)
			}
		}
		if got := sourcetest.Get(t, out); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		for _, name := range []string{"s", "out.csv"} {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What has come is answered before more is waited for.
func TestDedupAtOnce(t *testing.T) {
	stdin, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd, out, _ := start(t, stdin, "dedup", "--quiet", "--key", "id", "--expect", "100")
	stdin.Close()
	buf := make([]byte, 100)
	for i := range 3 {
		row := fmt.Sprintf(`{"id":%d}`+"\n", i)
		if _, err := feed.WriteString(row + `{"id":0}` + "\n"); err != nil {
			t.Fatal(err)
		}
		n, err := out.Read(buf)
		if err != nil || string(buf[:n]) != row {
			t.Fatalf("%q, %v", buf[:n], err)
		}
	}
	feed.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Who reads only the beginning of the output ends the run, without a crash.
func TestDedupClosed(t *testing.T) {
	cmd := exec.Command("bloomjoin", "dedup", "--quiet", "--key", "id", "--expect", "100")
	var said bytes.Buffer
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte(`{"id":1}` + "\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	out.Close()
	for i := range 100 { // until the process has ended
		if _, err := fmt.Fprintf(in, "{\"id\":%d}\n", i); err != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	in.Close()
	if err := cmd.Wait(); err == nil || strings.Contains(said.String(), "internal") {
		t.Errorf("%v: %s", err, &said)
	}
}
