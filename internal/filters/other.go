package filters

import (
	"context"
	"fmt"
	"io"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cursor"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Other is another kind of file in the layout of filters: prologue, sections, chunks, trailer. It
// has the sections of a filter about keys, shards and the build, a section of its own, and a
// payload of one part. In functions that decode and save files, a nil *Other means filters.
type Other struct {
	Magic string     // 8 bytes
	Kind  string     // in errors, with its article
	Hint  fault.Text // where a file of another kind is given: how to make one
	// Size returns the size of the payload in bytes according to the body of the own section, or
	// an error if no file of the kind has that body.
	Size func(f *Facts, own []byte) (uint64, error)
}

// secOwn is the type of the own section of another file.
const secOwn = 14

// magic returns the first bytes of the file.
func (m *meta) magic() string {
	if m.other != nil {
		return m.other.Magic
	}
	return magic
}

// sections returns the sections of the header in ascending order of type.
func (m *meta) sections() (of []section) {
	if m.other == nil {
		return sections()
	}
	for _, s := range sections() {
		switch s.id {
		case secKey, secPayload, secPartial, secBuild, secRule, secDivision:
			of = append(of, s)
		}
	}
	return append(of, section{secOwn, sectionName(secOwn), true, true,
		func(m *meta, dst []byte) []byte { return append(dst, m.own...) },
		func(m *meta, c *cursor.Cursor) *problem {
			m.own = append([]byte{}, c.Take(uint64(len(c.Rest)))...)
			return nil
		},
	})
}

// checkOwn checks the own section of another file, and the size of its payload.
func (m *meta) checkOwn() *problem {
	want, err := m.other.Size(&m.facts, m.own)
	switch {
	case err != nil:
		return from(err).in(sectionName(secOwn))
	case want == 0 || want > maxPart:
		return bad("payload", fmt.Sprintf("1 to %d bytes", uint64(maxPart)), want)
	case len(m.parts) != 1 || m.parts[0] != want:
		return bad("payload", fmt.Sprintf("one part of %d bytes", want), m.parts)
	}
	return nil
}

// Payload appends the bytes lo to hi of a payload to dst. It may be called concurrently.
type Payload func(dst []byte, lo, hi uint64) []byte

// Digest is [Filter.Digest] for another file.
func (o *Other) Digest(f *Facts, own []byte, part Payload) ([32]byte, error) {
	s, err := o.source(f, own, part)
	if err != nil {
		return [32]byte{}, err
	}
	sums, err := s.sums()
	return digest(&s.meta, sums), err
}

// Save is [Save] for another file, and returns its digest, too.
func (o *Other) Save(ctx context.Context, store storage.Storage, name string, f *Facts, own []byte, part Payload, replace bool) (size int64, id [32]byte, err error) {
	s, err := o.source(f, own, part)
	if err != nil {
		return 0, id, fmt.Errorf("%s: %w", name, err)
	}
	size, err = o.saveAs(ctx, store, name, Options{Replace: replace}, func(w io.Writer) (int64, error) {
		n, sums, err := s.encode(w, Options{})
		id = digest(&s.meta, sums)
		return n, err
	}, func() ([32]byte, error) { return id, nil })
	return size, id, err
}

func (o *Other) source(f *Facts, own []byte, part Payload) (*source, error) {
	s := &source{meta: meta{Filter: New(*f), other: o, own: own}, part: part}
	size, err := o.Size(f, own)
	if err != nil {
		return nil, from(err).inProgram()
	}
	s.parts = []uint64{size}
	if p := s.check(); p != nil {
		return nil, p.inProgram()
	}
	return s, nil
}

// Own returns the body of the own section of another file.
func (h *Header) Own() []byte { return h.meta.own }

// LoadOther reads the payload of another file and passes it to fn in order. Each piece is verified,
// but the file only once LoadOther has returned nil.
func (h *Header) LoadOther(ctx context.Context, fn func(raw []byte)) error {
	if err := h.decoded(); err != nil {
		return err
	}
	return readPayloads(ctx, []*Header{h}, take{ordered: fn})
}
