package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/dedups"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// tables copies Parquet and Arrow files: keys and times are read first, then the rows that stay.
func (r *dedupRun) tables(cmd *cobra.Command, args []string) (err error) {
	ctx, o := cmd.Context(), r.o
	if len(args) == 0 || o.out == "" {
		return flags.Required("-o OUT is required: a file, a directory/, or - for standard output")
	}
	r.layout = &o.layout
	r.keep = keyscan.Options{ScanOptions: keyscan.ScanOptions{IgnoreCase: o.keys.IgnoreCase, Threads: r.Threads}}
	if r.out, err = r.outputOf(ctx, o.out, ""); err != nil {
		return err
	}
	if kind := r.out.Kind(); source.IsText(kind) {
		return flags.Usagef("-o %s: its name says %s, and rows of Parquet and Arrow files are written as Parquet or Arrow: name the file .parquet or .arrow", o.out, flags.FormatNames[kind])
	}
	if o.state != "" && r.out.IsDir(ctx) {
		return flags.Usagef("--state %s: a directory cannot be committed with it: name a file, as -o unique.parquet", o.state)
	}
	if err := o.layout.Check(&r.keep, &r.out); err != nil {
		return err
	}
	if o.state != "" {
		if err := r.Spare(o.out, o.state); err != nil {
			return err
		}
	}
	var open source.Opening
	if err := r.logFrom(ctx, &open, &o.inputs, args, r.shard, r.out); err != nil {
		return err
	}
	if err := r.settings(ctx); err != nil {
		return err
	}
	if err := r.openLog(cmd, &o.inputs, args, open, nil, false); err != nil {
		return err
	}
	if r.window.Expect == 0 {
		for _, f := range r.files {
			r.window.Expect += uint64(max(f.Rows(), 0))
		}
		r.window.Expect = max(r.window.Expect, 1)
		if err := r.plan(); err != nil {
			return err
		}
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	for _, f := range r.files {
		enc, err := r.of.NewEncoder(f.Name(), f.Schema())
		if err == nil {
			err = r.agree(enc, f.Name())
		}
		if err != nil {
			return err
		}
	}
	before := "" // what the output continues
	if r.state != nil {
		before = r.state.Digest()
		if done, err := r.leaveDone(ctx); done || err != nil {
			return err
		}
	}
	r.out.Run = &output.Run{
		Options: append([]string{"dedup", r.options(), before}, r.out.Layout(ctx, nil, &r.keep.ScanOptions, o.layout.MissingKey, false)...),
		Log:     r.all, Whole: true, Uses: output.Uses(&r.keep.ScanOptions, new(source.OpenOptions), nil, r.all),
	}
	return r.copyTables(ctx)
}

// leaveDone leaves only the files that the state does not have. It reports whether none is left.
func (r *dedupRun) leaveDone(ctx context.Context) (bool, error) {
	r.all = nil
	for _, f := range r.files {
		d, err := tableDone(f)
		if err != nil {
			return false, err
		}
		before := r.state.Find(d.Name)
		if before == nil {
			r.all = append(r.all, f)
			continue
		}
		if before.Whole != d.Whole {
			e := faults.Of(cause.State, faults.Mismatch(fault.At{File: f.Name()}, "checksum of an input that is done", before.Whole, d.Whole))
			return false, e.WithHint("inputs may be added, not change: give it another name")
		}
		if err := f.Close(); err != nil {
			return false, err
		}
	}
	if r.files = r.all; len(r.files) > 0 {
		return false, nil
	}
	r.done = true
	why := fmt.Errorf("all inputs are done, according to %s", r.o.state)
	if _, err := r.Store().Stat(ctx, r.o.out); err != nil {
		return false, fmt.Errorf("%w (%w: name new ones, or another state)", err, why)
	}
	return true, r.AlreadyDone(ctx, r.verb, r.o.out, r.start, why, output.Earlier{})
}

// tableDone returns what a state has of a table. Two names are two tables, because the
// fingerprints of large ones compare their footers alone.
func tableDone(f *source.File) (d dedups.Done, err error) {
	if d.Name = f.Name(); !address.IsURL(d.Name) {
		if d.Name, err = filepath.Abs(d.Name); err != nil {
			return d, err
		}
	}
	sum, err := f.Fingerprint()
	d.Whole = hex.EncodeToString(sum)
	return d, err
}

// copyTables decides about the rows of the files, and writes those that stay.
func (r *dedupRun) copyTables(ctx context.Context) error {
	all := source.Split(r.files, r.shard)
	finished, err := r.finished(ctx)
	if err != nil || finished && r.state == nil {
		r.done = true
		return err
	}
	rows := int64(0)
	for _, p := range all {
		rows += max(p.File.Rows(), 0)
	}
	add, end := r.Progress("reading keys", all)
	r.end = end
	read := func(each func(source.Piece, *dedups.Rows) error) error {
		return dedups.Read(ctx, all, r.of, r.Threads, func(p source.Piece, rows *dedups.Rows) error {
			if add != nil {
				add(int64(rows.Len))
			}
			return each(p, rows)
		})
	}
	sel, err := r.selection(rows, read)
	end()
	if err != nil {
		return err
	}
	if !finished {
		r.keep.Rows, r.keep.Progress = sel.Rows, r.showProgress("copying")
		if err := r.copy(ctx); err != nil {
			return err
		}
	}
	if r.state == nil || r.judge.Missed(r.o.fpr) {
		return nil
	}
	for _, f := range r.files {
		d, err := tableDone(f)
		if err != nil {
			return err
		}
		r.state.Inputs = append(r.state.Inputs, d)
	}
	return r.state.Commit(ctx, r.judge.Ring)
}

// finished is finishedBefore. With a state, whose commit may be missing, it reports nothing.
func (r *dedupRun) finished(ctx context.Context) (bool, error) {
	if r.state == nil {
		return r.finishedBefore(ctx)
	}
	err := r.begun(ctx)
	if errors.Is(err, output.ErrDone) {
		return true, nil
	}
	return false, err
}

// copy writes the rows that stay.
func (r *dedupRun) copy(ctx context.Context) error {
	s, err := keyscan.New(r.keep, r.files...)
	if err != nil {
		return err
	}
	w, err := r.out.WriteScan(ctx, s, r.pieces(), r.all, nil)
	if errors.Is(err, output.ErrDone) { // another attempt was faster, with the same rows
		return nil
	}
	if err == nil {
		r.SayNotes(r.out.Name, w)
	}
	return err
}

// reading reads the input from its start.
type reading func(each func(source.Piece, *dedups.Rows) error) error

// selection decides about all rows of an input that can be read again.
func (r *dedupRun) selection(rows int64, read reading) (*dedups.Selection, error) {
	sel, drop := dedups.NewSelection(rows), []int(nil)
	err := read(func(p source.Piece, rows *dedups.Rows) (err error) {
		if r.exact != nil {
			drop, err = r.exact.Drop(rows, drop[:0])
		} else {
			drop, err = r.judge.Drop(rows, drop[:0])
		}
		if err == nil {
			sel.Drop(sel.Next(p, rows.Len), drop...)
		}
		return err
	})
	if err == nil && r.exact != nil {
		err = r.exact.End(func(row int64) { sel.Drop(row, 0) })
	}
	return sel, err
}
