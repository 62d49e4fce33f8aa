package delta

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/lake"
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
	stats    bool // statistics are wanted
}

// Open reads the log up to the version that the name means. stats: files are to have Bounds.
func Open(ctx context.Context, src storage.Source, n lake.Name, stats bool) (*Snapshot, error) {
	s := &Snapshot{src: src, dir: slashed(n.Location), adds: map[key]*add{}, stats: stats}
	l, err := list(ctx, src, s.dir)
	if err != nil {
		return nil, err
	}
	if s.version, err = l.version(ctx, src, n); err != nil {
		return nil, err
	}
	at, parts := l.checkpoint(s.version)
	for _, o := range parts {
		if err := s.checkpoint(ctx, o); err != nil {
			return nil, err
		}
	}
	for v := at + 1; v <= s.version; v++ {
		o, ok := l.commits[v]
		if !ok {
			return nil, faults.Corrupt(fault.At{File: s.dir + logDir}, "the log lacks version %d, and has no checkpoint from there up to %d", v, s.version).
				WithHint("name a version that the log still has")
		}
		if err := s.commit(ctx, o); err != nil {
			return nil, err
		}
	}
	return s, s.check()
}

// commit replays a commit. Its actions have no order: removes come first, so that a file that gets
// another vector stays.
func (s *Snapshot) commit(ctx context.Context, o storage.Object) error {
	var adds []*add
	err := lines(ctx, s.src, o, func(a *action) error {
		if a.Add != nil {
			adds = append(adds, a.Add)
			a.Add = nil
		}
		return s.apply(ctx, a)
	})
	for _, a := range adds {
		s.add(a)
	}
	return err
}

// apply replays one action.
func (s *Snapshot) apply(ctx context.Context, a *action) error {
	switch {
	case a.Protocol != nil:
		s.protocol = a.Protocol
	case a.Metadata != nil:
		s.metadata = a.Metadata
	case a.Remove != nil:
		delete(s.adds, key{a.Remove.Path, a.Remove.Vector.id()})
	case a.Add != nil:
		s.add(a.Add)
	case a.Sidecar != nil:
		name := a.Sidecar.Path
		if !strings.Contains(name, "/") {
			name = s.dir + logDir + "_sidecars/" + name
		}
		return s.parquet(ctx, storage.Object{Name: name}, "add") // a sidecar has no sidecars
	}
	return nil
}

// add adds a file.
func (s *Snapshot) add(a *add) {
	if !s.stats {
		a.Stats = ""
	}
	s.adds[key{a.Path, a.Vector.id()}] = a
}

// checkpoint replays a part of a checkpoint. Its removes are those of files that may be deleted.
func (s *Snapshot) checkpoint(ctx context.Context, o storage.Object) error {
	if !strings.HasSuffix(o.Name, ".json") {
		return s.parquet(ctx, o, "add", "protocol", "metaData", "sidecar") // removes are for those who delete files
	}
	return lines(ctx, s.src, o, func(a *action) error {
		a.Remove = nil
		return s.apply(ctx, a)
	})
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
	in.Buffer(make([]byte, 64<<10), longestLine)
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
