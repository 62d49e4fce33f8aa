package text

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// headBytes is the number of bytes at the start of an input that are inspected to
// recognise its format.
const headBytes = 4 << 10

// head is the start of an input, kept to explain errors.
type head struct {
	first, second string // the first two non-empty lines; the last may be cut short
}

// headOf reads until it has two lines, headBytes, or the whole input.
func (l *lines) headOf() head {
	for len(l.rest()) < headBytes && l.err == nil && bytes.Count(bytes.TrimLeft(l.rest(), "\r\n"), []byte("\n")) < 2 {
		l.fill()
	}
	text := l.rest()
	var found []string
	for line := range bytes.Lines(text[:min(len(text), headBytes)]) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 && len(found) < 2 {
			found = append(found, string(line))
		}
	}
	found = append(found, "", "")
	return head{found[0], found[1]}
}

// check returns an error if an input that is read as one ID per line is certainly
// something else: JSON objects or arrays, or a header that contains the name of the
// key column.
func (h head) check(at fault.At, column string) error {
	at.Line = 1
	what, hint := h.json()
	if what == "" {
		form, ok := formOf(h.first, func(fields []string) bool { return slices.Contains(fields, column) })
		if !ok && (h.first != column || h.second == "") {
			return nil
		}
		what, hint = form.header()
	}
	hint += "; if it is an ID, {TextFormat lines}"
	return faults.Of(cause.LooksLike, &fault.Error{Kind: fault.ErrMismatch, At: at, What: what, Want: "one ID a line", Hint: hint})
}

// json returns a message and a hint if the input starts with JSON.
func (h head) json() (what, hint fault.Text) {
	line := strings.TrimSpace(h.first)
	switch {
	case strings.HasPrefix(line, "{") && json.Valid([]byte(line)):
		return "it looks like NDJSON", "{TextFormat ndjson}"
	case line == "{":
		return "it looks like a JSON object over several lines", "write one object a line, as jq -c . does, and read it with {TextFormat ndjson}"
	case line == "[", strings.HasPrefix(line, "[") && json.Valid([]byte(line)), strings.HasPrefix(line, `[{"`), strings.HasPrefix(line, `["`),
		strings.HasPrefix(line, "[") && len(h.first) > headBytes/2 && strings.Contains(line, ","): // a long array, cut short
		return "it looks like a JSON array", "write one value a line: jq -r '.[]' for plain values; jq -c '.[]' for objects, and {TextFormat ndjson}"
	}
	return "", ""
}

// form is how fields of a line may be separated.
type form struct {
	by, name string
	option   fault.Text // that reads it
}

var forms = []form{{"\t", "TSV", "{TextFormat tsv}"}, {",", "CSV", "{TextFormat csv}"}, {";", "CSV", "{Delimiter ';'}"}, {"|", "CSV", "{Delimiter '|'}"}}

// formOf returns the form in which a line has several fields that satisfy is, else the form of CSV.
func formOf(line string, is func(fields []string) bool) (f form, ok bool) {
	for _, f := range forms {
		if strings.Contains(line, f.by) && is(fieldsOf(line, f.by)) {
			return f, true
		}
	}
	return forms[1], false
}

// header returns a message and a hint about a line of names.
func (f form) header() (what, hint fault.Text) {
	return fault.Text("it looks like a " + f.name + " header"), f.option
}

// fieldsOf splits a line and removes the quotes of its fields.
func fieldsOf(line, by string) []string {
	fields := strings.Split(line, by)
	for i, f := range fields {
		fields[i] = strings.Trim(strings.TrimSpace(f), `"`)
	}
	return fields
}

// explain returns what an input probably is if its first line does not parse.
// parses reports whether a text is a valid ID.
func (h head) explain(parses func(string) bool) (what, hint fault.Text) {
	if what, hint = h.json(); what != "" {
		return what, hint
	}
	f, ok := formOf(h.first, func([]string) bool { return true })
	switch {
	case !ok && h.second != "" && parses(h.second):
		return f.header()
	case !ok:
		return "", ""
	case !slices.ContainsFunc(fieldsOf(h.first, f.by), func(s string) bool { return !parses(s) }):
		return "it looks like a list on one line, or a CSV header", "put one ID on each line, as tr '" + fault.Text(strings.ReplaceAll(f.by, "\t", `\t`)) + "' '\\n' does; if the first line has names, " + f.option
	}
	what, hint = f.header()
	return what, hint + "; {NoHeader} if it has none"
}

// unmarked returns the encoding if text is UTF-16 without a byte order mark, that is,
// if most characters at its start have NUL as the same one of their two bytes.
func unmarked(text []byte) string {
	text = text[:min(len(text), 64)&^1]
	if len(text) < 4 {
		return ""
	}
	var nul [2]int
	for i, c := range text {
		if c == 0 {
			nul[i%2]++
		}
	}
	switch half := len(text) / 2; {
	case nul[1] > half/2 && nul[0] == 0:
		return "UTF-16LE"
	case nul[0] > half/2 && nul[1] == 0:
		return "UTF-16BE"
	}
	return ""
}

// StartsJSON reports whether the first bytes of an input, which may be compressed, begin an
// object of JSON, or nothing yet.
func StartsJSON(head []byte) bool {
	text := bytes.TrimPrefix(plain(head), []byte("\xEF\xBB\xBF"))
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) == 0 || text[0] == '{'
}

// plain decompresses the first bytes of an input as far as they go.
func plain(head []byte) []byte {
	var r io.Reader
	switch compressionOf(head[:min(4, len(head))]) {
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(head))
		if err != nil {
			return nil
		}
		r = z
	case "zstd":
		z, err := zstd.NewReader(bytes.NewReader(head), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil
		}
		defer z.Close()
		r = z
	default:
		return head
	}
	text := make([]byte, headBytes)
	n, _ := io.ReadFull(r, text) // the input goes on
	return text[:n]
}
