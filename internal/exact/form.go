package exact

import (
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// Form is the encoding of a set's members. It depends on the members alone; see
// [Set.Marshal].
type Form uint8

const (
	// Roaring is the 64-bit Roaring format: small for runs and clusters, fast for
	// dense sets, and readable by other tools.
	Roaring Form = 1
	// Gaps is Rice-coded gaps between members: within 2 % of the entropy of sets
	// without structure, such as the IDs of a sequence that are in use.
	Gaps Form = 2
)

// String returns the form's name in lower case.
func (f Form) String() string {
	switch f {
	case Roaring:
		return "roaring"
	case Gaps:
		return "gaps"
	}
	return fmt.Sprintf("form %d", uint8(f))
}

// minSaving is the number of bytes that Gaps must save. A smaller saving is
// negligible next to the rest of a file, and small sets stay readable by other
// tools.
const minSaving = 4096

// formOf returns the form of a set that takes the given number of bytes in each
// form: Gaps if it saves more than 1/16 and more than minSaving. It saves less if
// more than one integer in three is a member; bitmaps are then as small after
// byte-wise entropy coding and are faster to write and read. For a fixed gaps, a
// larger roaring never changes the form from Gaps to Roaring.
func formOf(roaring, gaps uint64) Form {
	if roaring > gaps && roaring-gaps > max(roaring/16, minSaving) {
		return Gaps
	}
	return Roaring
}

// Marshal returns the form of the set and the bytes of its negative and of its
// other members. Equal sets give equal bytes. It takes one pass over the members,
// two if they are dense, none if they are long runs.
func (s *Set) Marshal() (form Form, negative, natural []byte, err error) {
	s = s.read()
	if !s.mayBeGaps(1) || !s.mayBeGaps(3) && s.form() == Roaring { // deciding first is cheaper
		negative, natural, err = s.marshalRoaring()
		return Roaring, negative, natural, err
	}
	a, b := newGapsWriter(&s.negative, true), newGapsWriter(&s.natural, true)
	if formOf(a.roaring+b.roaring, a.size+b.size) == Gaps {
		return Gaps, a.out, b.out, nil
	}
	negative, natural, err = s.marshalRoaring()
	return Roaring, negative, natural, err
}

// WireBytes returns the number of bytes that Marshal would return, without
// producing them.
func (s *Set) WireBytes() uint64 {
	s = s.read()
	if !s.mayBeGaps(1) {
		return roaringBytes(&s.negative) + roaringBytes(&s.natural)
	}
	roaring, gaps := s.sizes()
	if formOf(roaring, gaps) == Gaps {
		return gaps
	}
	return roaring
}

// form returns the form that Marshal chooses.
func (s *Set) form() Form {
	if !s.mayBeGaps(1) {
		return Roaring
	}
	return formOf(s.sizes())
}

// sizes returns the size of the set in either form, in bytes.
func (s *Set) sizes() (roaring, gaps uint64) {
	a, b := newGapsWriter(&s.negative, false), newGapsWriter(&s.natural, false)
	return a.roaring + b.roaring, a.size + b.size
}

// headerSlack exceeds the growth of the headers per container when containers
// change to their smallest form.
const headerSlack = 32

// mayBeGaps reports whether the form may be Gaps if Gaps takes the given number of
// bits per member. It takes at least one, so this bound decides without a pass for
// long runs, which may have thousands of members per byte.
func (s *Set) mayBeGaps(bits uint64) bool {
	return formOf(s.maxRoaring(), bits*(s.Len()/8)) == Gaps
}

// maxRoaring returns an upper bound on the size of the form Roaring.
func (s *Set) maxRoaring() (most uint64) {
	for _, m := range []*roaring64.Bitmap{&s.negative, &s.natural} {
		most += m.GetSerializedSizeInBytes() + headerSlack*(m.Stats().Containers+1)
	}
	return most
}

// roaringBytes returns the size of the canonical Roaring form in bytes.
func roaringBytes(m *roaring64.Bitmap) uint64 {
	c := m.Clone()
	c.RunOptimize()
	return c.GetSerializedSizeInBytes()
}

// Check returns an error that wraps fault.ErrCorrupt unless the bytes are what
// Marshal returns. It cannot detect one case that needs the decoded set: a set in
// the form Roaring that should be in Gaps. It takes one pass and allocates nothing.
// memory is the approximate size of the decoded members.
func Check(form Form, negative, natural []byte) (memory uint64, err error) {
	switch form {
	case Roaring:
		return checkRoaring(negative, natural)
	case Gaps:
		return checkGaps(negative, natural)
	}
	return 0, badForm(form)
}

func checkRoaring(negative, natural []byte) (memory uint64, err error) {
	for i, b := range [][]byte{negative, natural} {
		m, err := checkBitmaps(b)
		if err != nil {
			return 0, inPart(i, err)
		}
		memory += m
	}
	return memory, nil
}

func checkGaps(negative, natural []byte) (memory uint64, err error) {
	roaring := uint64(0)
	for i, b := range [][]byte{negative, natural} {
		p := packer{}
		if err := readGaps(b, minOf[i], &p); err != nil {
			return 0, inPart(i, err)
		}
		roaring += p.bytes()
		memory += p.memory
	}
	return memory, checkChoice(roaring, uint64(len(negative)+len(natural)))
}

// checkChoice returns an error if a set of these sizes should not be in the form
// Gaps.
func checkChoice(roaring, gaps uint64) error {
	if want := formOf(roaring, gaps); want != Gaps {
		return bad(fmt.Sprintf("form of a set of %d bytes in Roaring and %d in gaps", roaring, gaps), want, Gaps)
	}
	return nil
}

// Unmarshal is the inverse of Marshal. It refuses bytes that Marshal would not
// write with an error that wraps fault.ErrCorrupt. Its allocations grow with the
// bytes validated so far, not with the count that they claim.
func Unmarshal(form Form, negative, natural []byte) (s *Set, err error) {
	defer panics.Recover(fault.At{}, &err)
	switch form {
	case Roaring:
		if s, err = unmarshalRoaring(negative, natural); err != nil {
			return nil, err
		}
		if want := s.form(); want != Roaring {
			return nil, bad("form of the set", want, Roaring)
		}
		return s, nil
	case Gaps:
		return decodeGaps(negative, natural)
	}
	return nil, badForm(form)
}

func decodeGaps(negative, natural []byte) (*Set, error) {
	roaring, coded := uint64(0), [2][]byte{}
	for i, b := range [][]byte{negative, natural} {
		p := packer{to: newRoaringWriter()}
		if err := readGaps(b, minOf[i], &p); err != nil {
			return nil, inPart(i, err)
		}
		roaring += p.bytes()
		coded[i] = p.to.out
	}
	if err := checkChoice(roaring, uint64(len(negative)+len(natural))); err != nil {
		return nil, err
	}
	s := New()
	for i, m := range []*roaring64.Bitmap{&s.negative, &s.natural} {
		if err := m.UnmarshalBinary(coded[i]); err != nil {
			return nil, inPart(i, corrupt(err))
		}
	}
	return s, nil
}

// minOf is the smallest possible member of each of the two parts.
var minOf = [2]uint64{1 << 63, 0}

// inPart adds to an error which part it is in.
func inPart(i int, err error) error {
	part := [2]string{"negative", "natural"}[i] + " members: "
	if e := (*fault.Error)(nil); errors.As(err, &e) {
		in := *e
		in.What = fault.Text(part) + e.What
		return &in
	}
	return fmt.Errorf("%s%w", part, err)
}

func badForm(form Form) error { return bad("form", "1 or 2", uint8(form)) }
