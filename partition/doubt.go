package partition

import (
	"fmt"
	"slices"
	"sync"
)

// maxDoubts bounds the doubts that a File keeps: a faulty writer may cause one for
// each row group.
const maxDoubts = 3

// doubts collects damage of one file that readers worked around.
type doubts struct {
	mu   sync.Mutex
	list []string
	more int
}

func (d *doubts) add(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := err.Error()
	switch {
	case slices.Contains(d.list, text):
	case len(d.list) < maxDoubts:
		d.list = append(d.list, text)
	default:
		d.more++
	}
}

// Doubts describes damaged parts of the file that were not needed, one sentence
// each: results are right all the same. It is complete when all readers of the file
// have ended.
func (f *File) Doubts() []string {
	f.doubts.mu.Lock()
	defer f.doubts.mu.Unlock()
	out := slices.Clone(f.doubts.list)
	if f.doubts.more > 0 {
		out = append(out, fmt.Sprintf("%s: %d more of the kind", f.Name, f.doubts.more))
	}
	return out
}
