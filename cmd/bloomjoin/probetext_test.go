package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
)

// textFilter builds a filter of some texts, and returns its name with texts of which every
// second one is in it.
func textFilter(t *testing.T, n int, text func(i int) string) (filter string, texts []string) {
	t.Helper()
	filter = filepath.Join(t.TempDir(), "ids.bjf")
	var ids strings.Builder
	w := csv.NewWriter(&ids)
	_ = w.Write([]string{"k", "x"})
	for i := range n {
		texts = append(texts, text(i))
		if i%2 == 0 {
			_ = w.Write([]string{texts[i], ""})
		}
	}
	w.Flush()
	file := filepath.Join(t.TempDir(), "ids.csv")
	if err := os.WriteFile(file, []byte(ids.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, "build", "--key", "k", "--fpr", "1e-9", "--kind", "bloom", "-o", filter, file)
	return filter, texts
}

// Lines that are members pass byte for byte, with --invert the others, and with --mask each
// has a digit: however many are read at once, and whatever ends them.
func TestProbeLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	filter, texts := textFilter(t, 20_000, func(i int) string {
		return fmt.Sprintf("https://example.org/%d/%s", i, strings.Repeat("x", rng.IntN(300)))
	})
	members := map[string]bool{}
	for i := 0; i < len(texts); i += 2 {
		members[texts[i]] = true
	}
	for _, end := range []string{"\n", "\r\n"} {
		var in, pass, others, mask strings.Builder
		for i := range 50_000 {
			line := texts[rng.IntN(len(texts))]
			if rng.IntN(100) == 0 {
				in.WriteString(end) // an empty line has no answer
			}
			ended := line + end
			if i == 49_999 {
				ended = line // the last line has no end
			}
			in.WriteString(ended)
			if members[line] {
				pass.WriteString(ended)
				mask.WriteString("1\n")
			} else {
				others.WriteString(ended)
				mask.WriteString("0\n")
			}
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write([]byte(in.String()))
		_ = z.Close()
		file := filepath.Join(t.TempDir(), "in.txt.gz")
		if err := os.WriteFile(file, packed.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		for flag, want := range map[string]string{"--quiet": pass.String(), "--invert": others.String(), "--mask": mask.String()} {
			args := []string{"probe", "--quiet", "--filter", filter, flag}
			for from, got := range map[string][]byte{
				"plain": doWith(t, []byte(in.String()), args...), "gzip": doWith(t, packed.Bytes(), args...), "a file": doWith(t, nil, append(args, file)...),
			} {
				if string(got) != want {
					t.Errorf("%s, %s, ends %q: %d bytes, want %d", flag, from, end, len(got), len(want))
				}
			}
		}
	}
}

// Rows of CSV pass as encoding/csv reads them, with their header. An empty field is NULL, and
// passes nowhere but with --invert.
func TestProbeCSV(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	word := func() string {
		var b strings.Builder
		for range 1 + rng.IntN(6) {
			b.WriteString([]string{"a", "\"", ",", "\n", "é", " ", "\t"}[rng.IntN(7)])
		}
		return b.String()
	}
	filter, texts := textFilter(t, 400, func(i int) string { return fmt.Sprint(i, word()) })
	header := []string{"x", "k"}
	pass, others := [][]string{header}, [][]string{header}
	var in, mask strings.Builder
	w := csv.NewWriter(&in)
	_ = w.Write(header)
	for range 5000 {
		i := rng.IntN(len(texts) + 1)
		key, member := "", false
		if i < len(texts) {
			key, member = texts[i], i%2 == 0
		}
		row := []string{word(), key}
		_ = w.Write(row)
		if member {
			pass = append(pass, row)
			mask.WriteString("1\n")
		} else {
			others = append(others, row)
			mask.WriteString("0\n")
		}
	}
	w.Flush()
	args := []string{"probe", "--quiet", "--filter", filter, "--format", "csv"}
	for flag, want := range map[string][][]string{"--quiet": pass, "--invert": others} {
		got, err := csv.NewReader(bytes.NewReader(doWith(t, []byte(in.String()), append(args, flag)...))).ReadAll()
		if err != nil || !slices.EqualFunc(got, want, slices.Equal[[]string]) {
			t.Errorf("%s: %d rows, %v, want %d", flag, len(got), err, len(want))
		}
	}
	if got := string(doWith(t, []byte(in.String()), append(args, "--mask")...)); got != mask.String() {
		t.Errorf("%d bytes of mask, want %d", len(got), mask.Len())
	}
}

// TSV, and lines and columns whose keys are numbers, which are compared by value.
func TestProbeTextForms(t *testing.T) {
	text, _ := textFilter(t, 4, func(i int) string { return fmt.Sprint("t", i) })
	ids := filepath.Join(t.TempDir(), "ids.txt")
	if err := os.WriteFile(ids, []byte("7\n18446744073709551615\n-3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	numbers := filepath.Join(t.TempDir(), "numbers.bjf")
	do(t, "build", "--key-type", "decimal(38,0)", "-o", numbers, ids)
	for _, c := range []struct{ filter, flags, in, want string }{
		{text, "--format tsv", "k\tx\nt0\t1\nt1\t2\nt2\t3\n", "k\tx\nt0\t1\nt2\t3\n"},
		{text, "--format csv --key K --ignore-case", "k\nt0\nt1\n", "k\nt0\n"},
		{text, "--format csv --invert", "k,x\n", "k,x\n"},
		{text, "--format lines", "{\nt0\n", "t0\n"},
		{text, "--format lines", "", ""},
		{text, "", "\xef\xbb\xbft0\nt1\n", "t0\n"},
		{numbers, "", "7\n8\n7.0\n18446744073709551615\n-3\n", "7\n7.0\n18446744073709551615\n-3\n"},
	} {
		args := append([]string{"probe", "--quiet", "--filter", c.filter}, strings.Fields(c.flags)...)
		if got := string(doWith(t, []byte(c.in), args...)); got != c.want {
			t.Errorf("%s: %q: %q, want %q", c.flags, c.in, got, c.want)
		}
	}
	for _, c := range []struct{ flags, in, want string }{
		{"--format csv --key nowhere", "k,x\n1,2\n", "nowhere"},
		{"--format csv", "k,x\n1\n", "line 2"},
		{"--mask --invert", "t0\n", "invert"},
	} {
		var out, said bytes.Buffer
		args := append([]string{"probe", "--quiet", "--filter", text}, strings.Fields(c.flags)...)
		if code := run(args, strings.NewReader(c.in), &out, &said); code == session.ExitDone || !strings.Contains(said.String(), c.want) {
			t.Errorf("%s: %q: exit code %d: %s", c.flags, c.in, code, &said)
		}
	}
}

// The columns of a key are taken in the key's order, whatever their order in the text.
func TestProbeColumnOrder(t *testing.T) {
	dir := t.TempDir()
	ids := filepath.Join(dir, "ids.csv")
	if err := os.WriteFile(ids, []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	works(t, "", "build", "--quiet", "--key", "b,a", "-o", filepath.Join(dir, "f.bjf"), ids)
	const in = "a,b\n1,2\n2,1\n"
	if got := works(t, in, "probe", "--quiet", "--filter", filepath.Join(dir, "f.bjf"), "--format", "csv"); got != "a,b\n1,2\n" {
		t.Errorf("%q", got)
	}
}
