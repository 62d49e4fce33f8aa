package session

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Open opens input files by name, with the budgets of --memory.
func (c *Session) Open(cmd *cobra.Command, names []string, opts source.Opening) ([]*source.File, error) {
	if err := c.Budgets(&opts); err != nil {
		return nil, err
	}
	return source.Open(cmd.Context(), names, opts)
}

// Budgets completes the options for opening files.
func (c *Session) Budgets(opts *source.Opening) error {
	total, err := c.Total()
	if err != nil {
		return err
	}
	opts.Store, opts.Memory, opts.InFlight = c.Store(), total, c.inFlight()
	opts.Note = c.noteInput
	if c.measured() {
		opts.Reading = &c.reading
	}
	if c.Verbose {
		opts.PassedOver = func(name, why string) { c.Say("  %s: passed over: %s", name, why) }
	}
	return nil
}

// noteInput warns of what is remarkable about the names of inputs, except while a shell
// completes a command.
func (c *Session) noteInput(t fault.Text) {
	if strings.HasPrefix(c.verb, cobra.ShellCompRequestCmd) {
		return
	}
	text := faults.Word(t, words.Flag)
	c.notes = append(c.notes, text)
	c.Warn("%s", text)
}
