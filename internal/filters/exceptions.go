package filters

import (
	"encoding/binary"
	"fmt"

	"github.com/bloomjoin/bloomjoin/internal/cursor"
	"github.com/bloomjoin/bloomjoin/internal/exact"
)

// MaxExceptions is the most bytes that the hashes of [Exceptions] may take in a file. They
// are in its header, which has room for that and all else.
const MaxExceptions = 15 << 20

// noMembers is a part of an exact payload without members.
var noMembers = make([]byte, 8)

func putExceptions(m *meta, dst []byte) []byte {
	e := m.facts.Exceptions
	if e == nil {
		return dst
	}
	dst = append(dst, e.Digest[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, e.Known)
	_, hashes := e.Hashes.Marshal()
	return append(dst, hashes...)
}

func getExceptions(m *meta, c *cursor.Cursor) *problem {
	e := new(Exceptions)
	copy(e.Digest[:], c.Take(32))
	e.Known = c.U64()
	hashes := c.Take(uint64(len(c.Rest)))
	if c.Short {
		return nil
	}
	var err error
	if e.Hashes, err = exact.Unmarshal(noMembers, hashes); err != nil {
		return from(err)
	}
	m.facts.Exceptions = e
	return nil
}

func (m *meta) checkExceptions() *problem {
	e := m.facts.Exceptions
	switch {
	case e == nil:
		return nil
	case m.kind == KindExact && m.Sealed():
		return bad("exceptions", "a Bloom filter or a partial one", "an exact filter, which needs none")
	case m.kind == KindCounting: // a key that is added later may be one of them
		return bad("exceptions", "a Bloom filter or a partial one", "a counting filter, which has none")
	case m.Sealed() && e.Known == 0 && (e.Hashes.Len() == 0 || e.Digest != [32]byte{}):
		return bad("exceptions", "some, or known keys", "none")
	case !m.Sealed() && e.Digest == [32]byte{}:
		return bad("known keys of a partial", "a digest", "none")
	}
	if n := e.Hashes.WireBytes(); n > MaxExceptions {
		return bad("exceptions", fmt.Sprintf("at most %d bytes", MaxExceptions), n)
	}
	return nil
}
