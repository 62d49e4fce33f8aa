package builds

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

// fromList is what a plan keeps of a list of inputs.
type fromList struct {
	inputs *inputs.List
	first  map[string]*source.File // one file of each schema
}

// NewPlanOf is [NewPlan] for a list of inputs, which must stay open. It opens one file
// of each schema and the files of the shard; build IDs and filters are the same. The
// caller closes the [Plan].
func NewPlanOf(ctx context.Context, listed *inputs.List, opts Options) (_ *Plan, err error) {
	stopped.Needs(ctx, "builds.NewPlanOf")
	if !listed.Made() {
		return nil, fmt.Errorf("no list of inputs was given%w", quiet.Error{Err: storage.ErrNoFiles})
	}
	p, columns, err := newPlan(opts)
	if err != nil {
		return nil, err
	}
	p.list = &fromList{inputs: listed, first: map[string]*source.File{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	schemas, err := listed.Schemas(ctx)
	if err != nil {
		return nil, err
	}
	for _, in := range schemas {
		files, _, err := listed.Opened(ctx, []inputs.Piece{{Input: in}})
		if err != nil {
			return nil, err
		}
		p.views(files, columns)
		p.files, p.list.first[in.Schema] = append(p.files, files...), files[0]
	}
	if err := p.agree(columns); err != nil {
		return nil, err
	}
	share, err := listed.Share(ctx, opts.Shard)
	if err != nil {
		return nil, err
	}
	files, pieces, err := listed.Opened(ctx, share)
	if err != nil {
		return nil, err
	}
	p.views(files, columns)
	for i, f := range files {
		pieces[i].File = f
	}
	p.files, p.pieces = append(p.files, files...), pieces
	if err := p.readTexts(ctx, columns); err != nil {
		return nil, err
	}
	if err := p.capacity(p.listedRows); err != nil {
		return nil, err
	}
	p.BuildID = p.Spec.id(listed.Digest())
	return p, nil
}

// Files returns the files that are open for the build.
func (p *Plan) Files() []*source.File { return p.files }

// Pieces returns what the build reads of them.
func (p *Plan) Pieces() []source.Piece {
	if p == nil {
		return nil
	}
	return p.pieces
}

// Close closes the files that [NewPlanOf] has opened, not the caller's.
func (p *Plan) Close() error {
	if p.list == nil {
		return nil
	}
	return source.Close(p.files)
}

// readTexts adds to the plan's identity how each text file is read and divided.
func (p *Plan) readTexts(ctx context.Context, columns []keys.Column) error {
	as := map[string]string{}
	for schema, f := range p.list.first {
		if !source.IsText(f.Format()) {
			continue
		}
		enc, err := keys.NewEncoder(f.Schema(), columns, p.opts.keys(p.Spec.Rule))
		if err != nil {
			return f.Failed(err)
		}
		as[schema] = readAs(f, enc)
	}
	if len(as) == 0 {
		return nil
	}
	d, i := newDivided(), 0
	for in, err := range p.list.inputs.Each(ctx) {
		if err != nil {
			return err
		}
		if text, ok := as[in.Schema]; ok {
			p.Spec.reading = append(p.Spec.reading, text)
		}
		d.add(i, in.Format, len(in.Groups), func(g int) int64 { return in.Groups[g][1] })
		i++
	}
	p.Division = d.sum()
	return nil
}

// rows returns the number of rows of the files, see capacity.
func (p *Plan) rows() (all int64, of string, err error) {
	for _, f := range p.files {
		n, err := f.CountRows()
		if err != nil || n < 0 {
			return n, f.Name(), err
		}
		all += n
	}
	return all, "", nil
}

// listedRows is rows for a list.
func (p *Plan) listedRows() (all int64, of string, err error) {
	of = "the list of inputs"
	if i := slices.IndexFunc(p.files, func(f *source.File) bool { return f.Rows() < 0 }); i >= 0 {
		of = p.files[i].Name()
	}
	return p.list.inputs.Rows(), of, nil
}

// sampled returns the pieces from which the sample of the IDs is taken, and a function
// that closes what was opened for it.
func (p *Plan) sampled(ctx context.Context) ([]source.Piece, func(), error) {
	if p.list == nil {
		return source.Split(p.files, dataset.Shard{}), func() {}, nil
	}
	spread, err := p.list.inputs.Spread(ctx, samplePages)
	if err != nil {
		return nil, nil, err
	}
	files, pieces, err := p.list.inputs.Opened(ctx, spread)
	return pieces, func() { _ = source.Close(files) }, err
}

// readAs describes how the keys of a text file are read.
func readAs(f *source.File, enc *keys.Encoder) string {
	as := string(f.Format())
	if e := f.Encoding(); e != "" {
		as += " in " + e
	}
	if how := f.Fields(); how != "" {
		as += " with " + how
	}
	for _, c := range enc.Columns() {
		as += " " + f.Schema().Field(c).Type.String()
	}
	return as
}
