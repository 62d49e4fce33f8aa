package keyset

import "encoding/hex"

// IDs is a numbering of distinct integers in an order that looks random: IDs 0 to
// n-1 are a set, and all others are certainly not in it.
type IDs struct {
	universe uint64 // the integers are below it
	bits     uint   // of the universe
}

// Dense returns a numbering of the integers below universe, which must be from 2 to
// 2^62.
func Dense(universe uint64) IDs {
	bits := uint(1)
	for universe > 1<<bits {
		bits++
	}
	return IDs{universe, bits}
}

// At returns the i-th integer; i must be below the universe. Results outside the
// universe are mixed again: a permutation's cycle returns inside eventually.
func (f IDs) At(i uint64) uint64 {
	for i = mixBits(i, f.bits); i >= f.universe; {
		i = mixBits(i, f.bits)
	}
	return i
}

// mixBits is a bijection of the integers of the given width, made from the steps of
// Mix: multiplication by an odd number and a right shift.
func mixBits(z uint64, bits uint) uint64 {
	mask, half := uint64(1)<<bits-1, (bits+1)/2
	z = (z + 0x9e3779b97f4a7c15) & mask
	for _, odd := range [...]uint64{0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0x9e3779b97f4a7c15} {
		z ^= z >> half
		z = z * odd & mask
	}
	return z ^ z>>half
}

// Lengths of string IDs, in bytes.
const (
	MinText = 16
	MaxText = 36
)

// AppendText appends the i-th string ID; i must be below 2^56. It is a hexadecimal
// UUID, cut to 16 to 36 bytes. Different IDs differ in their first 16 bytes, which
// hold 14 digits.
func AppendText(dst []byte, i uint64) []byte {
	const distinct = 56 // bits of 14 digits
	head := mixBits(i, distinct)<<(64-distinct) | Mix(i)>>distinct
	tail := Mix(^i)
	var octets [16]byte
	for k := range 8 {
		octets[k] = byte(head >> (56 - 8*k))
		octets[8+k] = byte(tail >> (56 - 8*k))
	}
	var digits [32]byte
	hex.Encode(digits[:], octets[:])
	at := len(dst)
	for _, part := range [...][]byte{digits[:8], digits[8:12], digits[12:16], digits[16:20]} {
		dst = append(append(dst, part...), '-')
	}
	dst = append(dst, digits[20:]...)
	length := MinText + Mix(i^0x94d049bb133111eb)%(MaxText-MinText+1)
	return dst[:at+int(length)]
}
