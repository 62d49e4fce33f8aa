package builds

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/progress"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/show"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Known good keys are looked up in the finished bits. The hashes that pass are suspects:
// false positives, or hashes of the set. The IDs are read again, and suspects that are no
// ID's hash become the filter's exceptions. Everything is compared by hash, so no key of the
// set can have the hash of an exception.
//
// A partial filter cannot know the false positives of the whole. It keeps the hashes that
// known keys share with its own keys; all partial filters together know what a second
// reading of all IDs would find. The merge looks the known keys up in the whole.

// Known are good keys that a filter must not pass.
type Known struct {
	pieces   []source.Piece
	read     keyscan.ReadOptions
	digest   [32]byte // zero: an input has no identity
	progress func(rows int64)
}

// KnownFigures are the result for known keys.
type KnownFigures struct {
	Keys       uint64 // that were read, duplicates counted; 0: an exact filter needs none
	InSet      uint64 // hashes of known keys that keys of the set have, too: they pass the filter
	Exceptions uint64 // hashes that would pass otherwise
}

// NewKnown returns the known keys in the files, which must stay open. key names their key
// columns, as for IDs; their classes are o.Classes.
func NewKnown(files []*source.File, key string, o keys.Options, threads int) (*Known, error) {
	columns, err := keys.ParseColumns(key)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no files of known keys: want one or more%w", quiet.Error{Err: storage.ErrNoFiles})
	}
	if err := source.CheckFiles("known keys", files); err != nil {
		return nil, err
	}
	for _, f := range files {
		if _, err := keyscan.NewEncoder(f.Name(), f.Schema(), columns, o, true); err != nil {
			return nil, err
		}
	}
	k := &Known{pieces: source.Split(files, dataset.Shard{}), read: keyscan.ReadOptions{Key: key, Options: o, Threads: threads}}
	sum, ok, err := (&output.Run{Log: files}).Digest()
	if ok {
		k.digest = sum
	}
	return k, err
}

// KnownOf returns the known keys in the files for a merge of partial filters like f; the
// files have f's key columns. Values of another class are cast. Values that do not fit
// count as NULL: without null casts, the builds would have failed.
func KnownOf(f *filters.Filter, files []*source.File, threads int) (*Known, error) {
	o, err := f.KeyOptions()
	if err != nil {
		return nil, err
	}
	columns, err := keys.ParseColumns(strings.Join(f.KeyNames(), ","))
	if err == nil && len(files) > 0 {
		var enc *keys.Encoder
		if enc, err = keys.NewEncoder(files[0].Schema(), columns, keys.Options{Rule: o.Rule}); err == nil {
			for i, class := range enc.Classes() {
				if want := o.Classes[i]; class != want && !(class.Numeric() && want.Numeric()) {
					columns[i].Cast = keys.TypeOf(want)
				}
			}
		}
	}
	if err != nil {
		return nil, err
	}
	o.NullMisfits = true
	return NewKnown(files, keys.ColumnsString(columns), o, threads)
}

// SetProgress makes the call that reads the known keys call fn with the number of rows of
// each batch, concurrently; nil: no calls.
func (k *Known) SetProgress(fn func(rows int64)) { k.progress = fn }

// SetKnown makes Build store, as exceptions, which keys in the files pass the filter by
// mistake. The build ID changes.
func (p *Plan) SetKnown(files []*source.File) error {
	if i := slices.IndexFunc(p.files, (*source.File).Once); i >= 0 {
		return cause.Mark(cause.NotData, faults.Errorf("%s: {Known} reads the IDs twice: want files, got a stream (write it to a file first)", p.files[i].Name()))
	}
	if p.Spec.Want == filters.KindCounting { // a key that is added later may be an exception
		return faults.Unsupported(fault.At{}, "known keys of a counting filter").
			WithHint("leave {Known} out, or build the filter of another kind")
	}
	o := p.opts.keys(p.Spec.Rule)
	o.Classes = keys.ClassesOf(p.Spec.Classes)
	k, err := NewKnown(files, p.opts.Key, o, p.opts.Threads)
	if err != nil {
		return err
	}
	if k.digest == [32]byte{} && !sealing(p.opts.Shard) {
		return faults.Errorf("%s: {Known}: all shards must have the same known keys: want files, got a stream (write it to a file first)", nameless(files))
	}
	p.Known = k
	if p.BuildID != [32]byte{} {
		p.BuildID = k.id(p.BuildID)
	}
	return nil
}

// id returns the build ID of a build against the known keys; zero if they have no identity.
func (k *Known) id(build [32]byte) (id [32]byte) {
	if k.digest == [32]byte{} {
		return id
	}
	h := sha256.New()
	h.Write(build[:])
	h.Write([]byte("against"))
	h.Write(k.digest[:])
	h.Sum(id[:0])
	return id
}

// except gives a filter of the plan's keys its exceptions.
func (p *Plan) except(ctx context.Context, f *filters.Filter) (KnownFigures, error) {
	if f.Sealed() && f.Exact() != nil {
		return KnownFigures{}, nil
	}
	most := p.memory(p.Spec)
	s, err := p.Known.ask(ctx, f, room(most, f.Bytes()))
	if err != nil {
		return KnownFigures{}, err
	}
	hash := f.Facts().Params.Hash
	err = p.each(ctx, p.opts.threads(), func() (func(*keys.Batch) error, error) {
		var hashes []uint64
		return func(b *keys.Batch) error {
			hashes = b.Hash(hash, hashes)
			for _, h := range hashes {
				s.mark(h)
			}
			return nil
		}, nil
	})
	if err = errors.Join(err, source.Unchanged(p.pieces)); err != nil {
		return KnownFigures{}, err
	}
	return p.Known.settle(f, s)
}

// room returns the bytes for suspects beside a filter.
func room(most, filter uint64) uint64 {
	const least = 16 << 20
	if most == 0 {
		most = filters.DefaultMaxBytes
	}
	return max(most-min(most, filter), least)
}

// ask returns the hashes of known keys that pass the filter's bits, or are in its set.
func (k *Known) ask(ctx context.Context, f *filters.Filter, room uint64) (*suspects, error) {
	s := &suspects{most: int(room / suspectBytes)}
	hash, bits, set := f.Facts().Params.Hash, f.Bloom(), f.Exact()
	rows, nulls, err := keyscan.Read(progress.With(ctx, k.progress), k.pieces, k.read, func() (func(*keyscan.Keys) error, error) {
		var hashes, found []uint64
		var of, hits []uint32
		return func(x *keyscan.Keys) error {
			asked, positions := x.Batch.Asked(hash, k.read.Rule, hashes, of)
			if hashes = asked; positions != nil {
				of = positions
			}
			if set != nil { // a hash has no sign, so that a number of the other sign counts
				values, _ := x.Batch.Ints()
				hits = set.Probe(values, true, set.Probe(values, false, hits[:0]))
			} else {
				hits = bits.Probe(asked, hits[:0])
			}
			found = found[:0]
			for _, i := range hits {
				found = append(found, asked[i])
			}
			return s.add(found)
		}, nil
	})
	if err = errors.Join(err, source.Unchanged(k.pieces)); err != nil {
		return nil, err
	}
	s.known = uint64(rows - nulls)
	s.index()
	return s, nil
}

// settle stores suspects in the filter: in a sealed one the hashes that no key of the set
// has, in a partial one the others.
func (k *Known) settle(f *filters.Filter, s *suspects) (KnownFigures, error) {
	fig := KnownFigures{Keys: s.known}
	var kept []uint64
	for i, h := range s.hashes {
		in := s.found[i].Load()
		if in {
			fig.InSet++
		}
		if in != f.Sealed() {
			kept = append(kept, h)
		}
	}
	e := &filters.Exceptions{Hashes: exact.New(), Known: s.known, Digest: k.digest}
	e.Hashes.Add(kept, false)
	if f.Sealed() {
		fig.Exceptions = uint64(len(kept))
	}
	if n := e.Hashes.WireBytes(); n > filters.MaxExceptions {
		what := faults.Errorf("the filter would pass %d known keys by mistake, which take %s, more than a file has room for: %s (lower {FPR})", len(kept), show.Size(int64(n)), show.Size(filters.MaxExceptions))
		if !f.Sealed() {
			what = faults.Errorf("%d known keys are IDs, more than a partial filter has room for (leave them out of the known keys)", len(kept))
		}
		return fig, what
	}
	if s.known > 0 || !f.Sealed() {
		f.Facts().Exceptions = e
	}
	return fig, nil
}

// suspects are hashes of known keys that pass.
type suspects struct {
	mu     sync.Mutex
	most   int
	sorted int // hashes when they were last sorted

	hashes []uint64 // ascending, once index was called
	starts []uint32 // by upper bits: where their hashes begin
	shift  uint
	found  []atomic.Bool // by hash: a key of the set has it
	known  uint64        // known keys that were read
}

// suspectBytes is the memory for a suspect: hashes, with what append reserves, starts, found.
const suspectBytes = 2*8 + 4 + 4

// add adds hashes. It may be called concurrently.
func (s *suspects) add(hashes []uint64) error {
	if len(hashes) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hashes = append(s.hashes, hashes...)
	if len(s.hashes) > s.most || len(s.hashes) > 2*max(s.sorted, 1<<16) {
		s.sort()
		s.sorted = len(s.hashes)
	}
	if len(s.hashes) > s.most {
		return faults.Errorf("%w of %s: more than %d known keys pass the filter (lower {FPR}, raise {Memory}, or leave IDs out of the known keys)", fault.ErrMemory, show.Size(int64(s.most)*suspectBytes), s.most)
	}
	return nil
}

// sort sorts the hashes, of which each stays once.
func (s *suspects) sort() {
	slices.Sort(s.hashes)
	s.hashes = slices.Compact(s.hashes)
}

// index prepares mark.
func (s *suspects) index() {
	s.sort()
	width := bits.Len(uint(len(s.hashes)))
	s.shift = uint(64 - width)
	s.starts = make([]uint32, 1<<width+1)
	s.found = make([]atomic.Bool, len(s.hashes))
	for _, h := range s.hashes {
		s.starts[h>>s.shift+1]++
	}
	for i := range s.starts[1:] {
		s.starts[i+1] += s.starts[i]
	}
}

// mark records that a key of the set has the hash. It may be called concurrently.
func (s *suspects) mark(h uint64) {
	if len(s.hashes) == 0 {
		return
	}
	at := h >> s.shift
	for i := s.starts[at]; i < s.starts[at+1]; i++ {
		if s.hashes[i] == h {
			if !s.found[i].Load() {
				s.found[i].Store(true)
			}
			return
		}
	}
}

// MergeAgainst is MergeFiles into the sealed filter, for partial filters that were built
// against known keys. known gets the header of one of them and returns these keys.
func MergeAgainst(ctx context.Context, store storage.Source, names []string, lim filters.Limits, known func(*filters.Filter) (*Known, error)) (f *filters.Filter, fig KnownFigures, err error) {
	if len(names) == 0 {
		return nil, fig, errors.New("no filter to merge: want one or more")
	}
	f, err = ofParts(ctx, store, names, func(parts []part) (*filters.Filter, error) {
		build := buildOf(parts)
		if build == nil || build.facts().Exceptions == nil {
			return nil, faults.Of(cause.Shards, faults.Mismatch(fault.At{File: parts[0].name}, "filter", "a partial one with known keys", "another")).
				WithHint("leave {Known} out, or build the partial filters with it")
		}
		k, err := known(&build.about)
		if err != nil {
			return nil, err
		}
		if want := build.facts().Exceptions.Digest; k.digest != want {
			return nil, faults.Of(cause.Shards, faults.Mismatch(fault.At{File: build.name}, "known keys", fmt.Sprintf("%x", want[:6]), fmt.Sprintf("%x", k.digest[:6]))).
				WithHint("name the files with {Known} that the partial filters were built with")
		}
		f, err := mergeAll(ctx, parts, false, lim, true)
		if err != nil || f.Exact() != nil {
			return f, err
		}
		fig, err = k.merge(ctx, f, parts, limitOf(lim))
		return f, err
	})
	return f, fig, err
}

// merge gives the filter of all parts its exceptions.
func (k *Known) merge(ctx context.Context, f *filters.Filter, parts []part, most uint64) (KnownFigures, error) {
	members, err := hashesOf(parts)
	if err != nil {
		return KnownFigures{}, err
	}
	s, err := k.ask(ctx, f, room(most, f.Bytes()))
	if err != nil {
		return KnownFigures{}, err
	}
	if want := parts[0].facts().Exceptions.Known; s.known != want {
		return KnownFigures{}, faults.Mismatch(fault.At{File: parts[0].name}, "known keys that can be read", want, s.known).
			WithHint("give the builds known keys in Parquet or Arrow, with the type of the IDs")
	}
	for values := range members.Values {
		for _, h := range values {
			s.mark(h)
		}
	}
	return k.settle(f, s)
}

// hashesOf returns the hashes in the exceptions of all parts.
func hashesOf(parts []part) (*exact.Set, error) {
	all := exact.New()
	for i := range parts {
		p := &parts[i]
		if p.facts().Exceptions == nil {
			continue
		}
		e := p.filter.Facts().Exceptions
		if p.filter == nil {
			h, err := p.header()
			if err == nil {
				err = p.rest()
			}
			if err != nil {
				return nil, err
			}
			e = h.Filter.Facts().Exceptions
		}
		all.Union(e.Hashes)
	}
	return all, nil
}

// againstWord describes the known keys of a build in errors.
func againstWord(f *filters.Filter) string {
	e := f.Facts().Exceptions
	if e == nil {
		return "none"
	}
	return fmt.Sprintf("%x, %d keys", e.Digest[:6], e.Known)
}

// light returns a copy of a header without its large parts.
func light(f *filters.Filter) filters.Filter {
	about := *f
	facts := about.Facts()
	facts.Registers = nil
	if e := facts.Exceptions; e != nil {
		facts.Exceptions = &filters.Exceptions{Known: e.Known, Digest: e.Digest}
	}
	return about
}
