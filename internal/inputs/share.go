package inputs

import (
	"bytes"
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
// same files. It reads the lines of their inputs only.
func (in *List) Share(ctx context.Context, s dataset.Shard) ([]Piece, error) {
	source.NeedContext(ctx)
	if err := source.CheckShard(s); err != nil {
		return nil, err
	}
	lo, hi := source.Divide(in.weights(), s)
	var pieces []Piece
	var numbers []int
	at := 0
	for i, groups := range in.file().groups {
		if !in.has(i) {
			continue
		}
		if from, to, ok := source.Overlap(at, int(groups), lo, hi); ok {
			pieces, numbers = append(pieces, Piece{Lo: from, Hi: to}), append(numbers, i)
		}
		at += max(int(groups), 1)
	}
	inputs, err := in.At(ctx, numbers)
	for i := range inputs {
		pieces[i].Input = inputs[i]
	}
	return pieces, err
}

// At returns inputs by their numbers in the file, which must be in ascending order and may
// repeat. It parses no other lines.
func (in *List) At(ctx context.Context, numbers []int) (inputs []Input, err error) {
	l := in.file()
	var rest []byte                // of a block's lines
	block, next, group := -1, 0, 0 // the block, its input at rest, and the row groups before that
	for at, i := range numbers {
		if at > 0 && numbers[at-1] == i {
			inputs = append(inputs, inputs[at-1])
			continue
		}
		if k := i / listBlock; k != block {
			x := &l.blocks[k]
			if rest, err = l.text(ctx, x); err != nil {
				return nil, err
			}
			block, next, group = k, x.first, x.group
		}
		var line []byte
		for ; next <= i; next++ {
			if line, rest, err = l.line(rest, next); err != nil {
				return nil, err
			}
			group += int(l.groups[next])
		}
		one, err := l.input(line)
		if err != nil {
			return nil, l.corrupt("input %d: %v", i, err)
		}
		one.number = i
		if !sameBytes(one.Groups, l.bytes[group-int(l.groups[i]):group]) || len(inputs) > 0 && one.Rel < inputs[len(inputs)-1].Rel {
			return nil, l.corrupt("input %d contradicts the index", i)
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

// weights returns the weights of all row groups.
func (in *List) weights() (weights []int64) {
	group := 0
	for i, n := range in.file().groups {
		of := in.file().bytes[group : group+int(n)]
		if group += int(n); in.has(i) {
			weights = source.AppendWeights(weights, len(of), func(g int) int64 { return of[g] })
		}
	}
	return weights
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
	for i, groups := range in.file().groups {
		if in.has(i) && isParquet(i) {
			total += int64(groups)
		}
	}
	n = int(min(int64(n), total))
	var pieces []Piece
	var numbers []int
	var at int64 // row groups of Parquet files before
	for i, groups := range in.file().groups {
		if !in.has(i) || !isParquet(i) {
			continue
		}
		for len(pieces) < n && source.Nth(len(pieces), n, total) < at+int64(groups) {
			g := int(source.Nth(len(pieces), n, total) - at)
			pieces, numbers = append(pieces, Piece{Lo: g, Hi: g + 1}), append(numbers, i)
		}
		at += int64(groups)
	}
	inputs, err := in.At(ctx, numbers)
	for i := range inputs {
		pieces[i].Input = inputs[i]
	}
	return pieces, err
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
	picked := &List{list: in.file(), only: make([]bool, len(in.file().groups))}
	for k, x := range in.file().blocks {
		inputs, err := in.file().lines(ctx, k)
		if err != nil {
			return nil, err
		}
		for i := range inputs {
			picked.only[x.first+i] = in.has(x.first+i) && keep(&inputs[i])
		}
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
	kept := &List{list: in.file(), only: make([]bool, len(in.file().groups))}
	i, any := 0, false
	for _, run := range in.file().runs {
		may := opts.MayHold(bound, partsOfValues(in.file().typed(run.Of)))
		for range run.Inputs {
			kept.only[i] = may && in.has(i)
			any = any || kept.only[i]
			i++
		}
	}
	if !any {
		for i := range kept.only {
			if kept.only[i] = in.has(i); kept.only[i] {
				break
			}
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
