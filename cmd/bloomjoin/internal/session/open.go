package session

import (
	"fmt"
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
	files, err := source.Open(cmd.Context(), names, opts)
	if err == nil {
		c.SayTables(source.TablesOf(files))
	}
	return files, err
}

// SayTables prints what is read of tables, and keeps it for the report.
func (c *Session) SayTables(tables []source.TableRead) {
	c.tables = append(c.tables, tables...)
	for _, t := range tables {
		text := fmt.Sprintf("table %s: version %s", t.Location, t.Version)
		if t.Files > 0 {
			text += ", " + words.Things(t.Files, "file")
		}
		var gone []string
		if t.RowsDeleted > 0 {
			gone = append(gone, words.Things(t.RowsDeleted, "deleted row"))
		}
		if t.KeysDeleted > 0 {
			gone = append(gone, "rows of "+words.Things(t.KeysDeleted, "deleted key"))
		}
		if gone != nil {
			text += ", without " + strings.Join(gone, " and ")
		}
		if t.Excluded > 0 {
			text += fmt.Sprintf("; the condition leaves out %s", words.Things(t.Excluded, "other"))
		}
		c.Say("%s", text)
	}
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
