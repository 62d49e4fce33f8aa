package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// Values of --log-format.
const (
	logText = "text"
	logJSON = "json"
)

// warningMark starts a warning in the text format.
const warningMark = "bloomjoin: warning: "

// given returns the value of a flag in the arguments. It is asked when the flags are not
// parsed, since that may fail, too.
func given(args []string, flag string) (value string, ok bool) {
	for i, a := range args {
		v, is := strings.CutPrefix(a, flag+"=")
		switch {
		case a == "--":
			return value, ok
		case is:
			value, ok = v, true
		case a == flag && i+1 < len(args):
			value, ok = args[i+1], true
		}
	}
	return value, ok
}

// Say prints a line on standard error, except with --quiet.
func (c *Session) Say(format string, args ...any) {
	c.log(slog.LevelInfo, "", fmt.Sprintf(format, args...))
}

// Warn prints a warning on standard error, also with --quiet.
func (c *Session) Warn(format string, args ...any) {
	c.log(slog.LevelWarn, warningMark, fmt.Sprintf(format, args...))
}

// log prints a message on standard error: as text after a mark, or as a JSON object
// with attributes. --log gets it in any case. It is safe for concurrent use.
func (c *Session) log(level slog.Level, mark, text string, attrs ...slog.Attr) {
	_ = c.record(c.journal, level, text, attrs...)
	switch width := widthOf(c.terminal, 0); {
	case level == slog.LevelInfo && c.quiet:
		return
	case c.jsonLog:
		_ = c.record(c.terminal, level, text, attrs...)
		return
	case width > 0 && mark == "" && len(attrs) == 0 && !strings.HasPrefix(text, " "):
		text = strings.TrimSuffix(words.Fold("", "", text, width), "\n")
	}
	fmt.Fprintf(c.Stderr, "%s%s\n", mark, text)
}

// record writes a message as a JSON object, in one write.
func (c *Session) record(w io.Writer, level slog.Level, text string, attrs ...slog.Attr) error {
	all := make([]slog.Attr, 0, 2+len(attrs))
	if c.verb != "" {
		all = append(all, slog.String("verb", c.verb))
	}
	if c.Shard != "" {
		all = append(all, slog.String("shard", c.Shard))
	}
	// The text is made safe before it is encoded: an escape of its own would make the
	// JSON invalid.
	r := slog.NewRecord(time.Now(), level, words.Safe(strings.TrimSpace(text)), 0)
	r.AddAttrs(append(all, attrs...)...)
	return slog.NewJSONHandler(w, nil).Handle(context.Background(), r)
}

// Failure is the error that ends the command, as machines see it.
type Failure struct {
	ExitCode int        `json:"exit_code"`
	Class    string     `json:"class"`
	Code     cause.Code `json:"code"` // of the cause, see bloomjoin help
	Message  string     `json:"message"`
	NotFound bool       `json:"not_found,omitempty"` // a name stands for no file
}

// logError prints the error that ends the command.
func (c *Session) logError(f Failure) {
	attrs := []slog.Attr{slog.Int("exit_code", f.ExitCode), slog.String("class", f.Class), slog.String("code", string(f.Code))}
	if f.NotFound {
		attrs = append(attrs, slog.Bool("not_found", true))
	}
	c.log(slog.LevelError, "bloomjoin: ", fmt.Sprintf("%s [%s]", f.Message, f.Code), attrs...)
}

// classOf returns the class of an error for machines. All but internal follow from the
// exit code.
func classOf(code int, err error) string {
	switch {
	case errors.Is(err, errInternal), errors.Is(err, panics.ErrRecovered):
		return "internal"
	case code == ExitUsage:
		return "usage"
	case code == ExitTryAgain:
		return "retryable"
	case code == ExitGate:
		return "gate"
	case code > exitSignal:
		return "interrupted"
	}
	return "data"
}

// SayWarnings prints warnings.
func (c *Session) SayWarnings(ws []joins.Warning) {
	for _, w := range ws {
		c.log(slog.LevelWarn, warningMark, w.Text, slog.String("code", w.Code))
	}
}
