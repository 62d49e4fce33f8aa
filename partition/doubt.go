package partition

import (
	"fmt"
	"slices"
	"sync"
)

// maxDoubts bounds how many doubts a File keeps: a file whose writer is at fault
// may have one for each row group.
const maxDoubts = 3

// doubts are those about one file.
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

// Doubts returns what was found damaged in the file and could be done without,
// one sentence each: the answer is right all the same. It is complete when all
// that reads the file has ended.
func (f *File) Doubts() []string {
	f.doubts.mu.Lock()
	defer f.doubts.mu.Unlock()
	out := slices.Clone(f.doubts.list)
	if f.doubts.more > 0 {
		out = append(out, fmt.Sprintf("%s: %d more of the kind", f.Name, f.doubts.more))
	}
	return out
}
