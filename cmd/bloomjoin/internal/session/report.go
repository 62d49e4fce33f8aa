package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage/cloud"
)

// Report ends a run. It prints a report as one line of JSON, with --json only: on standard output,
// or on standard error if the data goes to standard output. Of inputs were read the bytes that the
// report's method Read returns.
func (c *Session) Report(v any, output string) error {
	c.sayStorage()
	var read int64
	if r, ok := v.(interface{ Read() int64 }); ok {
		read = r.Read()
	}
	c.sayUsage(read)
	if c.final == nil {
		c.final = v
	}
	if !c.JSON {
		return nil
	}
	c.reported = true
	w := c.Stdout
	if output == "-" {
		w = c.Stderr
	}
	b, err := json.Marshal(v)
	if err == nil && bytes.Contains(b, []byte("://")) {
		b, err = redacted(v)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", b)
	return err
}

// reportFailure prints the report of a run that has failed, unless one was printed. While it is
// not known where data goes, standard error takes it.
func (c *Session) reportFailure(start time.Time, f Failure) {
	if c.reported {
		return
	}
	f.Message = words.Safe(f.Message)
	_ = c.Report(struct {
		Head
		Error Failure `json:"error"`
	}{c.NewHead(c.verb, start), f}, cmp.Or(c.dataTo, "-")) // nothing can be done about an error
}

// redacted returns v as JSON in which no URL has credentials.
func redacted(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the parameters of a query are separated by &
	err := e.Encode(v)
	return []byte(address.Redact(strings.TrimSuffix(b.String(), "\n"))), err
}

// Head is the start of every report.
type Head struct {
	Verb          string  `json:"verb"`
	SchemaVersion int     `json:"schema_version"` // of the report; a version may get more fields
	Seconds       float64 `json:"seconds"`
	Shard         string  `json:"shard,omitempty"` // of this worker, as "3/16"
	AlreadyDone   bool    `json:"already_done,omitempty"`
	Message       string  `json:"message,omitempty"` // with AlreadyDone, what is printed

	Notes []string `json:"notes,omitempty"` // as printed, about inputs and options

	Tables []source.TableRead `json:"tables,omitempty"` // of logs and IDs

	Storage *cloud.Stats `json:"storage,omitempty"` // requests to object stores and web servers
	Usage   *Usage       `json:"usage,omitempty"`
}

// NewHead returns the head of a report, with what is known so far.
func (c *Session) NewHead(verb string, start time.Time) Head {
	h := c.headNow(verb, start)
	h.Notes, h.Tables = c.notes, c.tables
	return h
}

// headNow is NewHead without the notes, for any goroutine.
func (c *Session) headNow(verb string, start time.Time) Head {
	return Head{Verb: verb, SchemaVersion: 1, Seconds: time.Since(start).Seconds(), Shard: c.Shard, Storage: c.storageFacts(), Usage: c.usage()}
}

// AlreadyDone reports that there is nothing left to do; why wraps partition.ErrDone. It removes
// temporary files, which a process that was killed after publishing the output may have
// left. figures are those that are known of the earlier run.
func (c *Session) AlreadyDone(ctx context.Context, verb, name string, start time.Time, why error, figures output.Earlier) error {
	if err := objects.Sweep(ctx, c.Store(), name); err != nil {
		return err
	}
	h := c.NewHead(verb, start)
	h.AlreadyDone, h.Message = true, words.Error(why)
	if n := figures.RowsOut; n != nil {
		h.Message += " (" + words.Things(*n, "row") + ")"
	}
	c.Say("%s: %s", name, h.Message)
	return c.Report(struct {
		Head
		output.Earlier
	}{h, figures}, name)
}

// SayNotes prints warnings about the files of an output directory.
func (c *Session) SayNotes(output string, w dataset.Written) {
	for _, n := range w.Notes {
		c.Warn("%s: %s", output, n)
	}
}

// ReadPath is a file and the way in which it was read, for --json.
type ReadPath struct {
	File   string `json:"file"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// ReadPaths returns how the files of pieces were read, as of tells.
func ReadPaths(pieces []source.Piece, of func(*source.File) (path, why string)) []ReadPath {
	out := []ReadPath{}
	for _, p := range pieces {
		path, why := of(p.File)
		out = append(out, ReadPath{publish.EscapeName(p.File.Name()), path, why})
	}
	return out
}

// BytesRead returns the number of bytes read from files.
func BytesRead(files []*source.File) int64 {
	var n int64
	for _, f := range files {
		n += f.BytesRead()
	}
	return n
}
