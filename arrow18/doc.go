// Package arrow18 lets programs that use arrow-go v18 call bloomjoin, whose own
// records are of arrow/go v15. [Scan] and [Join] take and yield v18 records. The
// other functions convert one record, array, schema or type each:
//
//	v18 ── Schema15, Record15, Array15, Records15 ──► v15
//	v15 ── Schema18, Record18, Array18, Records18 ──► v18
//
// No values are copied. A converted array refers to the memory of its source:
// each of its buffers holds a reference to the source's Data, which it releases
// when the last reference to the buffer is released. So source and result are
// released independently, in any order and from any goroutine. Converted buffers
// are not mutable, and neither side may write to memory that the other can see.
//
// # What crosses
//
// Schemas keep their metadata and byte order; fields keep their names,
// nullability and metadata. Arrays keep their length, offset, null count and
// dictionary. A nil value becomes nil.
//
// An extension type crosses as the extension type of the same name if that name
// is registered on the other side, and otherwise as its storage type, with its
// name and parameters in the field's metadata, where Arrow IPC keeps them too. The
// way back restores the type. What has no field (the values of a dictionary or of
// runs) cannot cross without registration, and an array without a schema loses the name.
//
// The 32-bit and 64-bit decimals do not exist in v15. They are an error that
// wraps [github.com/bloomjoin/bloomjoin/fault.ErrUnsupported]; cast them to
// decimal128. The custom metadata of an IPC message, which v18 record batches may
// carry, has no place in v15 and is dropped.
package arrow18
