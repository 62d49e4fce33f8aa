package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// open opens input files by name, with the budgets of --memory.
func (c *session) open(cmd *cobra.Command, names []string, opts source.Opening) ([]*source.File, error) {
	if err := c.budgets(&opts); err != nil {
		return nil, err
	}
	return source.Open(cmd.Context(), names, opts)
}

// budgets completes the options for opening files.
func (c *session) budgets(opts *source.Opening) error {
	total, err := c.total()
	if err != nil {
		return err
	}
	opts.Store, opts.Memory, opts.InFlight = c.store(), total, c.inFlight()
	opts.Note = c.noteInput
	if c.verbose {
		opts.PassedOver = func(name, why string) { c.say("  %s: passed over: %s", name, why) }
	}
	return nil
}

// noteInput warns of what is remarkable about the names of inputs, except while a shell
// completes a command.
func (c *session) noteInput(t fault.Text) {
	if strings.HasPrefix(c.verb, cobra.ShellCompRequestCmd) {
		return
	}
	text := faults.Word(t, words.Flag)
	c.notes = append(c.notes, text)
	c.warn("%s", text)
}
