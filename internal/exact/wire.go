package exact

import (
	"errors"
	"fmt"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// Marshal returns the bytes of the negative and of the other members. Equal sets give equal
// bytes. It takes one pass over the members, except those in long runs.
func (s *Set) Marshal() (negative, natural []byte) {
	s = s.read()
	return newGapsWriter(&s.negative, true).out, newGapsWriter(&s.natural, true).out
}

// WireBytes returns the number of bytes that Marshal would return, without
// producing them.
func (s *Set) WireBytes() uint64 {
	s = s.read()
	return newGapsWriter(&s.negative, false).size + newGapsWriter(&s.natural, false).size
}

// Check returns an error that wraps fault.ErrCorrupt unless the bytes are what
// Marshal returns. It takes one pass and allocates nothing. memory is the approximate
// size of the decoded members.
func Check(negative, natural []byte) (memory uint64, err error) {
	var t taker
	for i, b := range [][]byte{negative, natural} {
		t.card = 0
		if err := readGaps(b, minOf[i], &t); err != nil {
			return 0, inPart(i, err)
		}
	}
	return t.memory, nil
}

// Unmarshal is the inverse of Marshal. It refuses bytes that Marshal would not
// write with an error that wraps fault.ErrCorrupt. Its allocations grow with the
// members validated so far, not with the count that the bytes claim.
func Unmarshal(negative, natural []byte) (s *Set, err error) {
	defer panics.Recover(fault.At{}, &err)
	s = New()
	for i, m := range []*bitmap{&s.negative, &s.natural} {
		if err := readGaps([2][]byte{negative, natural}[i], minOf[i], &taker{to: m}); err != nil {
			return nil, inPart(i, err)
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
