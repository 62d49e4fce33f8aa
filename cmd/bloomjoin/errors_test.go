package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
)

// Where the texts are: usageTexts has those of wrong usage, which explain themselves.
const (
	errorsPage = "../../docs/errors.md"
	usageTexts = "testdata/usage.txt"
)

var update = flag.Bool("update", false, "rewrite the texts of errors")

// errorGroup is a section of docs/errors.md.
type errorGroup struct {
	title, about string
	cases        []errorCase
}

// errorCase is a command that fails, shown with its output and exit code.
type errorCase struct {
	about string   // what went wrong, as a heading
	setup []string // commands that are run before and succeed
	cmd   string   // may end with "< FILE" or "> FULL-DISK"
	env   []string // NAME=VALUE
	exit  int
}

// errorGroups returns all cases, in the order of the page.
func errorGroups() []errorGroup {
	return slices.Concat(usageErrors(), idErrors(), keyErrors(), logErrors(), filterErrors(), outputErrors(), limitErrors())
}

// TestErrors compares the output of every case with docs/errors.md or, for the first group,
// with testdata/usage.txt, which -update rewrites. It also checks that each error says where, what was wanted and what
// to do.
func TestErrors(t *testing.T) {
	if runtime.GOOS != "linux" || strconv.IntSize < 64 {
		t.Skip("the page has the texts of 64-bit Linux")
	}
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	template := t.TempDir()
	makeErrorFiles(t, template)
	groups, seen := errorGroups(), map[string]bool{}
	var page, usage strings.Builder
	writeErrorsHead(&page, groups[1:])
	for i, g := range groups {
		b := &page
		if i == 0 {
			b = &usage
		} else {
			fmt.Fprintf(b, "\n## %s\n\n%s\n", g.title, g.about)
		}
		for _, c := range g.cases {
			if seen[c.about] {
				t.Errorf("two cases are called %q", c.about)
			}
			seen[c.about] = true
			t.Run(c.about, func(t *testing.T) {
				text := c.run(t, template)
				c.check(t, text)
				fmt.Fprintf(b, "\n### %s\n\n```console\n$ %s\n%s\nexit %d\n```\n", c.about, c.shown(), text, c.exit)
			})
		}
	}
	if !t.Failed() {
		comparePage(t, filepath.Join(home, errorsPage), page.String())
		comparePage(t, filepath.Join(home, usageTexts), usage.String())
	}
}

// comparePage compares a file with what it should have, or rewrites it.
func comparePage(t *testing.T, name, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	old, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(old) != want {
		t.Errorf("%s differs from what the command prints: %s\nIf the texts are right, rewrite it: go test ./cmd/bloomjoin -run %s -update",
			name, firstDifference(string(old), want), t.Name())
	}
}

// shown returns the command as a user would type it.
func (c errorCase) shown() string {
	return strings.TrimSpace(strings.Join(c.env, " ") + " " + c.cmd)
}

// run runs the case in a copy of template and returns its standard error.
func (c errorCase) run(t *testing.T, template string) string {
	t.Helper()
	dir := t.TempDir()
	if err := linkTree(dir, template); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, s := range c.setup {
		if text, code := runLine(t, s); code != 0 {
			t.Fatalf("%s: exit code %d: %s", s, code, text)
		}
	}
	for _, v := range []string{"JOB_COMPLETION_INDEX", "AWS_BATCH_JOB_ARRAY_INDEX", "SLURM_ARRAY_TASK_ID"} {
		t.Setenv(v, "") // restores it at the end
		os.Unsetenv(v)
	}
	for _, v := range c.env {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	text, code := runLine(t, c.cmd)
	if code != c.exit {
		t.Fatalf("%s: exit code %d, want %d: %s", c.cmd, code, c.exit, text)
	}
	return text
}

// linkTree fills a directory with hard links to the files of another.
func linkTree(to, from string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == from {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Mkdir(filepath.Join(to, rel), 0o777)
		}
		return os.Link(name, filepath.Join(to, rel))
	})
}

// runLine runs a command line in this process and returns its standard error and
// its exit code.
func runLine(t *testing.T, line string) (string, int) {
	t.Helper()
	var stdin io.Reader = strings.NewReader("")
	var stdout io.Writer = io.Discard
	if before, name, ok := strings.Cut(line, " < "); ok {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		line, stdin = before, bytes.NewReader(b)
	}
	if before, _, ok := strings.Cut(line, " > "); ok {
		line, stdout = before, fullDisk{}
	}
	words := shellWords(line)
	if words[0] != "bloomjoin" {
		t.Fatalf("%q is not a command of ours", line)
	}
	var stderr bytes.Buffer
	code := run(words[1:], stdin, stdout, &stderr)
	text := strings.TrimSpace(stderr.String())
	for _, word := range []string{"goroutine ", "panic", "internal error"} {
		if strings.Contains(text, word) {
			t.Fatalf("%s: the text has %q: %s", line, word, text)
		}
	}
	text = digestOfRun.ReplaceAllString(text, "…")
	return secondsTaken.ReplaceAllString(text, " in … s"), code
}

// Parts of the output that differ between runs.
var (
	digestOfRun  = regexp.MustCompile(`\b[0-9a-f]{12,64}\b`)
	secondsTaken = regexp.MustCompile(` in [0-9.]+ s\b`)
)

// fullDisk is a writer on a full disk.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// shellWords splits a line at spaces outside quotes.
func shellWords(line string) (words []string) {
	var word strings.Builder
	quote, any := rune(0), false
	for _, r := range line + " " {
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, any = r, true
		case r == ' ' && quote == 0:
			if word.Len() > 0 || any {
				words = append(words, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteRune(r)
		}
	}
	return words
}

var (
	placeWords  = regexp.MustCompile(`\bstandard (in|out)put\b|\bcolumn \S+:|\bdirectory \S|^bloomjoin: --?[a-z]`)
	optionWords = regexp.MustCompile(`\{[A-Z][A-Za-z0-9+]*[ }]`)
	wantWords   = regexp.MustCompile(`\b(want|needs?|must)\b`)
	hintWords   = regexp.MustCompile(`(?i)\b(add|bound|build|cast|change|check|choose|convert|copy|delete|did you mean|drop|give|leaves?|let|lower|make|merge|move|name|pass|put|raise|read|remove|rename|repeat|replaces?|retry|run|save|say|scan|separate|set|split|take|try|use|unset|write)\b|--help|usage:|is required|\(there (is|are) |docs/|\(--[a-z]`)
)

// check reports missing parts of an error. Each must say where and what to do,
// a mismatch also what was wanted. In a usage error, what was wanted is what to
// do.
func (c errorCase) check(t *testing.T, text string) {
	t.Helper()
	last := text[strings.LastIndex(text, "\nbloomjoin: ")+1:]
	if !strings.HasPrefix(last, "bloomjoin: ") {
		t.Errorf("no error on standard error: %q", text)
	}
	if o := optionWords.FindString(text); o != "" {
		t.Errorf("%s: the option %s is not worded: %s", c.cmd, o, text)
	}
	place := placeWords.MatchString(last)
	for _, word := range shellWords(c.shown())[1:] {
		_, value, _ := strings.Cut(word, "=")
		place = place || len(word) > 1 && strings.Contains(last, word) || len(value) > 0 && strings.Contains(last, value)
	}
	want := wantWords.MatchString(last)
	hint := hintWords.MatchString(last) || c.exit == session.ExitUsage && want
	compared := strings.Contains(last, "mismatch: ")
	for part, there := range map[string]bool{
		"where: a file, column or flag of the command": place,
		"what was wanted": want || !compared,
		"what to do next": hint,
	} {
		if !there {
			t.Errorf("%s: the text lacks %s: %s", c.cmd, part, last)
		}
	}
}

// firstDifference returns the first line in which two texts differ.
func firstDifference(old, now string) string {
	a, b := strings.Split(old, "\n"), strings.Split(now, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d: the page has\n\t%s\nand the command prints\n\t%s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines against %d", len(a), len(b))
}

func writeErrorsHead(b *strings.Builder, groups []errorGroup) {
	n := 0
	for _, g := range groups {
		n += len(g.cases)
	}
	fmt.Fprintf(b, `<!-- Generated: go test ./cmd/bloomjoin -run TestErrors -update -->
# Errors

What each error looks like, and what to do: %d mistakes, each with its command, text and exit code.
Search this page for the words that you see on your screen. Wrong usage (exit code 64) is not here: its text says what to do.

An error reads from the outside in: the file, the place in it, the problem, what was wanted, what was found, and in
parentheses what to do next.

    ids.csv: line 3: column user_id: mismatch: a value that does not parse: want int64 (…)

The first words of the problem say of what kind it is:

| word | meaning |
|---|---|
| corrupt | the file breaks the rules of its own format, or a checksum is wrong; get a good copy |
| mismatch | two things that must agree do not: a key type, a schema, a build, a filter |
| unsupported | the file is valid, but bloomjoin does not handle this |
| over the memory budget | raise --memory |

The exit code tells a scheduler whether another attempt makes sense:

| exit code | meaning | another attempt |
|---|---|---|
| 0 | done, or done before | |
| 1 | failed: bad data, a mismatch, a missing file | fails again |
| 2 | a --require-* or --max-kept limit of join is not met; nothing was published | fails again, until the inputs change |
| 64 | wrong usage, found before any input was opened | fails again |
| 75 | a passing cause: the disk is full, the network, an input that changed | may succeed |
| 129, 130, 143 | interrupted by SIGHUP, SIGINT, SIGTERM | may succeed |

After an error nothing is half written: an output is there whole, or not at all. Values of keys are in no error.

`, n)
	for _, g := range groups {
		fmt.Fprintf(b, "- [%s](#%s)\n", g.title, anchor(g.title))
	}
}

// anchor returns the URL fragment of a heading.
func anchor(title string) string {
	keep := func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		}
		return -1
	}
	return strings.Map(keep, strings.ToLower(title))
}

// TestErrorPartsAreChecked tests the helpers above.
func TestErrorPartsAreChecked(t *testing.T) {
	if got := shellWords(`a 'b c' '' d`); !slices.Equal(got, []string{"a", "b c", "", "d"}) {
		t.Errorf("words %q", got)
	}
	if wantWords.MatchString("no such file") || hintWords.MatchString("no such file") {
		t.Error("a text without want and hint passes")
	}
	if !errors.Is(func() error { _, err := fullDisk{}.Write(nil); return err }(), syscall.ENOSPC) {
		t.Error("the full disk has space")
	}
}
