package inputs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/where"
)

// Piece is a range of row groups of an input, which one worker reads.
type Piece struct {
	Input  Input
	Lo, Hi int // row groups Lo to Hi, Hi exclusive, counted from 0
}

// Share returns the pieces of the list that belong to the shard, as [source.Split] does for the
// same files. Unless row groups are large for so many workers, or inputs were left out, it reads
// the lines of their inputs only.
func (in *List) Share(ctx context.Context, s dataset.Shard) ([]Piece, error) {
	source.NeedContext(ctx)
	if err := source.CheckShard(s); err != nil {
		return nil, err
	}
	l := in.file()
	if in != nil && in.only == nil && (s.Whole() || source.ByMiddles(l.weight, l.header.Largest, s.Of)) {
		return l.byMiddles(ctx, s)
	}
	var weights []int64
	for one, err := range in.weighed() {
		if err != nil {
			return nil, err
		}
		weights = source.AppendWeights(weights, len(one.bytes), func(g int) int64 { return one.bytes[g] })
	}
	lo, hi := source.Divide(weights, s)
	at := 0
	return in.pieces(ctx, func(one weighed, add func(lo, hi int)) {
		if from, to, ok := source.Overlap(at, len(one.bytes), lo, hi); ok {
			add(from, to)
		}
		at += max(len(one.bytes), 1)
	})
}

// byMiddles is Share by the middles of the weights.
func (l *inputFile) byMiddles(ctx context.Context, s dataset.Shard) (pieces []Piece, err error) {
	n := max(s.Of, 1)
	for k := range l.blocks {
		x := &l.blocks[k]
		if source.Owner(x.before, 0, l.weight, n) > s.Index || source.Owner(x.before+x.Weight, 0, l.weight, n) < s.Index {
			continue
		}
		text, err := l.text(ctx, k)
		if err != nil {
			return nil, err
		}
		inputs, err := l.lines(k, text)
		if err != nil {
			return nil, err
		}
		at := x.before
		for _, one := range inputs {
			p := Piece{Input: one, Lo: -1}
			for g, w := range one.weights(nil) {
				if source.Owner(at, uint64(w), l.weight, n) == s.Index {
					if p.Lo < 0 {
						p.Lo = g
					}
					p.Hi = min(g+1, len(one.Groups))
				}
				at += uint64(w)
			}
			if p.Lo >= 0 {
				pieces = append(pieces, p)
			}
		}
	}
	return pieces, nil
}

// weights appends the weights of the input's row groups.
func (in *Input) weights(to []int64) []int64 {
	return source.AppendWeights(to, len(in.Groups), func(g int) int64 { return in.Groups[g][1] })
}

// pieces returns the row groups of the chosen inputs that choose adds.
func (in *List) pieces(ctx context.Context, choose func(one weighed, add func(lo, hi int))) (pieces []Piece, err error) {
	var numbers []int
	var bytes [][]int64
	for one, err := range in.weighed() {
		if err != nil {
			return nil, err
		}
		choose(one, func(lo, hi int) {
			pieces, numbers, bytes = append(pieces, Piece{Lo: lo, Hi: hi}), append(numbers, one.number), append(bytes, one.bytes)
		})
	}
	inputs, err := in.At(ctx, numbers)
	for i := range inputs {
		if pieces[i].Input = inputs[i]; !slices.EqualFunc(inputs[i].Groups, bytes[i], func(g [2]int64, b int64) bool { return g[1] == b }) {
			return nil, in.file().corrupt("input %d contradicts the index", numbers[i])
		}
	}
	return pieces, err
}

// At returns inputs by their numbers in the file, which must be in ascending order and may
// repeat. It parses no other lines.
func (in *List) At(ctx context.Context, numbers []int) (inputs []Input, err error) {
	l := in.file()
	var rest []byte      // of a block's lines
	block, next := -1, 0 // the block, and its input at rest
	for at, i := range numbers {
		if at > 0 && numbers[at-1] == i {
			inputs = append(inputs, inputs[at-1])
			continue
		}
		if k := i / listBlock; k != block {
			if rest, err = l.text(ctx, k); err != nil {
				return nil, err
			}
			block, next = k, k*listBlock
		}
		var line []byte
		for ; next <= i; next++ {
			if line, rest, err = l.line(rest, next); err != nil {
				return nil, err
			}
		}
		one, err := l.input(line)
		if err != nil {
			return nil, l.corrupt("input %d: %v", i, err)
		}
		one.number = i
		if len(inputs) > 0 && one.Rel < inputs[len(inputs)-1].Rel {
			return nil, l.corrupt("input %d is not in order", i)
		}
		inputs = append(inputs, one)
	}
	return inputs, nil
}

// line cuts the line of an input from the lines of a block.
func (l *inputFile) line(b []byte, number int) (line, rest []byte, err error) {
	line, rest, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		err = l.corrupt("input %d has no line", number)
	}
	return line, rest, err
}

// Schemas returns the first input of each schema that the chosen inputs have. Where some
// were left out of a list of several schemas, it reads the lines of the others.
func (in *List) Schemas(ctx context.Context) (first []Input, err error) {
	source.NeedContext(ctx)
	all := in.file().header.Schemas
	if in == nil || in.only == nil {
		var numbers []int
		for _, s := range all {
			numbers = append(numbers, s.First)
		}
		slices.Sort(numbers)
		return in.At(ctx, numbers)
	}
	seen := map[string]bool{}
	for one, err := range in.Each(ctx) {
		if err != nil {
			return nil, err
		}
		if seen[one.Schema] {
			continue
		}
		seen[one.Schema], first = true, append(first, one)
		if len(first) == len(all) {
			break
		}
	}
	return first, nil
}

// Spread returns up to n row groups of Parquet files, spread evenly over the list:
// keyscan.ReadOptions.FirstPages reads a page of each.
func (in *List) Spread(ctx context.Context, n int) ([]Piece, error) {
	isParquet, err := in.parquet(ctx)
	if err != nil {
		return nil, err
	}
	var total int64
	for one, err := range in.weighed() {
		if err != nil {
			return nil, err
		}
		if isParquet(one.number) {
			total += int64(len(one.bytes))
		}
	}
	n = int(min(int64(n), total))
	var at int64 // row groups of Parquet files before
	added := 0
	return in.pieces(ctx, func(one weighed, add func(lo, hi int)) {
		if !isParquet(one.number) {
			return
		}
		for ; added < n && source.Nth(added, n, total) < at+int64(len(one.bytes)); added++ {
			g := int(source.Nth(added, n, total) - at)
			add(g, g+1)
		}
		at += int64(len(one.bytes))
	})
}

// parquet returns a function that reports whether an input is a Parquet file. It reads
// all lines if some are and others are not.
func (in *List) parquet(ctx context.Context) (func(i int) bool, error) {
	first, err := in.Schemas(ctx)
	if err != nil {
		return nil, err
	}
	other := func(in Input) bool { return in.Format != dataset.Parquet }
	if !slices.ContainsFunc(first, other) {
		return func(int) bool { return true }, nil
	}
	only, err := in.Pick(ctx, func(in *Input) bool { return in.Format == dataset.Parquet })
	return func(i int) bool { return only.has(i) }, err
}

// Pick returns the list of the inputs for which keep returns true. It reads all lines once.
func (in *List) Pick(ctx context.Context, keep func(*Input) bool) (*List, error) {
	source.NeedContext(ctx)
	if keep == nil {
		return nil, errors.New("Inputs.Pick: keep is nil")
	}
	picked := &List{list: in.file(), only: make([]bool, in.file().header.Inputs)}
	for one, err := range in.Each(ctx) {
		if err != nil {
			return nil, err
		}
		picked.only[one.number] = keep(&one)
	}
	return picked, nil
}

// Where returns a list without the inputs whose directory values exclude every row by the
// condition; see [source.OpenOptions].Where. If none is left, the first one is kept for its
// columns. It reads no lines.
func (in *List) Where(condition string, ignoreCase bool) (*List, error) {
	opts := source.Opening{OpenOptions: source.OpenOptions{IgnoreCase: ignoreCase}, Layout: in.layout()}
	var err error
	if condition != "" {
		if opts.Condition, err = where.Parse(condition); err != nil {
			return nil, err
		}
	}
	bound := opts.OfPartitions()
	if bound == nil {
		return in, nil
	}
	kept, err := in.mayHold(func(parts []hive.Part) bool { return opts.MayHold(bound, parts) })
	if err == nil && !slices.Contains(kept.only, true) {
		for i := range kept.only {
			if kept.only[i] = in.has(i); kept.only[i] {
				break
			}
		}
	}
	return kept, err
}

// mayHold returns a list of the inputs whose directories may hold rows.
func (in *List) mayHold(may func([]hive.Part) bool) (*List, error) {
	l := in.file()
	kept := &List{list: l, only: make([]bool, l.header.Inputs)}
	i, k := 0, 0
	for runs, err := range section[[]listRun](l, 2) {
		for _, run := range runs {
			if err != nil || run.Inputs <= 0 || run.Inputs > min(l.header.Inputs, (k+1)*listBlock)-i || len(run.Of) != len(l.hive) {
				return nil, cmp.Or(err, l.corrupt("its values contradict the index at input %d", i))
			}
			for is := may(partsOfValues(l.typed(run.Of))); run.Inputs > 0; run.Inputs-- {
				kept.only[i] = is && in.has(i)
				i++
			}
		}
		if k++; err != nil || i != min(l.header.Inputs, k*listBlock) {
			return nil, cmp.Or(err, l.corrupt("its values contradict the index at input %d", i))
		}
	}
	return kept, nil
}

// layout returns what the files of the list have in common; nil if that is nothing.
func (in *List) layout() *source.HiveLayout {
	if len(in.file().hive) == 0 {
		return nil
	}
	return &source.HiveLayout{Like: in.file().name, Columns: slices.Clone(in.file().hive)}
}

// partsOfValues returns the directories that values come from.
func partsOfValues(values []dataset.PartitionValue) (parts []hive.Part) {
	for _, v := range values {
		parts = append(parts, hive.Part{Name: v.Name, Text: v.Text, Null: v.Null})
	}
	return parts
}
