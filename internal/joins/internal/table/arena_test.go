package table

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
)

// Several goroutines begin chunks at once: none is lost.
func TestArenaAtOnce(t *testing.T) {
	const writers, keys = 8, 200
	a := &arena{share: budget.New(0).Share("keys")}
	places := [writers][keys]uint64{}
	key := func(w, k int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d-%d;", w, k), chunkBytes/16) } // has a chunk of its own
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			var p openChunk
			for k := range keys {
				var err error
				if places[w][k], err = a.put(&p, key(w, k)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(a.dir()); n != writers*keys {
		t.Errorf("%d chunks, want %d", n, writers*keys)
	}
	for w := range writers {
		for k := range keys {
			if !bytes.Equal(keyAt(a.dir(), places[w][k]), key(w, k)) {
				t.Fatalf("writer %d: key %d is another", w, k)
			}
		}
	}
}
