package faults

import (
	"math"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/show"
	"github.com/bloomjoin/bloomjoin/internal/wording"
)

// Corrupt returns an error of kind [fault.ErrCorrupt]. The format may name options.
func Corrupt(at fault.At, format string, args ...any) *fault.Error {
	return &fault.Error{Kind: fault.ErrCorrupt, At: at, What: Textf(format, args...)}
}

// Unsupported returns an error of kind [fault.ErrUnsupported]. The format may name
// options.
func Unsupported(at fault.At, format string, args ...any) *fault.Error {
	return &fault.Error{Kind: fault.ErrUnsupported, At: at, What: Textf(format, args...)}
}

// Mismatch returns an error of kind [fault.ErrMismatch]. Its arguments are literal:
// they name no options.
func Mismatch(at fault.At, what, want, got string) *fault.Error {
	return (&fault.Error{Kind: fault.ErrMismatch, At: at, What: fault.Text(wording.Escape(what))}).Wanted(want, got)
}

// Memory returns an error of kind [fault.ErrMemory]: what takes need bytes, but may
// take at most 1/share of the budget, also in bytes. The hint names the smallest
// budget that suffices.
func Memory(at fault.At, what string, need, budget, share int64) *fault.Error {
	const unit = 1 << 20
	share = max(share, 1)
	mib := min(need, math.MaxInt64/2/share)*share/unit + 1
	e := &fault.Error{Kind: fault.ErrMemory, At: at, What: fault.Text(wording.Escape(what)), Got: show.Size(need)}
	e.Want = Textf("at most %s, 1/%d of the budget", show.Size(budget/share), share)
	return e.WithHint("raise {Memory to %dMiB} or more", mib)
}

// Textf formats a text. The format may name options, and so may arguments of
// type [fault.Text]; braces in other arguments stand for themselves.
func Textf(format string, args ...any) fault.Text {
	return new(fault.Error).About(format, args...).What
}
