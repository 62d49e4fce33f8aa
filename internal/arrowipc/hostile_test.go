package arrowipc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// mutate returns a changed input and a description of the change.
func (a *apart) mutate(rng *rand.Rand) (b []byte, kind string) {
	c := a.clone()
	i := rng.IntN(len(c.messages))
	m := &c.messages[i]
	buffers := 0
	if i > 0 {
		_, buffers = buffersOf(m.meta)
	}
	switch rng.IntN(12) {
	case 0, 1, 2, 3:
		meta, all := m.meta, []site(nil)
		if a.stream || rng.IntN(3) > 0 {
			all = messageSites(meta)
		} else {
			meta, kind = c.footer, "footer: "
			all = sites(meta, footerOf)
		}
		for range 1 + rng.IntN(2) {
			s := all[rng.IntN(len(all))]
			change(rng, meta, s)
			kind += s.kind
		}
	case 4, 5, 6, 7:
		if buffers == 0 {
			return nil, ""
		}
		k := rng.IntN(buffers)
		p, pack := m.plain(k)
		switch kind = "values"; {
		case len(p) > 0 && rng.IntN(4) > 0:
			for range 1 + rng.IntN(3) {
				width := min(len(p), 1<<rng.IntN(4))
				change(rng, p, site{at: rng.IntN(len(p)/width) * width, width: width})
			}
		case rng.IntN(2) == 0:
			kind, p = "a shorter buffer", p[:rng.IntN(len(p)+1)]
		default:
			kind, p = "a longer buffer", append(p, make([]byte, 1+rng.IntN(64))...)
		}
		m.rewrite(k, pack(p))
	case 8:
		if buffers == 0 {
			return nil, ""
		}
		kind = "bytes of a body"
		for range 1 + rng.IntN(3) {
			if len(m.body) > 0 {
				m.body[rng.IntN(len(m.body))] ^= 1 << rng.IntN(8)
			}
		}
	case 9:
		kind = "order of messages"
		j := rng.IntN(len(c.messages))
		switch rng.IntN(3) {
		case 0:
			c.messages = append(c.messages[:j:j], c.messages[j+1:]...)
		case 1:
			c.messages = append(c.messages, c.messages[j])
		default:
			c.messages[i], c.messages[j] = c.messages[j], c.messages[i]
		}
	case 10:
		b = c.bytes()
		return b[:rng.IntN(len(b))], "cut"
	default:
		kind, b = "bytes", c.bytes()
		for range 1 + rng.IntN(4) {
			b[rng.IntN(len(b))] = byte(rng.Uint32())
		}
		return b, kind
	}
	return c.bytes(), kind
}

// hostileSeeds returns the seeds of the other tests, and dictionaries with deltas
// and replacements, split into parts.
func hostileSeeds(t testing.TB) (out []*apart) {
	for _, stream := range []bool{false, true} {
		for _, b := range seeds(t, stream) {
			out = append(out, takeApart(b, stream))
		}
	}
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	r := rand.New(rand.NewPCG(13, 14))
	words := func(n int) arrow.ArrayData {
		rec := sample(r, memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{field1("w", arrow.BinaryTypes.String)}, nil), n)
		return rec.Column(0).Data()
	}
	rec := sample(r, memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{field1("c", dt)}, nil), 20)
	var batch rawBatch
	batch.add(rec.Column(0).Data())
	message := batch.message(20, -1, false)
	deltas := stream(schemaMessage(dt), dictMessage(words(4), 0, false), dictMessage(words(5), 0, true), message, dictMessage(words(9), 0, false), message)
	return append(out, takeApart(deltas, true))
}

// TestHostile reads changed inputs with correct framing. There is no panic, not
// even a recovered one, no hang, no leak, and no more memory than the limits.
// BLOOMJOIN_MUTATIONS is the number of mutations (default 3000); each depends on
// its number alone.
func TestHostile(t *testing.T) {
	count := 3000
	if s := os.Getenv("BLOOMJOIN_MUTATIONS"); s != "" {
		var err error
		if count, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	all := hostileSeeds(t)
	for i, a := range all {
		if err := try(t, a.bytes(), a.stream); err != nil {
			t.Fatalf("seed %d as it was: %v", i, err)
		}
	}
	kinds, texts := map[string]int{}, map[string]int{}
	read, refused, panicked := 0, 0, 0
	for i := range count {
		rng := rand.New(rand.NewPCG(19, uint64(i)))
		a := all[rng.IntN(len(all))]
		b, kind := a.mutate(rng)
		if b == nil {
			continue
		}
		kinds[kind]++
		err := attempt(t, fmt.Sprintf("mutation %d, %s", i, kind), b, a.stream)
		switch {
		case err == nil:
			read++
		case errors.Is(err, panics.ErrRecovered):
			panicked++
		default:
			refused++
		}
		if e := (*fault.Error)(nil); errors.As(err, &e) {
			texts[strings.Map(noDigit, e.What.String())]++
		}
	}
	t.Logf("%d inputs: %d read, %d refused with %d texts, %d recovered panics", count, read, refused, len(texts), panicked)
	if count >= 3000 && (read < count/10 || refused < count/4 || len(texts) < 40 || len(kinds) < 15) {
		t.Errorf("the mutations do not get far: %v", kinds)
	}
}

func noDigit(c rune) rune {
	if c >= '0' && c <= '9' {
		return -1
	}
	return c
}

// attempt is try with a description for panics and hangs.
func attempt(t *testing.T, name string, b []byte, stream bool) error {
	t.Helper()
	timer := time.AfterFunc(time.Minute, func() { panic(name + " hangs") })
	defer timer.Stop()
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("%s: %v\n%s", name, r, debug.Stack())
		}
	}()
	failed := t.Failed()
	err := try(t, b, stream)
	if t.Failed() && !failed {
		t.Errorf("%s: see above", name)
	}
	return err
}
