package delta

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Snapshot is a version of a table.
type Snapshot struct {
	src     storage.Source
	dir     string // with a slash at its end
	version int64

	protocol *protocol
	metadata *metadata
	table    *lake.Table
	adds     map[key]*add
	sidecars []storage.Object
	values   map[string]map[string]*string // of partitions, by their text
	stats    bool                          // statistics are wanted
}

// Open reads the log up to the version that the name means. stats: files are to have Bounds.
func Open(ctx context.Context, src storage.Source, n lake.Name, stats bool) (*Snapshot, error) {
	s := &Snapshot{src: src, dir: strings.TrimRight(objects.Slashes(n.Location), "/") + "/", adds: map[key]*add{}, values: map[string]map[string]*string{}, stats: stats}
	l, err := list(ctx, src, n, s.dir)
	if err != nil {
		return nil, err
	}
	if s.version, err = l.version(ctx, src, n); err != nil {
		return nil, err
	}
	at, log := l.checkpoint(s.version)
	if err := s.replay(ctx, log); err != nil {
		return nil, err
	}
	sidecars := s.sidecars // of the checkpoint: commits have none
	if err := s.replay(ctx, sidecars); err != nil {
		return nil, err
	}
	log = nil
	for v := at + 1; v <= s.version; v++ {
		o, ok := l.commits[v]
		if !ok {
			return nil, faults.Corrupt(fault.At{File: s.dir + logDir}, "the log lacks version %d, and has no checkpoint from there up to %d", v, s.version).
				WithHint("name a version that the log still has")
		}
		log = append(log, o)
	}
	if err := s.replay(ctx, log); err != nil {
		return nil, err
	}
	return s, s.check()
}

// Objects of the log are read at once up to this number, or to their size together.
const (
	atOnce    = 16
	readAhead = 64 << 20
)

// replay reads objects of the log, several at once, and applies the actions of one after the other.
func (s *Snapshot) replay(ctx context.Context, log []storage.Object) error {
	for len(log) > 0 {
		n, size := 1, log[0].Size
		for ; n < min(len(log), atOnce) && size+log[n].Size <= readAhead; n++ {
			size += log[n].Size
		}
		read := make([][]*action, n)
		g, ctx := errgroup.WithContext(ctx)
		for i, o := range log[:n] {
			g.Go(func() (err error) {
				defer panics.Recover(fault.At{File: o.Name}, &err)
				debug.SetPanicOnFault(true)
				read[i], err = s.actions(ctx, o)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for _, actions := range read {
			if err := s.apply(actions); err != nil {
				return err
			}
		}
		log = log[n:]
	}
	return nil
}

// apply applies the actions of one object. They have no order: removes come first, so that a file that
// gets another vector stays.
func (s *Snapshot) apply(actions []*action) (err error) {
	for _, a := range actions {
		switch {
		case a.Protocol != nil:
			s.protocol = a.Protocol
		case a.Metadata != nil:
			s.metadata = a.Metadata
		case a.Remove != nil:
			delete(s.adds, key{a.Remove.Path, a.Remove.Vector.id()})
		case a.Sidecar != nil:
			o := storage.Object{Name: a.Sidecar.Path, Size: max(a.Sidecar.Size, 0)}
			if !strings.Contains(o.Name, "/") {
				o.Name = s.dir + logDir + "_sidecars/" + o.Name
			} else if o.Name, err = s.place(o.Name); err != nil {
				return err
			}
			s.sidecars = append(s.sidecars, o)
		}
	}
	for _, a := range actions {
		if a.Add != nil {
			a.Add.Partition = s.shared(a.Add.Partition)
			s.adds[key{a.Add.Path, a.Add.Vector.id()}] = a.Add
		}
	}
	return nil
}

// shared returns values of partitions that files share if they are equal: there may be a million.
func (s *Snapshot) shared(values map[string]*string) map[string]*string {
	text, err := json.Marshal(values)
	if err != nil {
		return values
	}
	if same, ok := s.values[string(text)]; ok {
		return same
	}
	s.values[string(text)] = values
	return values
}

// actions reads an object of the log.
func (s *Snapshot) actions(ctx context.Context, o storage.Object) (all []*action, err error) {
	each := func(a *action) error {
		if a.Add != nil && !s.stats {
			a.Add.Stats = ""
		}
		all = append(all, a)
		return nil
	}
	if strings.HasSuffix(o.Name, ".json") {
		return all, lines(ctx, s.src, o, each)
	}
	return all, rowsOf(ctx, s.src, o.Name, each)
}

// longestLine bounds an action: its statistics have a few values of each column.
const longestLine = 64 << 20

// lines calls apply for each line of an object.
func lines(ctx context.Context, src storage.Source, o storage.Object, apply func(*action) error) (err error) {
	r, err := src.Open(ctx, o)
	if err != nil {
		return err
	}
	defer faults.Join(&err, r.Close)
	in := bufio.NewScanner(io.NewSectionReader(r, 0, r.Object().Size))
	in.Buffer(make([]byte, min(max(r.Object().Size, 1), 4<<20)), longestLine)
	for n := 1; in.Scan(); n++ {
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		var a action
		if err := json.Unmarshal(line, &a); err != nil {
			e := faults.Corrupt(fault.At{File: o.Name}, "line %s is no action", strconv.Itoa(n))
			e.Err = err
			return e
		}
		if err := apply(&a); err != nil {
			return err
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return faults.Corrupt(fault.At{File: o.Name}, "a line of more than %d bytes", longestLine)
	}
	return in.Err()
}
