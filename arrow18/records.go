package arrow18

import (
	"iter"

	arrow18 "github.com/apache/arrow-go/v18/arrow"
	arrow15 "github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/partition"
)

// Records15 converts a sequence of v18 records. A record that it yields is valid
// until the loop body ends; retain it to keep it longer. The sequence ends after
// its first error.
func Records15(seq iter.Seq2[arrow18.RecordBatch, error]) iter.Seq2[arrow15.Record, error] {
	return func(yield func(arrow15.Record, error) bool) {
		var from *arrow18.Schema // of the record before, which is to as a schema of v15
		var to *arrow15.Schema
		for rec, err := range seq {
			var out arrow15.Record
			if err == nil && rec != nil {
				if from != rec.Schema() {
					from = rec.Schema()
					to, err = Schema15(from)
				}
				if err == nil {
					out, err = record15(rec, to)
				}
			}
			if !lend(out, err, yield) {
				return
			}
		}
	}
}

// Records18 converts a sequence of v15 records. A record that it yields is valid
// until the loop body ends; retain it to keep it longer. The sequence ends after
// its first error.
func Records18(seq iter.Seq2[arrow15.Record, error]) iter.Seq2[arrow18.RecordBatch, error] {
	return func(yield func(arrow18.RecordBatch, error) bool) {
		var from *arrow15.Schema // of the record before, which is to as a schema of v18
		var to *arrow18.Schema
		for rec, err := range seq {
			var out arrow18.RecordBatch
			if err == nil && rec != nil {
				if from != rec.Schema() {
					from = rec.Schema()
					to, err = Schema18(from)
				}
				if err == nil {
					out, err = record18(rec, to)
				}
			}
			if !lend(out, err, yield) {
				return
			}
		}
	}
}

// Rows18 converts the rows that [partition.Scanner.Scan] and [join.Join.Run] yield, and
// releases them. A record that it yields is valid until
// the loop body ends; retain it to keep it longer. The sequence ends after its
// first error.
func Rows18(seq iter.Seq2[partition.Rows, error]) iter.Seq2[arrow18.RecordBatch, error] {
	return Records18(func(yield func(arrow15.Record, error) bool) {
		for rows, err := range seq {
			if !lend(rows.Record, err, yield) {
				return
			}
		}
	})
}

// lend yields a record or an error, and releases the record when yield has
// returned or panicked. It reports whether the sequence goes on.
func lend[R interface {
	comparable
	Release()
}](rec R, err error, yield func(R, error) bool) bool {
	var none R
	if rec != none {
		defer rec.Release()
	}
	if err != nil {
		yield(none, err)
		return false
	}
	return yield(rec, nil)
}
