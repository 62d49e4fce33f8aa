package delta

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/lake"
)

const (
	nameLength = 20      // of an encoded UUID, at the end of a vector's text
	largest    = 1 << 30 // bytes of a vector
)

// deleted returns the reference to a file's deleted rows, nil if there are none.
func (s *Snapshot) deleted(v *vector) (*lake.Deleted, error) {
	if v == nil || *v == (vector{}) {
		return nil, nil
	}
	d := &lake.Deleted{Size: int64(v.Size), Count: v.Count, Offset: 1}
	if d.Size <= 0 || d.Size > largest || d.Count < 0 {
		return nil, faults.Corrupt(fault.At{}, "a deletion vector of %d bytes for %d rows", d.Size, d.Count)
	}
	if v.Offset != nil {
		d.Offset = int64(*v.Offset)
	}
	var err error
	switch v.Storage {
	case "i":
		d.Offset = 0
		if d.Inline, err = decodeZ85(v.Text); err == nil && d.Size > int64(len(d.Inline)) {
			err = faults.Corrupt(fault.At{}, "an inline deletion vector of %d bytes, of which there are %d", d.Size, len(d.Inline))
		} else if err == nil {
			d.Inline = d.Inline[:d.Size] // the encoding has whole groups of four
		}
	case "u":
		d.Place, err = s.vectorFile(v.Text)
	case "p":
		d.Place, err = s.place(v.Text)
	default:
		err = faults.Unsupported(fault.At{}, "a deletion vector stored as %s", strconv.Quote(v.Storage))
	}
	return d, err
}

// vectorFile returns the name of the file of a vector whose text is a directory and a UUID.
func (s *Snapshot) vectorFile(text string) (string, error) {
	at := len(text) - nameLength
	if at < 0 {
		return "", faults.Corrupt(fault.At{}, "the name of a deletion vector, %s", strconv.Quote(text))
	}
	id, err := decodeZ85(text[at:])
	if err != nil {
		return "", err
	}
	u := hex.EncodeToString(id)
	name := "deletion_vector_" + strings.Join([]string{u[:8], u[8:12], u[12:16], u[16:20], u[20:]}, "-") + ".bin"
	if at > 0 {
		name = text[:at] + "/" + name
	}
	return s.dir + name, nil
}

// alphabet is that of Z85: https://rfc.zeromq.org/spec/32/.
const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// decodeZ85 decodes four bytes from each five characters.
func decodeZ85(s string) ([]byte, error) {
	wrong := func() ([]byte, error) { return nil, faults.Corrupt(fault.At{}, "text that is not in the encoding Z85") }
	if len(s)%5 != 0 {
		return wrong()
	}
	out := make([]byte, 0, len(s)/5*4)
	for ; len(s) > 0; s = s[5:] {
		n := uint64(0)
		for _, c := range []byte(s[:5]) {
			digit := strings.IndexByte(alphabet, c)
			if digit < 0 {
				return wrong()
			}
			n = n*85 + uint64(digit)
		}
		if n >= 1<<32 {
			return wrong()
		}
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	return out, nil
}
