package protocol

import (
	"fmt"
	"strings"
	"testing"
)

// The other candidate, without staging: a run writes an output in place, on condition that the
// object is the one that it has seen (If-Match), and then the root that lists it. Here a process does
// not even begin before the one before it has ended.
type inPlace struct {
	file    written // under the plain name
	root    written // what the newest generation lists
	num     uint8   // its number
	success uint8   // the generation in _SUCCESS
	late    put     // a write that may still take effect
	procs   [2]writer
}

// written is an object: its mark says by which recipe it was made.
type written struct{ recipe, ident uint8 }

// put is a conditional write.
type put struct{ over, what written }

type writer struct {
	at     uint8 // next step; 0: it has not begun
	recipe uint8
	seen   written
	wrote  written
	num    uint8
}

var inPlaceSteps = [...]string{"begins: reads the root and the file", "deletes _SUCCESS", "writes the file, if it is what it has seen", "creates the next generation", "puts _SUCCESS", "ended"}

// step is the next step of a process.
func (w *inPlace) step(p *writer) {
	switch p.at {
	case 0:
		p.seen, p.num = w.file, w.num
		if w.root == w.file && w.file.recipe == p.recipe { // whole, and as it would write it
			p.at = 3
		}
	case 1:
		w.success = 0
	case 2:
		p.wrote = written{p.recipe, w.file.ident + 1}
		if !w.put(put{p.seen, p.wrote}) {
			p.at = 4 // lost
		}
	case 3:
		if w.num != p.num {
			p.at = 4 // lost
		} else {
			w.root, w.num = p.wrote, w.num+1
			p.num = w.num
		}
	case 4:
		w.success = p.num
	}
	p.at++
}

func (w *inPlace) put(q put) bool {
	if w.file != q.over {
		return false
	}
	w.file = q.what
	return true
}

const ended = uint8(len(inPlaceSteps) - 1)

// each calls f with each next state.
func (w inPlace) each(f func(string, inPlace)) {
	for i, p := range w.procs {
		if p.at == ended || i > 0 && w.procs[i-1].at != ended {
			continue
		}
		who := fmt.Sprintf("p%d (recipe %d) ", i, p.recipe)
		next := w
		next.step(&next.procs[i])
		f(who+inPlaceSteps[p.at], next)
		next = w
		next.procs[i] = writer{at: ended}
		f(who+"is killed", next)
		if p.at == 2 {
			next.late = put{p.seen, written{p.recipe, 9}}
			f(who+"is killed as it "+inPlaceSteps[p.at]+", which may take effect later", next)
		}
	}
	if w.late != (put{}) {
		next := w
		next.late = put{}
		f(fmt.Sprintf("late: the write of recipe %d: %v", w.late.what.recipe, next.put(w.late)), next)
	}
}

// A write of a run that was given up lands over an output that the root lists, under _SUCCESS. This
// is why outputs are staged: a token that the root does not list is published by nobody.
func TestInPlaceIsWrong(t *testing.T) {
	first := inPlace{file: written{1, 1}, root: written{1, 1}, num: 1, success: 1}
	first.procs[0].recipe, first.procs[1].recipe = 2, 1
	trace := map[inPlace][]string{first: nil}
	for queue := []inPlace{first}; len(queue) > 0; queue = queue[1:] {
		w := queue[0]
		if w.success == w.num && w.root != w.file {
			want := "late: the write of recipe 2: true"
			if got := trace[w]; got[len(got)-1] != want {
				t.Errorf("got the trace\n%s\nwant %s at its end", strings.Join(got, "\n"), want)
			}
			t.Logf("%d states; _SUCCESS is of the root, which lists %v, but the file is %v\n%s", len(trace), w.root, w.file, strings.Join(trace[w], "\n"))
			return
		}
		w.each(func(what string, next inPlace) {
			if _, old := trace[next]; !old {
				trace[next] = append(trace[w][:len(trace[w]):len(trace[w])], what)
				queue = append(queue, next)
			}
		})
	}
	t.Error("not found")
}
