package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/where"
)

// Filtered reports whether the file has a condition or a sample, so that it has fewer rows than
// are stored.
func (f *File) Filtered() bool { return f.where != nil || f.sample != nil }

// Uncounted reports whether the file may have fewer rows than are known of before they are read.
func (f *File) Uncounted() bool { return f.Filtered() || f.keys != nil }

// setWhere binds the condition of the options, if there is one, to the file's columns.
func (f *File) setWhere(opts *Opening) (err error) {
	if f.sample, f.reads = opts.sample, opts.reads; opts.Condition == nil {
		return nil
	}
	last, schema := opts.like.where.Load(), f.Schema()
	if last == nil || last.schema != schema {
		of := schema
		if p := f.Parquet(); p != nil {
			of = p.KeySchema()
		}
		last = &boundTo{schema: schema}
		if last.where, err = opts.Condition.Bind(fault.At{File: f.name}, of, opts.IgnoreCase); err != nil {
			if e := new(fault.Error); IsText(f.format) && errors.As(err, &e) {
				e.Hint = "columns of text are strings, unless {Types} gives one to the key: " + e.Hint
			}
			return err
		}
		opts.like.where.Store(last)
	}
	f.where = last.where
	return nil
}

// Sample is a share of all keys: a file has only the rows with one of them.
type Sample struct {
	Columns []keys.Column
	Options keys.Options
	Share   float64 // above 0, at most 1
}

// Sample returns the keys whose rows the file has; nil: it has the rows of all.
func (f *File) Sample() *Sample { return f.sample }

// parseSample sets what SampleKeys and SampleBy ask for.
func (o *Opening) parseSample() error {
	if o.SampleKeys == 0 {
		return nil
	}
	columns, err := keys.ParseColumns(o.SampleBy)
	if err == nil && !(o.SampleKeys > 0 && o.SampleKeys <= 1) {
		err = errors.New("want a share above 0, at most 1")
	}
	if err != nil {
		return fmt.Errorf("a sample of %v of the keys: %w", o.SampleKeys, err)
	}
	o.sample = &Sample{columns, keys.Options{Rule: o.SampleRule, IgnoreCase: o.IgnoreCase, NullMisfits: o.NullMisfits}, o.SampleKeys}
	for range columns { // so that numbers are in the sample by their values
		o.sample.Options.Classes = append(o.sample.Options.Classes, keys.AnyNumber)
	}
	return nil
}

// boundTo is a condition on the columns of a schema.
type boundTo struct {
	schema *arrow.Schema
	where  *where.Bound
}

// Reading yields what read yields of a row group, while the file is kept open. columns are
// those that it reads; nil means all.
func (f *File) Reading(ctx context.Context, group int, columns []int, read func(ctx context.Context) iter.Seq2[arrow.Record, error]) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		held, release, err := f.keepOpen(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		ended := true // the consumer has stopped, got an error or panicked
		defer func() {
			if err := release(); err != nil && !ended {
				yield(nil, err)
			}
		}()
		if err = f.checkGroup(group); err == nil {
			err = f.CheckColumns(columns)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for rec, err := range onFault(read(held)) {
			if !yield(rec, err) || err != nil {
				return
			}
		}
		ended = false
	}
}

// onFault makes memory faults in mapped pages panics while seq runs, but not while its
// consumer does: seq turns them into errors.
func onFault[T any](seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		was := debug.SetPanicOnFault(true)
		defer debug.SetPanicOnFault(was)
		for v, err := range seq {
			debug.SetPanicOnFault(was)
			more := yield(v, err)
			debug.SetPanicOnFault(true)
			if !more {
				return
			}
		}
	}
}

// Recovered turns a panic, which only damaged input or a bug can cause, into an
// error with its place.
func Recovered(f *File, group int, err *error) {
	if r := recover(); panics.IsMemoryFault(r) {
		*err = fmt.Errorf("%s: %w", fault.At{File: f.name, RowGroup: group + 1}, panics.ErrUnmapped)
	} else if r != nil {
		*err = fmt.Errorf("%s: internal error: %v\n%s", fault.At{File: f.name, RowGroup: group + 1}, r, debug.Stack())
	}
}

// StepRows is how many rows of a record are passed on at once, because a record
// batch of an Arrow file may contain the whole file.
const StepRows = 1 << 16

// ReadKeysOf is Read for columns that are used only as keys: for the given rows of a
// Parquet file (nil: all), and for all rows of other files.
func ReadKeysOf(ctx context.Context, from Table, group int, columns []int, rows []uint32) iter.Seq2[arrow.Record, error] {
	if p, ok := from.(*arrowparquet.Parquet); ok {
		return p.ReadKeys(ctx, group, columns, rows)
	}
	return from.Read(ctx, group, columns)
}

// InGroup adds the row group to an error about the keys of a record or page,
// which was made without it. Text and streams have no row groups.
func InGroup(err error, f *File, group int) error {
	var e *fault.Error
	if (errors.Is(err, keys.ErrNoUUID) || errors.Is(err, keys.ErrNoHost) || errors.Is(err, keys.ErrMisfit)) && f.GroupRows(group) >= 0 && errors.As(err, &e) {
		e.At.RowGroup = group + 1
	}
	return err
}
