package inputs

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"slices"

	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/zeebo/xxh3"
)

// readAhead is the largest number of bytes that are read at once of lists.
const readAhead = 8 << 20

// block is the text of a block, valid until the next one is read.
type block struct {
	k    int
	text []byte
}

// texts reads the blocks that have a chosen input: ever more at once, as a store takes long for
// each request.
func (in *List) texts(ctx context.Context) iter.Seq2[block, error] {
	l := in.file()
	wanted := func(k int) bool {
		return k < len(l.blocks) && (in == nil || in.only == nil || slices.Contains(in.only[k*listBlock:][:l.inputsOf(k)], true))
	}
	return func(yield func(block, error) bool) {
		var buf []byte
		for k, most := 0, int64(0); k < len(l.blocks); {
			from, n := k, int64(0)
			for ; wanted(k) && (n == 0 || n+l.blocks[k].Bytes <= most); k++ {
				n += l.blocks[k].Bytes
			}
			if n == 0 {
				k++
				continue
			}
			most = min(2*max(n, most), readAhead)
			buf = slices.Grow(buf[:0], int(n))[:n]
			if err := cmp.Or(stopped.Err(ctx), readAll(l.r, buf, l.blocks[from].at)); err != nil {
				yield(block{}, l.err(err))
				return
			}
			rest := buf
			for ; from < k; from++ {
				text, err := l.checked(from, rest[:l.blocks[from].Bytes])
				if rest = rest[l.blocks[from].Bytes:]; !yield(block{from, text}, err) || err != nil {
					return
				}
			}
		}
	}
}

// section reads the lines, one for each block, of the row groups or the values of all inputs.
func section[T any](l *inputFile, i int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		at, end := l.pointer.at[i], l.pointer.at[i+1]
		sum := xxh3.New()
		r := bufio.NewReaderSize(io.TeeReader(io.NewSectionReader(l.r, at, end-at), sum), int(min(end-at, readAhead)))
		for range l.blocks {
			var of T
			line, err := r.ReadBytes('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				err = l.err(err)
			} else if json.Unmarshal(line, &of) != nil {
				err = l.corrupt("a line after those of its inputs cannot be read")
			}
			if !yield(of, err) || err != nil {
				return
			}
		}
		if _, err := r.WriteTo(io.Discard); err != nil {
			yield(*new(T), l.err(err))
		} else if l.size > 0 && sum.Sum64() != l.pointer.sums[i-1] {
			yield(*new(T), l.corrupt("the row groups or values of its inputs have another checksum"))
		}
	}
}

// weighed are the bytes of an input's row groups.
type weighed struct {
	number int
	bytes  []int64
}

// weighed yields the chosen inputs without reading their lines.
func (in *List) weighed() iter.Seq2[weighed, error] {
	return func(yield func(weighed, error) bool) {
		l, k := in.file(), 0
		for of, err := range section[[][]int64](l, 1) {
			if err == nil && (k == len(l.blocks) || len(of) != l.inputsOf(k) || slices.ContainsFunc(slices.Concat(of...), func(b int64) bool { return b < -1 })) {
				err = l.corrupt("its row groups contradict the index at input %d", k*listBlock)
			}
			if err != nil {
				yield(weighed{}, err)
				return
			}
			for i, bytes := range of {
				if in.has(k*listBlock+i) && !yield(weighed{k*listBlock + i, bytes}, nil) {
					return
				}
			}
			k++
		}
	}
}
