package faults_test

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/wording"
)

// shout spells options so that they stand out from the text.
func shout(o wording.Option) string { return o.As(strings.ToUpper(o.Name)) }

func TestText(t *testing.T) {
	for _, c := range []struct {
		text        fault.Text
		plain, loud string
		options     []string // name=value
	}{
		{"", "", "", nil},
		{"name a file", "name a file", "name a file", nil},
		{"raise {Memory}", "raise Memory", "raise MEMORY", []string{"Memory="}},
		{"{Kind exact}", "Kind exact", "KIND exact", []string{"Kind=exact"}},
		{"{Memory to 88MiB} or {A} more", "Memory to 88MiB or A more", "MEMORY to 88MiB or A more", []string{"Memory=88MiB", "A="}},
		{"{Expect+Room}{A}", "Expect+RoomA", "EXPECT+ROOMA", []string{"Expect+Room=", "A="}},
		{"{On a b=NAME}", "On a b=NAME", "ON a b=NAME", []string{"On=a b=NAME"}},
		{"{On a}}{{b}}}", "On a}{b}", "ON a}{b}", []string{"On=a}{b}"}},
		{"{{Memory}}", "{Memory}", "{Memory}", nil},
		{`{"id":1} {} { {a} {A:b} {A} }`, `{"id":1} {} { {a} {A:b} A }`, `{"id":1} {} { {a} {A:b} A }`, []string{"A="}},
		{"{Memory", "{Memory", "{Memory", nil},
		{"}{", "}{", "}{", nil},
		{faults.Textf("%s of %5.1f%% in %v {A %s} %q", "{Memory}", 1.25, []string{"{B}"}, "}{", "{C}"), `{Memory} of   1.2% in [{B}] A }{ "{C}"`, `{Memory} of   1.2% in [{B}] A }{ "{C}"`, []string{"A=}{"}},
		{faults.Textf("x, %s", fault.Text("{Memory} of {{}}")), "x, Memory of {}", "x, MEMORY of {}", []string{"Memory="}},
	} {
		if got := c.text.String(); got != c.plain {
			t.Errorf("%s: got %q, want %q", string(c.text), got, c.plain)
		}
		if got := faults.Word(c.text, shout); got != c.loud {
			t.Errorf("%s: got %q, want %q", string(c.text), got, c.loud)
		}
		var options []string
		faults.Word(c.text, func(o wording.Option) string {
			options = append(options, o.Name+"="+o.Value)
			return ""
		})
		if !reflect.DeepEqual(options, c.options) {
			t.Errorf("%s: got options %q, want %q", string(c.text), options, c.options)
		}
	}
}

// Textf leaves a slice of arguments as it was.
func TestTextfKeepsArguments(t *testing.T) {
	args := []any{"{a}", 1}
	for range 2 {
		if got, want := faults.Textf("%s {B %d}", args...).String(), "{a} B 1"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if args[0] != "{a}" || args[1] != 1 {
		t.Errorf("the arguments became %v", args)
	}
}

// Errors with options behave as those of package fmt do: the chain, the text.
func TestErrorf(t *testing.T) {
	plain := faults.Errorf("x: %w", fs.ErrExist)
	named := faults.Errorf("%s: %w, %w, at %d ({Force} replaces it)", "{x}", fs.ErrExist, fault.ErrMemory, 3)
	if !errors.Is(plain, fs.ErrExist) || !errors.Is(named, fs.ErrExist) || !errors.Is(named, fault.ErrMemory) || errors.Is(named, fault.ErrCorrupt) {
		t.Errorf("%v, %v: the chain is broken", plain, named)
	}
	if got, want := named.Error(), "{x}: file already exists, over the memory budget, at 3 (Force replaces it)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	const about fault.Text = "pages (raise {Memory})"
	err := faults.WithHint(faults.Errorf("%s: %w", about, named), "or use {Kind exact}")
	if got, want := err.Error(), "pages (raise Memory): "+named.Error()+" (or use Kind exact)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v: the chain is broken", err)
	}
	var names []string
	for _, o := range optionsOf(fmt.Errorf("y: %w", err)) {
		names = append(names, o.Name)
	}
	if want := []string{"Memory", "Force", "Kind"}; !reflect.DeepEqual(names, want) {
		t.Errorf("got options %q, want %q", names, want)
	}
	if optionsOf(errors.Join(fs.ErrExist, fmt.Errorf("Memory"))) != nil {
		t.Error("options where none are named")
	}
}

// A front end words options and whole errors, each once, where they are wrapped.
func TestWords(t *testing.T) {
	a, b := faults.Corrupt(fault.At{}, "a").WithHint("raise {Memory}"), faults.Unsupported(fault.At{}, "{Kind x} of b")
	words := faults.Words{Option: shout, Error: func(err error) (string, bool) { return "nothing", err == fs.ErrNotExist }}
	for want, err := range map[string]error{
		"corrupt: a (raise MEMORY)":                                       a,
		"unsupported: KIND x of b: nothing":                               &fault.Error{Kind: fault.ErrUnsupported, What: "{Kind x} of b", Err: fs.ErrNotExist},
		"x: corrupt: a (raise MEMORY); unsupported: KIND x of b; nothing": fmt.Errorf("x: %w; %w; %w", a, b, fs.ErrNotExist),
		"unsupported: KIND x of b\ncorrupt: a (raise MEMORY)":             errors.Join(b, a),
		"open x: nothing":                                                 &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist},
		"hidden":                                                          hides{a},
		"nil":                                                             joins{nil, fs.ErrPermission},
	} {
		if got := words.Text(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := (faults.Words{}).Text(err); got != err.Error() {
			t.Errorf("without words: got %q, want %q", got, err)
		}
	}
}

// joins wraps errors that may be nil, and shows none.
type joins []error

func (joins) Error() string     { return "nil" }
func (j joins) Unwrap() []error { return j }

// hides wraps an error that its text leaves out.
type hides struct{ error }

func (hides) Error() string   { return "hidden" }
func (h hides) Unwrap() error { return h.error }

// optionsOf returns the options that an error names, in the order of its text.
func optionsOf(err error) (named []wording.Option) {
	faults.Words{Option: func(o wording.Option) string {
		named = append(named, o)
		return o.String()
	}}.Text(err)
	return named
}
