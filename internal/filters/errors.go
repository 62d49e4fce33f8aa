package filters

import (
	"errors"
	"fmt"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Sentinels, for errors.Is.
var (
	// ErrVersion: the file needs a newer reader. It wraps
	// fault.ErrUnsupported.
	ErrVersion = fmt.Errorf("%w filter file", fault.ErrUnsupported)
	// ErrLimit: the payload would take more memory than the caller allows.
	ErrLimit = cause.New(cause.Memory, "over the memory limit")
	// ErrInvalid: the filter breaks a rule of the format and cannot be written. It
	// is a mistake of the calling program.
	ErrInvalid = errors.New("invalid filter")
)

// errOther means that a file is of another kind.
var errOther = cause.Mark(cause.NotFilter, fault.ErrCorrupt)

// Hints for errors about a file.
const (
	hintDamaged = "the file is damaged: copy it again, or build it again"
	hintNewer   = "it was written by a newer version of bloomjoin: use that version"
)

// problem is a broken rule. inFile makes it an error of a file, inProgram an error of
// the caller.
type problem struct {
	what, want fault.Text
	got        string
	kind       error // nil: fault.ErrCorrupt or ErrInvalid, depending on who broke it
	hint       fault.Text
	err        error
}

// bad returns a problem. want and got may be empty.
func bad(what string, want, got any) *problem {
	return &problem{what: faults.Textf("%s", what), want: faults.Textf("%s", fmt.Sprint(want)), got: fmt.Sprint(got)}
}

// errNil returns the error of a call with a nil filter.
func errNil() error { return (&problem{what: "the filter is nil"}).inProgram() }

// errNoPayload returns the error of a call that needs a payload.
func errNoPayload() error {
	p := bad("payload", "a Bloom filter or an exact set", "none")
	p.hint = "load or build the filter"
	return p.inProgram()
}

// in adds the name of a section to the problem.
func (p *problem) in(section string) *problem {
	p.what = faults.Textf("section %s: %s", section, p.what)
	return p
}

// newer marks the problem as one that a newer reader would not have.
func (p *problem) newer() *problem {
	p.kind, p.hint = ErrVersion, hintNewer
	return p
}

// from returns the problem in another package's error.
func from(err error) *problem {
	var e *fault.Error
	if !errors.As(err, &e) {
		return &problem{what: "payload", err: err}
	}
	p := &problem{what: e.What, want: e.Want, got: e.Got, hint: e.Hint, err: e.Err}
	if errors.Is(e.Kind, fault.ErrUnsupported) {
		p.newer()
	}
	return p
}

// inFile returns the error for a problem in a file's bytes.
func (p *problem) inFile(name string) *fault.Error {
	e := p.render(fault.ErrCorrupt)
	e.At.File = name
	if e.Hint == "" {
		e.Hint = hintDamaged
	}
	return e
}

// inProgram returns the error for a problem in a Filter to be written.
func (p *problem) inProgram() *fault.Error {
	e := p.render(ErrInvalid)
	if errors.Is(e.Kind, ErrVersion) {
		e.Kind, e.Hint = ErrInvalid, ""
	}
	return e
}

func (p *problem) render(kind error) *fault.Error {
	if p.kind != nil {
		kind = p.kind
	}
	return &fault.Error{Kind: kind, What: p.what, Want: p.want, Got: p.got, Hint: p.hint, Err: p.err}
}
