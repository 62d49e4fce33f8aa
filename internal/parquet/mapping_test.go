package parquet

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// mapBytes makes walks over the file read the mapping until unmap is called, which the
// end of the test does.
func mapBytes(t *testing.T, f *File, m *Mapping) (unmap func()) {
	t.Helper()
	ended := false
	m.Unmap = func() error { ended = true; return nil }
	release, err := f.Map(func() (*Mapping, error) { return m, nil })
	if err != nil {
		t.Fatal(err)
	}
	unmap = sync.OnceFunc(func() {
		if last, err := release(); !last || err != nil || !ended {
			t.Errorf("the mapping is still held: last %t, ended %t, %v", last, ended, err)
		}
	})
	t.Cleanup(unmap)
	return unmap
}

// TestMappingCounts checks who keeps a mapping: those that called Map, and walks that
// began meanwhile, until they are closed.
func TestMappingCounts(t *testing.T) {
	in := manyPages(t, 20_000, 4<<10)
	f, err := openBytes(in, "input")
	if err != nil {
		t.Fatal(err)
	}
	maps, gone, changed := 0, 0, errors.New("it has changed")
	open := func() (*Mapping, error) {
		maps++
		b := bytes.Clone(in)
		return &Mapping{Bytes: b, Unmap: func() error {
			gone++
			clear(b) // a walk that still reads it finds no page
			return changed
		}}, nil
	}
	mapped := func() func() (bool, error) {
		t.Helper()
		release, err := f.Map(open)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	ends := func(release func() (bool, error), want bool) {
		t.Helper()
		if last, err := release(); last != want || (err != nil) != want {
			t.Errorf("last %t, %v; want %t", last, err, want)
		}
	}
	drain := func(c *Chunk) (rows int) {
		t.Helper()
		for {
			p, err := c.Next(t.Context())
			if errors.Is(err, io.EOF) {
				return rows
			}
			if err != nil {
				t.Fatal(err)
			}
			rows += p.Rows
		}
	}
	want := int(f.RowGroups[0].Rows)

	early := f.Chunk(0, 0) // before there is a mapping
	first, second := mapped(), mapped()
	ends(first, false)
	during := f.Chunk(0, 0)
	ends(second, false) // during has it
	if maps != 1 || gone != 0 {
		t.Fatalf("%d mappings, %d ended: want 1 and 0", maps, gone)
	}
	late := f.Chunk(0, 0) // joins it
	for _, c := range []*Chunk{early, during, late} {
		if rows := drain(c); rows != want {
			t.Errorf("%d rows, want %d", rows, want)
		}
	}
	early.Close()
	during.Close()
	if gone != 0 {
		t.Error("the mapping ended while a walk had it")
	}
	late.Close()
	if gone != 1 {
		t.Errorf("%d mappings ended, want 1", gone)
	}
	after := f.Chunk(0, 0)
	ends(mapped(), true)
	if rows := drain(after); rows != want || maps != 2 || gone != 2 {
		t.Errorf("%d rows, want %d; %d mappings, %d ended", rows, want, maps, gone)
	}
	after.Close()
	if _, err := f.Map(func() (*Mapping, error) { return nil, io.ErrClosedPipe }); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}

// Goroutines that map a file at the same time share one mapping, which ends with the last of them.
func TestMapAtOnce(t *testing.T) {
	const holders = 8
	var f File
	var opened, unmapped atomic.Int32
	open := func() (*Mapping, error) {
		opened.Add(1)
		time.Sleep(time.Millisecond) // the others come meanwhile
		return &Mapping{Unmap: func() error { unmapped.Add(1); return nil }}, nil
	}
	var held, done sync.WaitGroup
	held.Add(holders)
	var lasts atomic.Int32
	for range holders {
		done.Go(func() {
			release, err := f.Map(open)
			held.Done()
			if err != nil {
				t.Error(err)
				return
			}
			held.Wait()
			switch last, err := release(); {
			case err != nil:
				t.Error(err)
			case last:
				lasts.Add(1)
			}
		})
	}
	done.Wait()
	if opened.Load() != 1 || unmapped.Load() != 1 || lasts.Load() != 1 {
		t.Errorf("opened %d times, ended %d times, by %d: want 1 each", opened.Load(), unmapped.Load(), lasts.Load())
	}
}
