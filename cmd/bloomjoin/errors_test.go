package main

import (
	"bytes"
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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/causes"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Where the texts of all cases are, and the page that explains their causes.
const (
	errorTexts = "testdata/errors.txt"
	errorsPage = "../../docs/errors.md"
)

var update = flag.Bool("update", false, "rewrite the texts of errors")

// errorGroup is a section of the texts.
type errorGroup struct {
	title string
	cases []errorCase
}

// errorCase is a command that fails, shown with its output and exit code.
type errorCase struct {
	about  string          // what went wrong, as a heading
	setup  []string        // commands that are run before and succeed, or "remove PATTERN"
	cmd    string          // may end with "< FILE", "> FULL-DISK" or "> CLOSED"
	env    []string        // NAME=VALUE
	status int             // of all answers of an S3 server, which is started for the case
	stored storage.Storage // where files are; nil: as for users
	exit   int
}

// errorGroups returns all cases.
func errorGroups() []errorGroup {
	return slices.Concat(usageErrors(), idErrors(), keyErrors(), logErrors(), filterErrors(), outputErrors(), limitErrors(), placeErrors())
}

// TestErrors compares the output of every case with testdata/errors.txt, and the page about
// their causes with the registry; -update rewrites both. It also checks that each error says
// where, what was wanted and what to do, and has a cause, and that each cause has a case.
func TestErrors(t *testing.T) {
	if runtime.GOOS != "linux" || strconv.IntSize < 64 {
		t.Skip("the texts are those of 64-bit Linux")
	}
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	template := t.TempDir()
	makeErrorFiles(t, template)
	var texts strings.Builder
	seen, found := map[string]bool{}, map[string]bool{
		string(cause.Internal): true, // a bug: TestLogClass has one
		string(cause.Other):    true, // no case may have it
	}
	for _, g := range errorGroups() {
		fmt.Fprintf(&texts, "\n## %s\n", g.title)
		for _, c := range g.cases {
			if seen[c.about] {
				t.Errorf("two cases are called %q", c.about)
			}
			seen[c.about] = true
			t.Run(c.about, func(t *testing.T) {
				text := c.run(t, template)
				found[c.check(t, text)] = true
				fmt.Fprintf(&texts, "\n### %s\n\n$ %s\n%s\nexit %d\n", c.about, c.shown(), text, c.exit)
			})
		}
	}
	root, any := (&cli{}).root(), map[string]bool{"help": true}
	eachVerb(t, func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { any[f.Name] = true })
	})
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { any[f.Name] = true })
	for _, c := range causes.All() {
		for _, m := range namedFlags.FindAllStringSubmatch(c.See+c.Why+c.Do, -1) {
			if name := strings.TrimPrefix(m[2], "--"); name != "" && !any[name] {
				t.Errorf("%s names --%s, which no command has", c.Code, name)
			}
		}
		if !found[c.Code] {
			t.Errorf("no case has the code %s", c.Code)
		}
	}
	if !t.Failed() {
		comparePage(t, filepath.Join(home, errorTexts), strings.TrimPrefix(texts.String(), "\n"))
		comparePage(t, filepath.Join(home, errorsPage), errorsMarkdown())
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
		if pattern, ok := strings.CutPrefix(s, "remove "); ok {
			files, _ := filepath.Glob(pattern)
			for _, f := range files {
				if err := os.Remove(f); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
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
	if c.status != 0 {
		failingS3(t, c.status)
	}
	text, code := runStored(t, c.cmd, c.stored)
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
	return runStored(t, line, nil)
}

// runStored runs a command line as runLine does, over files that are elsewhere.
func runStored(t *testing.T, line string, stored storage.Storage) (string, int) {
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
	if before, name, ok := strings.Cut(line, " > "); ok {
		line, stdout = before, failingWriter{syscall.ENOSPC}
		if strings.HasSuffix(name, "CLOSED") {
			stdout = failingWriter{syscall.EPIPE}
		}
	}
	words := shellWords(line)
	if words[0] != "bloomjoin" {
		t.Fatalf("%q is not a command of ours", line)
	}
	var stderr bytes.Buffer
	code := (&cli{Session: session.Session{Stored: stored}}).run(words[1:], stdin, stdout, &stderr)
	text := strings.TrimSpace(stderr.String())
	for _, word := range []string{"goroutine ", "panic", "internal error"} {
		if strings.Contains(text, word) {
			t.Fatalf("%s: the text has %q: %s", line, word, text)
		}
	}
	text = digestOfRun.ReplaceAllString(text, "…")
	text = portOfServer.ReplaceAllString(text, "127.0.0.1:…")
	return secondsTaken.ReplaceAllString(text, " in … s"), code
}

// Parts of the output that differ between runs.
var (
	digestOfRun  = regexp.MustCompile(`\b[0-9a-f]{12,64}\b`)
	portOfServer = regexp.MustCompile(`127\.0\.0\.1:[0-9]{4,}`)
	secondsTaken = regexp.MustCompile(` in [0-9.]+ s\b`)
)

// failingWriter is a writer that fails.
type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

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

// endCode is the code at the end of an error's text.
var endCode = regexp.MustCompile(`(?m) \[(E[0-9]{3})\]$`)

// check reports missing parts of an error, and returns its code. Each must say where and what
// to do, a mismatch also what was wanted. In a usage error, what was wanted is what to do.
func (c errorCase) check(t *testing.T, text string) string {
	t.Helper()
	code := ""
	if m := endCode.FindStringSubmatch(text); m != nil {
		code = m[1]
	}
	if _, ok := causes.Find(code); !ok || code == string(cause.Other) {
		t.Errorf("%s: the text ends with no code of a cause: %s", c.cmd, text)
	}
	for _, flag := range flagsLacked(t, shellWords(c.cmd), text) {
		t.Errorf("%s: the text names %s, which the command does not have: %s", c.cmd, flag, text)
	}
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
	if c.exit > session.ExitTryAgain || code == string(cause.Closed) { // nothing is wrong, and nowhere
		place, hint = true, true
	}
	for part, there := range map[string]bool{
		"where: a file, column or flag of the command": place,
		"what was wanted": want || !compared,
		"what to do next": hint,
	} {
		if !there {
			t.Errorf("%s: the text lacks %s: %s", c.cmd, part, last)
		}
	}
	return code
}

var (
	namedFlags = regexp.MustCompile(`bloomjoin( (?:sketch query|[a-z]+))|(?:^|[^\w-])(--[a-z0-9][a-z0-9-]*)|[;,()]`)
	otherFlags = []string{
		"--array",           // of Slurm
		"--long", "--ultra", // of zstd
	}
)

// flagsLacked returns the flags that a text of a command names, but are not its own. A flag after
// the name of a command is that command's.
func flagsLacked(t *testing.T, args []string, text string) (lacked []string) {
	t.Helper()
	root := (&cli{}).root()
	own, _, err := root.Find(args[1:])
	if err != nil {
		return nil
	}
	cmd := own
	for _, m := range namedFlags.FindAllStringSubmatch(text, -1) {
		verb, flag := m[1], m[2]
		switch {
		case flag != "":
			name := strings.TrimPrefix(flag, "--")
			given := slices.ContainsFunc(args, func(a string) bool { return a == flag || strings.HasPrefix(a, flag+"=") })
			if name != "help" && cmd.Flag(name) == nil && !given && !slices.Contains(otherFlags, flag) {
				lacked = append(lacked, flag)
			}
		case verb != "":
			if of, _, err := root.Find(strings.Fields(verb)); err == nil && of.HasParent() {
				cmd = of
			}
		default:
			cmd = own
		}
	}
	return lacked
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

// errorsMarkdown returns the page about the causes of errors.
func errorsMarkdown() string {
	var b strings.Builder
	b.WriteString(errorsHead)
	theme := ""
	for _, c := range causes.All() {
		if c.Theme != theme {
			theme = c.Theme
			fmt.Fprintf(&b, "\n- [%s](#%s):", theme, anchor(theme))
		}
		fmt.Fprintf(&b, " [%s](#%s)", c.Code, anchor(c.Code+" "+c.Title))
	}
	b.WriteString("\n")
	theme = ""
	for _, c := range causes.All() {
		if c.Theme != theme {
			theme = c.Theme
			fmt.Fprintf(&b, "\n## %s\n", theme)
		}
		fmt.Fprintf(&b, "\n### %s %s\n\n", c.Code, c.Title)
		for _, p := range c.Parts() {
			fmt.Fprintf(&b, "*%s* %s\\\n", p[0], p[1])
		}
	}
	return strings.ReplaceAll(b.String()+"\n", "\\\n\n", "\n\n")
}

const errorsHead = `<!-- Generated: go test ./cmd/bloomjoin -run TestErrors$ -update -->
# Errors

Every error ends with the code of its cause, as ` + "`" + `[E401]` + "`" + `. Search this page for it, or run ` + "`" + `bloomjoin help E401` + "`" + `.
Codes never change. Programs find them in ` + "`" + `--log-format json` + "`" + `, in the report of ` + "`" + `--json` + "`" + ` (` + "`" + `error.code` + "`" + `), and with ` + "`" + `fault.Code(err)` + "`" + ` in Go.

An error reads from the outside in: the file, the place in it, the problem, what was wanted, what was found, and in
parentheses what to do.

    ids.csv: line 3: column user_id: mismatch: a value that does not parse: want int64 (…) [E302]

[Exit codes](cli.md#exit-codes) tell a scheduler whether to try again.

After an error nothing is half written: an output is there whole, or not at all. No error shows the value of a key.
`

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
	for text, want := range map[string]int{
		"x (build it with bloomjoin build --kind exact, or use --filter)": 0, "x (give --kind exact)": 1, "x (bloomjoin scan --kind, --on; --memory)": 2, "x--on": 0,
	} {
		if got := flagsLacked(t, []string{"bloomjoin", "scan"}, text); len(got) != want {
			t.Errorf("%s: lacks %q", text, got)
		}
	}
	if wantWords.MatchString("no such file") || hintWords.MatchString("no such file") {
		t.Error("a text without want and hint passes")
	}
}
