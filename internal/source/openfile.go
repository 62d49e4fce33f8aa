package source

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/glob"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/options"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/text"
	"github.com/bloomjoin/bloomjoin/internal/where"
	"github.com/bloomjoin/bloomjoin/storage"
)

// OpenOptions has the fields of partition.OpenOptions, which documents them.
type OpenOptions struct {
	Store            storage.Source
	Mem              memory.Allocator
	Text             bool
	TextFormat       dataset.Format
	Encoding         string
	Delimiter        byte
	NoHeader         bool
	Nested           [][]string
	Column           string
	Types            map[string]arrow.DataType
	IgnoreCase       bool
	SkipBad          bool
	Stdin            io.Reader
	Int96Nanos       bool
	Include, Exclude []string
	PassedOver       func(name, why string)
	Uncommitted      bool
	Hive             dataset.HiveMode
	Memory           int64
	Where            string
	SampleKeys       float64
	SampleBy         string
	Base             string
	HiveTypes        string
	OtherNames       []string
}

// Opening is [OpenOptions] with what joins and the command set beside them.
type Opening struct {
	OpenOptions
	// HiveKept, if not nil, returns types that columns had before; they stay if all values fit.
	HiveKept func(context.Context) []string
	// Note, if not nil, receives what is remarkable about the names: files that several of
	// them stand for, hard links, patterns of Exclude that leave out nothing.
	Note func(fault.Text)
	// Repeated reads a file as often as names stand for it. Otherwise it is read once.
	Repeated bool
	// AllowEmpty allows directories without data, and an empty list of names.
	// Otherwise they are errors.
	AllowEmpty bool
	// InFlight bounds, approximately, the bytes of all pages, records and row
	// groups between the files and a consumer; 0 means no bound. Buffers shrink
	// first, then the number of workers. One worker always remains, even if it
	// needs more.
	InFlight int64
	// Excluded, if not nil, receives the names of files that are not opened because the values
	// of their directories exclude all rows; see Hive. If all are excluded, the first one is opened
	// for its columns.
	Excluded         func(name string)
	Digests          bool                // the fingerprints of the files will be asked for
	Reading          *atomic.Int64       // gets the time of all reads, in ns; nil: it is not measured
	TextRange        int64               // size of the row groups of text, for tests; 0: the default
	room             *parquet.PageBudget // of Memory
	like             *like               // shared with files opened later
	Left             *leftOut            // shared by all files
	Layout           *HiveLayout         // of all files
	Condition        *where.Cond         // Where; nil: none
	SampleRule       keys.Rule           // for strings of SampleBy
	NullMisfits      bool                // values that do not fit casts of SampleBy are NULL
	sample           *Sample             // SampleKeys; nil: all
	include, exclude []glob.Rule         // Include, Exclude
	others           [][]string          // OtherNames
	reads            string              // see File.Reads
}

// like is the first of the Parquet files that have had one schema in turn. Files that follow
// share its schema if it is the same, and the condition on the columns of the schema.
type like struct {
	table atomic.Pointer[arrowparquet.Parquet]
	where atomic.Pointer[boundTo]
}

func (o *Opening) Fill() (err error) {
	if err := cmp.Or(options.AtLeastZero("Memory", o.Memory, "no bound"), options.AtLeastZero("InFlight", o.InFlight, "no bound")); err != nil {
		return err
	}
	if o.Store == nil {
		o.Store = storage.Local()
	}
	if o.Mem == nil {
		o.Mem = memory.DefaultAllocator
	}
	o.room, o.like, o.Left = parquet.NewPageBudget(o.Memory), new(like), &leftOut{rels: map[string]bool{}}
	if err := cmp.Or(o.parseRules(), o.parseSample()); err != nil {
		return err
	}
	for _, s := range o.OtherNames {
		names, err := keys.ParseNames(s)
		if err != nil {
			return err
		}
		o.others = append(o.others, names)
	}
	o.reads = strings.Join(o.OtherNames, ",")
	if o.sample != nil {
		o.reads += fmt.Sprint(" sample ", o.SampleKeys, " by ", o.SampleBy)
	}
	if o.Where != "" {
		if o.Condition, err = where.Parse(o.Where); err == nil {
			o.reads += " where " + o.Condition.String()
			o.Nested = o.Condition.Nested(o.Nested)
		}
	}
	return err
}

// farRead is the least number of bytes read at once of a Parquet file that is not
// local, where each read may be a request over a network.
const (
	farRead = 4 << 20
	minRead = 256 << 10 // with a small memory budget
)

// open opens the reader of the file's format.
func (f *File) open(ctx context.Context, opts Opening) (err error) {
	constants, err := f.constants(&opts)
	if err != nil {
		return err
	}
	if err := f.openTable(opts, constants); err != nil {
		return err
	}
	return f.agree(ctx, opts)
}

// openTable opens the reader of the file's format, with further columns.
func (f *File) openTable(opts Opening, constants []arrowparquet.Constant) (err error) {
	r := counted{f.reader, f.bytes, f.reading}
	src, remote := f.reader.(storage.Prefetcher)
	switch f.format {
	case dataset.Parquet:
		r, end := f.readOnce(opts)
		defer end()
		like := opts.like.table.Load()
		p, err := arrowparquet.OpenParquet(r, f.size, f.name, arrowparquet.ParquetOptions{
			Mem: opts.Mem, Room: opts.room, Like: like, Int96Nanos: opts.Int96Nanos, Remote: remote,
			Constants: constants, IgnoreCase: opts.IgnoreCase, View: f.viewer(),
			Rename: func(names []string) ([]string, error) { return opts.rename(f.name, names) },
		})
		if err != nil {
			return err
		}
		f.table = p
		if like == nil || p.Schema() != like.Schema() { // files opened at the same time all share the first one's
			opts.like.table.CompareAndSwap(like, p)
		}
		if _, near := f.reader.(storage.Mapper); remote {
			p.File().Prefetch(src)
		} else if !near {
			p.File().ReadAtLeast(min(farRead, max(opts.room.Part(64, farRead), minRead)))
		}
		return nil
	case dataset.ArrowFile:
		f.table, err = arrowipc.OpenFile(opts.Memory, r, f.size, f.name, opts.Mem)
	case dataset.ArrowStream:
		f.table, err = arrowipc.OpenStream(f.reopen(r), f.name, opts.Mem, arrowipc.StreamOptions{Size: f.size, Memory: opts.Memory})
	default:
		if !opts.Text {
			return faults.Errorf("%s: %w (text is read as IDs only, with {Text}; rows in other formats can come as an Arrow stream on standard input: see %s)", f.name, ErrNoData, stdinGuide)
		}
		f.table, err = text.Open(f.reopen(r), f.name, f.textOptions(opts, r))
	}
	if err != nil {
		return err
	}
	return f.complete(&opts, constants)
}

// complete gives a table that is not Parquet its names, types and further columns.
func (f *File) complete(opts *Opening, constants []arrowparquet.Constant) (err error) {
	if f.table, err = opts.renamed(f.name, f.table); err != nil {
		return err
	}
	typed, _ := f.WithTypes(opts.Types, opts.IgnoreCase) // it has no condition yet
	f.table = withConstants(typed.table, opts.Mem, constants, opts.IgnoreCase)
	return nil
}

// reopen returns a function that reads the file from the start.
func (f *File) reopen(r io.ReaderAt) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		whole := io.NewSectionReader(r, 0, f.size)
		if f.Remote() {
			return &stream{SectionReader: whole, src: f.reader}, nil
		}
		return io.NopCloser(whole), nil
	}
}

// counted counts the bytes that are read and, if that is measured, the time.
type counted struct {
	io.ReaderAt
	n, ns *atomic.Int64
}

func (c counted) ReadAt(p []byte, off int64) (int, error) {
	defer timed(c.ns)()
	n, err := c.ReaderAt.ReadAt(p, off)
	c.n.Add(int64(n))
	return n, err
}

type counted64 struct {
	r     io.Reader
	n, ns *atomic.Int64
}

func (c *counted64) Read(p []byte) (int, error) {
	defer timed(c.ns)()
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// timed returns a function that adds the time since then, unless ns is nil.
func timed(ns *atomic.Int64) (end func()) {
	if ns == nil {
		return func() {}
	}
	start := time.Now()
	return func() { ns.Add(int64(time.Since(start))) }
}
