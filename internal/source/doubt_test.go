package source

import (
	"fmt"
	"sync"
	"testing"
)

// Readers of a file doubt at once: each doubt counts once, and only the first few are kept.
func TestDoubtsAtOnce(t *testing.T) {
	const readers, same = 8, 5
	var d doubts
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() {
			for range same {
				d.add(fmt.Errorf("row group %d", i%2))
			}
			d.add(fmt.Errorf("reader %d", i))
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, text := range d.list {
		seen[text] = true
	}
	if len(d.list) != maxDoubts || len(seen) != maxDoubts {
		t.Errorf("%q: want %d different doubts", d.list, maxDoubts)
	}
	if d.more < readers-maxDoubts {
		t.Errorf("%d more, want %d or more", d.more, readers-maxDoubts)
	}
}
