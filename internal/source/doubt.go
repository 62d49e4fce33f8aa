package source

import (
	"slices"
	"sync"
)

// maxDoubts limits the doubts that a File keeps, because a faulty writer may cause
// one per row group.
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
