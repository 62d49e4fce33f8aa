package deletes

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/prune"
	"github.com/bloomjoin/bloomjoin/internal/rows"
)

// Checker finds the rows of a file whose keys are deleted. It must not be used concurrently.
type Checker struct {
	keys   *Keys
	after  uint32 // older keys count as well as this one
	file   *arrowparquet.Parquet
	buf    *parquet.Buffers
	enc    *keys.Encoder
	read   []int                  // columns of the key
	leaf   *arrowparquet.LeafKeys // nil: the key is not one leaf
	pruner *prune.Pruner          // nil: any row may have a deleted key
	none   bool                   // the file is younger than all keys

	Pages, Skipped int // of key columns, since they were taken

	at  int // row group of may, from 1; 0: none
	may rows.Set
	scratch
}

// scratch is memory that is used again.
type scratch struct {
	dead   []bool // by position in the rows at hand
	batch  keys.Batch
	hashes []uint64
	hits   []uint32
	found  []uint32
	there  []uint32            // entries of a page that are not NULL
	dict   *parquet.Dictionary // of coded
	coded  []bool              // by entry: deleted
}

// Checker returns a checker of a file with a sequence number.
func (k *Keys) Checker(f *arrowparquet.Parquet, seq int64, buf *parquet.Buffers) (*Checker, error) {
	after, _ := slices.BinarySearch(k.numbers, seq+1)
	c := &Checker{keys: k, after: uint32(after), none: after == len(k.numbers), file: f, buf: buf}
	enc, err := keys.NewEncoder(f.KeySchema(), k.columns, nullsEqual)
	if err != nil {
		return nil, err
	}
	c.read = enc.Columns()
	if leaf, ok := f.Leaf(enc.Index()); ok {
		c.leaf = leaf.Keys(nil, keys.Options{})
	}
	if k.null == 0 && !k.nulls && k.newest != nil {
		c.pruner, err = prune.New(f.File(), f.Schema(), k.columns, keys.Options{Classes: enc.Classes()}, between{k.bounds})
	}
	return c, err
}

// between are keys of which the bounds are known.
type between struct{ *keys.Bounds }

func (between) Empty() bool                                    { return false }
func (between) Exact() *exact.Set                              { return nil }
func (b between) KeyRange(column int) (lo, hi []byte, ok bool) { return b.Column(column) }

// Size returns the bytes of memory that are kept between row groups.
func (c *Checker) Size() int {
	return cap(c.dead) + cap(c.coded) + 8*cap(c.hashes) + 4*(cap(c.hits)+cap(c.found)+cap(c.there))
}

// Shed releases that memory.
func (c *Checker) Shed() { c.scratch = scratch{} }

// Leaf returns the number of the leaf that is the key; -1: it is another one.
func (c *Checker) Leaf() int {
	if c.leaf == nil {
		return -1
	}
	return c.leaf.Values.Index()
}

// Bytes returns the compressed bytes of the key in a row group.
func (c *Checker) Bytes(group int) (n int64) {
	for _, l := range c.file.Below(c.read) {
		n += min(c.file.File().Metadata.RowGroups[group].Columns[l].MetaData.TotalCompressedSize, 1<<40)
	}
	return n
}

// May returns the rows of a row group that may have a deleted key, by statistics. It reads no pages.
func (c *Checker) May(ctx context.Context, group int) (_ rows.Set, err error) {
	if c.at == group+1 {
		return c.may, nil
	}
	c.at, c.may = 0, nil
	if total := c.file.GroupRows(group); !c.none && total > 0 {
		c.may = rows.Range(0, total)
	}
	if c.pruner != nil {
		if c.may, _, err = c.pruner.Rows(ctx, group); err != nil {
			return nil, err
		}
	}
	c.at = group + 1
	return c.may, nil
}

// Live reduces rows of a row group, ascending, to those whose keys are not deleted. expected, by leaf, are ranges that
// were announced; it takes what it reads.
func (c *Checker) Live(ctx context.Context, group int, list []uint32, expected map[int]*parquet.Ahead) ([]uint32, error) {
	may, err := c.May(ctx, group)
	if err != nil || len(list) == 0 || len(may) == 0 {
		return list, err
	}
	asked := list
	if !may.All(c.file.GroupRows(group)) {
		if asked = may.Of(nil, list); len(asked) == 0 {
			return list, nil
		}
	}
	c.dead = append(c.dead[:0], make([]bool, len(asked))...)
	if c.leaf != nil {
		err = c.pages(ctx, group, asked, expected)
	} else {
		err = c.records(ctx, group, asked)
	}
	if err != nil {
		return nil, err
	}
	n, at := 0, 0
	for _, row := range list {
		if at < len(asked) && asked[at] == row {
			if at++; c.dead[at-1] {
				continue
			}
		}
		list[n] = row
		n++
	}
	return list[:n], nil
}

// records looks up keys of records.
func (c *Checker) records(ctx context.Context, group int, asked []uint32) error {
	of, at := asked, uint32(0)
	if int64(len(asked)) == c.file.GroupRows(group) {
		of = nil
	}
	for rec, err := range c.file.ReadKeys(parquet.WithTurn(ctx, nil), group, c.read, of) {
		if err == nil && c.enc == nil {
			c.enc, err = keys.NewEncoder(rec.Schema(), c.keys.columns, nullsEqual)
		}
		if err == nil {
			err = c.enc.Encode(rec, &c.batch)
		}
		if err != nil {
			return err
		}
		dead := c.dead[at:][:rec.NumRows()]
		if b := &c.batch; len(b.Rows) < b.Len && c.keys.null > c.after {
			for i := range dead {
				dead[i] = true
			}
			for _, row := range b.Rows {
				dead[row] = false
			}
		}
		for _, p := range c.deleted(&c.batch) {
			dead[c.batch.Rows[p]] = true
		}
		at += uint32(rec.NumRows())
	}
	return nil
}

// deleted returns the positions of keys in a batch that are deleted.
func (c *Checker) deleted(b *keys.Batch) []uint32 {
	if c.keys.newest == nil {
		return nil
	}
	c.hashes = b.Hash(hash, c.hashes)
	c.hits = c.keys.filter.Probe(c.hashes, c.hits[:0])
	c.found = c.keys.newest.later(b, c.hashes, c.hits, c.after, c.found[:0])
	return c.found
}

// pages looks up the keys of a leaf, those of a dictionary once.
func (c *Checker) pages(ctx context.Context, group int, asked []uint32, expected map[int]*parquet.Ahead) error {
	f, leaf := c.file.File(), c.Leaf()
	chunk := f.ChunkIn(c.buf, group, leaf)
	defer c.buf.Rest()
	if a := expected[leaf]; a != nil {
		delete(expected, leaf)
		chunk.Expect(a)
	}
	if int64(len(asked)) < c.file.GroupRows(group) {
		chunk.Select(asked)
	}
	null := c.keys.null > c.after
	c.dict = nil
	dict, err := chunk.ReadDictionary(ctx)
	if err == nil && dict != nil {
		err = c.entries(dict)
	}
	if err != nil {
		return err
	}
	if dict != nil && !null && !slices.Contains(c.coded, true) {
		chunk.SkipCoded()
	}
	full, next := uint8(f.Leaves[leaf].MaxDef), 0 // next: position in asked
	for {
		p, err := chunk.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for int64(asked[next]) < p.FirstRow { // in a page that was skipped
			next++
		}
		if p.Coded {
			err = c.entries(chunk.Dictionary())
		}
		if err == nil {
			err = c.page(p, c.dead[next:next+p.Values], full, null)
		}
		if err != nil {
			return err
		}
		next += p.Values
	}
	seen, skipped := chunk.Pages()
	c.Pages, c.Skipped = c.Pages+seen, c.Skipped+skipped
	return nil
}

// entries finds the entries of a dictionary that are deleted.
func (c *Checker) entries(dict *parquet.Dictionary) error {
	if dict == c.dict {
		return nil
	}
	c.dict, c.coded = dict, append(c.coded[:0], make([]bool, dict.Len)...)
	return c.values(&parquet.Page{Values: dict.Len, NonNull: dict.Len, Plain: dict.Plain}, func(e uint32) { c.coded[e] = true })
}

// page sets which entries of a page are deleted. full is the definition level of a value; null says whether NULL is
// deleted.
func (c *Checker) page(p *parquet.Page, dead []bool, full uint8, null bool) error {
	mark := func(value uint32) { dead[value] = true }
	if p.NonNull < p.Values {
		c.there = c.there[:0]
		for i, d := range p.Def {
			if dead[i] = null; d == full {
				dead[i], c.there = false, append(c.there, uint32(i))
			}
		}
		mark = func(value uint32) { dead[c.there[value]] = true }
	}
	if !p.Coded {
		return c.values(p, mark)
	}
	for v, e := range p.Indices[:p.NonNull] {
		if c.coded[e] {
			mark(uint32(v))
		}
	}
	return nil
}

// values calls fn with the values of a page without dictionary indices that are deleted.
func (c *Checker) values(p *parquet.Page, fn func(v uint32)) error {
	return c.leaf.Fill(&c.batch, p, func(b *keys.Batch) error {
		for _, at := range c.deleted(b) {
			fn(b.Rows[at])
		}
		return nil
	})
}
