// Package storage is where inputs are read from and outputs are written to.
//
// A [Source] can be read, a [Storage] can be written, too. [Local] is the file
// system of this machine, [FS] any fs.FS, [Memory] that of a process. A program that
// keeps its data elsewhere implements Source in three methods (the examples read
// a map, and over HTTP), and for outputs two more; package storagetest tests them.
//
// What names of inputs stand for is the same in all of them: an object, all data below a
// directory, or what a pattern matches, with *, ?, [a-z], [!a], {a,b} and, for any number of
// directories, **. [Marker]s are skipped unless a name spells them out. Links are followed. Files of
// Delta Lake, Hudi and Iceberg tables are refused, since not all of them are current.
//
// An [Object] says which content is meant by its Identity. Whatever is opened
// stays that content: bytes of a newer object under the same name are an error,
// [ErrChanged], not data. Whatever is written is invisible until it is whole
// ([Writer.Commit]).
//
// # Optional methods
//
// Readers, writers and storages may have more methods. They are found by type
// assertion, so a type that wraps another must forward those it wants to keep:
//
//	Reader   Mapper      the bytes can be mapped into memory
//	         Prefetcher  reads wait for a network, so bytes are fetched before they are read
//	         Rester      holds something scarce, such as a file descriptor, that it can do without between reads
//	         Checker     does not notice by itself, in each read, that the object has changed
//	Writer   Rester      the same, between the last Write and Commit
//	Source   Concurrent  requests wait for a network, so many should be under way at once
//	         Resolver    an object may have several names
//	Storage  Sweeper     crashed processes may leave objects behind
//	         DirRemover  directories exist without objects in them
//
// # Contexts
//
// The context of Open and Create holds for as long as the Reader or Writer is
// in use: reads and writes fail when it ends. Close and Abort work in any case.
package storage

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
)

// Errors that callers branch on with errors.Is, beside [fs.ErrNotExist] and
// [fs.ErrExist].
var (
	// ErrChanged means that an object is no longer the one that was listed or
	// opened. Another attempt may succeed.
	ErrChanged = cause.New(cause.Changed, "the object changed")
	// ErrAgain means that a request to the storage failed for a reason that may
	// pass, such as a network that fails. Another attempt may succeed.
	ErrAgain = cause.New(cause.Network, "try again later")
	// ErrNoFiles means that a directory holds nothing that could be data. It
	// wraps [fs.ErrNotExist].
	ErrNoFiles = cause.Mark(cause.NoInputs, fmt.Errorf("no files%w", quiet.Error{Err: fs.ErrNotExist}))
)

// Object describes an object, or a directory, as it was at one moment.
type Object struct {
	Name string // opens it
	// Rel is the path with slashes that identifies an input on every machine. The library
	// sets it: the path below the directory that the user named, or the last
	// element of the name where the user named the object itself or a pattern; of a
	// pattern with **, the path below the directory before the first wildcard.
	Rel  string
	Size int64 // bytes
	// ModTime is when the object was last written. Zero: unknown.
	ModTime time.Time
	// Identity differs between two contents that an object has had, as an ETag
	// or a generation does, and is the same in every process. Empty: any content.
	Identity string
	// Type has the type bits of a file's mode. 0: a regular object, which can be
	// opened; fs.ModeDir: a directory.
	Type fs.FileMode
	// Found is set by the library if the object was found in a directory, so that it may be
	// something other than data.
	Found bool
}

// Source holds objects that can be read. Its methods may be called from many
// goroutines at once.
type Source interface {
	// List calls yield with every object whose name begins with prefix, in ascending order
	// of names, compared byte by byte with slashes, until yield returns an error, which List
	// returns. Directories are not objects; a link is one, of Type fs.ModeSymlink. No object
	// is no error. A source that cannot list returns [errors.ErrUnsupported]: its objects
	// are named one by one.
	List(ctx context.Context, prefix string, yield func(Object) error) error
	// Stat describes one object or directory. The error wraps fs.ErrNotExist if
	// there is none of that name.
	Stat(ctx context.Context, name string) (Object, error)
	// Open opens an object that List or Stat has described. If it has
	// another identity by now, the error wraps ErrChanged. Only the Name is
	// needed; without an Identity, Open takes the object that is there.
	Open(ctx context.Context, o Object) (Reader, error)
}

// Reader reads one object whose content stays the same. ReadAt may be called
// from many goroutines at once; if the content has changed, its error wraps
// ErrChanged, or Reader is a [Checker].
type Reader interface {
	io.ReaderAt
	io.Closer
	// Object describes what was opened. Size and, if the storage knows any,
	// Identity and ModTime are set.
	Object() Object
}

// Storage holds objects that can be read and written. Its methods may be called
// from many goroutines at once.
type Storage interface {
	Source
	// Create begins an object. It is not visible under its name before Commit.
	Create(ctx context.Context, name string, o CreateOptions) (Writer, error)
	// Delete removes an object if it still has the identity, or whatever its
	// content is if o has none. The error wraps fs.ErrNotExist if it is not
	// there, and ErrChanged if it has another identity.
	Delete(ctx context.Context, o Object) error
}

// CreateOptions says how to create an object.
type CreateOptions struct {
	// Private keeps other users from reading the object, where the storage knows
	// users.
	Private bool
}

// Writer writes one object. It is used by one goroutine at a time.
type Writer interface {
	io.Writer
	// Commit makes the object durable and visible under its name. If another
	// object has that name, Commit replaces it if replace is true; otherwise it
	// leaves it alone, and the error wraps fs.ErrExist. Commit may then be called
	// again.
	Commit(replace bool) error
	// Abort drops the object. After a successful Commit it does nothing. It may
	// be called more than once.
	Abort() error
}

// Mapper is a [Reader] that can map its object into memory. Readers of [Local]
// are Mappers on Unix systems.
type Mapper interface {
	// Map returns all bytes of the object, which must not be written to, and a
	// function that releases them. The error of unmap wraps ErrChanged if the
	// object has changed since it was opened. The mapping outlives Close. If the
	// object shrinks or its disk fails, access to the bytes is a memory fault:
	// it ends the process except on goroutines that have called
	// debug.SetPanicOnFault. If Map fails, the object can still be read.
	Map() (b []byte, unmap func() error, err error)
}

// Range is a range of bytes of an object.
type Range struct{ Off, Len int64 }

// Prefetcher is a [Reader] whose reads wait for a network.
type Prefetcher interface {
	// Prefetch announces ranges that will be read, in that order, and returns
	// without waiting. They are fetched in the order of all announcements to the
	// storage, as far as its memory allows. A read within them takes what has been
	// fetched, or waits for it; other reads are requests of their own. Each byte is
	// expected to be read once. release drops what has not been read, and must be
	// called; it may be called again. Prefetch never fails: errors are those of the
	// reads.
	Prefetch(ranges []Range) (release func())
	// Gap returns how many bytes can be fetched in the time that another request
	// takes, as far as is known by now.
	Gap() int64
}

// Concurrent is a [Source] whose requests wait for a network.
type Concurrent interface {
	// Concurrency returns the number of objects like the named one that should be
	// opened at the same time.
	Concurrency(name string) int
}

// Rester is a [Reader] that can release what is scarce until the next read, or a [Writer]
// that can do so between the last Write and Commit.
type Rester interface {
	Rest() error
}

// Checker is a [Reader] whose object may change unnoticed while it is read.
type Checker interface {
	// Changed returns an error that wraps ErrChanged if the object is no longer
	// as it was opened.
	Changed() error
}

// Sweeper is a [Storage] in which a process that crashed may leave something
// behind.
type Sweeper interface {
	// Sweep removes what is left of attempts to write the named object, or
	// anything below the named directory, if their processes have certainly
	// ended.
	Sweep(ctx context.Context, name string) error
}

// DirRemover is a [Storage] that has directories without objects in them.
type DirRemover interface {
	// RemoveDir removes a directory if it is empty. Otherwise it does nothing.
	RemoveDir(ctx context.Context, name string) error
}

// Resolver is a [Source] in which an object may have several names.
type Resolver interface {
	// Resolve returns the one name that all names of an object or directory have
	// in common. It need not exist.
	Resolve(name string) string
}

// Marker reports whether a path element names something other than data: a
// marker such as _SUCCESS, a temporary file, a hidden file, or a directory of manifests
// such as out.bloomjoin.
func Marker(element string) bool {
	return glob.Marker(element)
}
