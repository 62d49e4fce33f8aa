// Package enc decodes and encodes the bytes of Parquet pages: values, levels,
// dictionary indices and compressed bodies.
//
// In come bytes of a file, with the numbers and types that headers state; out come
// values in PLAIN form, levels and indices, all or those at selected positions. In the
// other direction, these become the bytes of a page.
//
// No input makes a function read or write outside its slices, or allocate more than
// the bytes present can mean; contradictions are errors of this package. Callers add
// the place. Results may share memory with their inputs. Nothing here knows columns,
// schemas or files.
//
// internal/parquet and the packages below it call enc.
package enc

import "errors"

// MaxPageSize is the largest supported page, decompressed, in bytes.
const MaxPageSize = 256 << 20

// What is wrong with the bytes of a page.
var (
	ErrShort      = errors.New("fewer values than stated")
	ErrTrailing   = errors.New("more bytes than the values take")
	ErrByteArrays = errors.New("byte arrays that run beyond their page")
	ErrBound      = errors.New("a value is too large")
	ErrExpands    = errors.New("values expand beyond the limit for a page")
	ErrEncoding   = errors.New("encoding not supported")
	ErrCodec      = errors.New("codec not supported")

	errRun   = errors.New("invalid run of the RLE/bit-packed encoding")
	errDelta = errors.New("invalid header of the delta encoding")
	errSize  = errors.New("the decompressed size is not the one stated")
)
