package flat

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	flatbuffers "github.com/google/flatbuffers/go"
)

// sample has a value in each kind of slot.
func sample() []byte {
	b := flatbuffers.NewBuilder(0)
	inner := func(n int32) flatbuffers.UOffsetT {
		b.StartObject(1)
		b.PrependInt32Slot(0, n, 0)
		return b.EndObject()
	}
	one, two := inner(1), inner(2)
	text := b.CreateString("text")
	b.StartVector(8, 3, 8)
	for i := 3; i > 0; i-- {
		b.PrependInt64(int64(i))
	}
	numbers := b.EndVector(3)
	b.StartVector(4, 2, 4)
	b.PrependUOffsetT(two)
	b.PrependUOffsetT(one)
	tables := b.EndVector(2)
	b.StartObject(9)
	b.PrependBoolSlot(0, true, false)
	b.PrependByteSlot(1, 7, 0)
	b.PrependInt16Slot(2, -8, 0)
	b.PrependInt32Slot(3, -9, 0)
	b.PrependInt64Slot(4, -10, 0)
	b.PrependUOffsetTSlot(5, text, 0)
	b.PrependUOffsetTSlot(6, numbers, 0)
	b.PrependUOffsetTSlot(7, tables, 0)
	b.PrependUOffsetTSlot(8, two, 0)
	b.Finish(b.EndObject())
	return b.FinishedBytes()
}

// content is everything in sample, as far as it can be read.
type content struct {
	flag        bool
	small       byte
	short       int16
	word        int32
	long        int64
	text, third string
	tables      [3]int32
}

func read(b []byte) (c content, err error) {
	t := Root(b)
	c = content{flag: t.Bool(4, false), small: t.Byte(6, 0), short: t.Int16(8, 0), word: t.Int32(10, 0), long: t.Int64(12, 0), text: string(t.Bytes(14))}
	if mem, n := t.Vector(16, 8); n == 3 {
		c.third = string(mem[16:24])
	}
	at, n := t.Tables(18)
	for i := range min(n, 2) {
		c.tables[i] = at(i).Int32(4, 0)
	}
	sub, _ := t.Table(20)
	c.tables[2] = sub.Int32(4, 0)
	return c, t.Err()
}

func TestRead(t *testing.T) {
	want := content{true, 7, -8, -9, -10, "text", string(binary.LittleEndian.AppendUint64(nil, 3)), [3]int32{1, 2, 2}}
	got, err := read(sample())
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// Slots that the writer omitted or its version did not have.
func TestEmptySlots(t *testing.T) {
	for name, table := range map[string]Table{"zero": {}, "last": Root(sample())} {
		sub, ok := table.Table(22)
		mem, n := table.Vector(22, 8)
		_, tables := table.Tables(22)
		if ok || sub.Int32(4, 5) != 5 || mem != nil || n != 0 || tables != 0 || table.Bytes(22) != nil ||
			!table.Bool(22, true) || table.Byte(22, 3) != 3 || table.Int16(22, 3) != 3 || table.Int64(22, 3) != 3 || table.Err() != nil {
			t.Errorf("%s: an empty slot has a value, or an error: %v", name, table.Err())
		}
	}
}

// An offset to outside the bytes is an error, whichever read finds it first.
func TestOutside(t *testing.T) {
	for n := range 24 {
		if _, err := read(sample()[:n]); err == nil {
			t.Errorf("cut to %d bytes: no error", n)
		}
	}
	b := sample()
	at := bytesAt(b, 14)
	for _, length := range []uint32{uint32(len(b)), 1 << 31, 1<<32 - 1} {
		binary.LittleEndian.PutUint32(b[at:], length)
		c, err := read(b)
		if err == nil || c.text != "" || c.long != -10 || c.third != "" {
			t.Errorf("a string of %d bytes: %+v, %v", length, c, err)
		}
	}
}

// bytesAt returns the position of the length of a slot's vector.
func bytesAt(b []byte, slot int) int64 {
	t := Root(b)
	pos, _ := t.field(slot, 4)
	return t.buf.indirect(pos)
}

// No change of any bytes makes a read panic.
func TestChanged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	whole, failed := sample(), 0
	for range 200_000 {
		b := append([]byte(nil), whole...)
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] = byte(r.Uint32()) >> r.IntN(8)
		}
		if r.IntN(4) == 0 {
			binary.LittleEndian.PutUint32(b[r.IntN(len(b)/4)*4:], uint32(r.Int32N(1<<r.IntN(31)))-8)
		}
		if _, err := read(b[:len(b)-r.IntN(3)]); err != nil {
			failed++
		}
	}
	if failed < 20_000 {
		t.Errorf("only %d changes were noticed", failed)
	}
}
