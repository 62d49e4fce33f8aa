package delta

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/storage"
)

// logDir is the directory of the log, below that of the table.
const logDir = "_delta_log/"

// listed is what the directory of the log has.
type listed struct {
	commits     map[int64]storage.Object
	checkpoints map[int64]map[string][]storage.Object // parts that belong together
}

// names are those of commits, and of checkpoints: whole, in parts, or with a UUID and maybe sidecars.
var (
	commitName     = regexp.MustCompile(`^(\d{20})\.json$`)
	checkpointName = regexp.MustCompile(`^(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.([0-9a-fA-F-]{36}))?\.(parquet|json)$`)
)

// list lists the log. _last_checkpoint is no more than a hint, which may be stale or damaged, so it
// is not read.
func list(ctx context.Context, src storage.Source, dir string) (*listed, error) {
	l := &listed{map[int64]storage.Object{}, map[int64]map[string][]storage.Object{}}
	prefix := dir + logDir
	err := objects.Walk(ctx, src, prefix, nil, func(o storage.Object) error {
		if o.Type == 0 {
			l.add(o, objects.Slashes(o.Name)[len(prefix):])
		}
		return nil
	})
	if err == nil && len(l.commits)+len(l.checkpoints) == 0 {
		e := faults.Mismatch(fault.At{File: dir}, "a Delta table", logDir+" with commits", "none")
		e.Err = fs.ErrNotExist
		err = e
	}
	return l, err
}

// add notes an object of the log. Others than commits and checkpoints do not matter.
func (l *listed) add(o storage.Object, name string) {
	if m := commitName.FindStringSubmatch(name); m != nil {
		if v, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			l.commits[v] = o
		}
		return
	}
	m := checkpointName.FindStringSubmatch(name)
	if m == nil || o.Size == 0 { // being written
		return
	}
	v, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return
	}
	if l.checkpoints[v] == nil {
		l.checkpoints[v] = map[string][]storage.Object{}
	}
	set := name
	if m[3] != "" {
		set = m[3] // how many parts there are
	}
	l.checkpoints[v][set] = append(l.checkpoints[v][set], o)
}

// newest returns the last version.
func (l *listed) newest() (last int64) {
	last = -1
	for v := range l.commits {
		last = max(last, v)
	}
	for v := range l.checkpoints {
		last = max(last, v)
	}
	return last
}

// checkpoint returns the newest complete checkpoint of a version up to the given one; -1: there is none.
func (l *listed) checkpoint(upTo int64) (at int64, parts []storage.Object) {
	at = -1
	for v, sets := range l.checkpoints {
		if v > upTo || v <= at {
			continue
		}
		for set, list := range sets {
			want := 1
			if n, err := strconv.Atoi(set); err == nil {
				want = n
			}
			if len(list) == want {
				at, parts = v, list
			}
		}
	}
	return at, parts
}

// version returns the version that a name means.
func (l *listed) version(ctx context.Context, src storage.Source, n lake.Name) (int64, error) {
	last := l.newest()
	switch {
	case n.Version != "":
		v, err := strconv.ParseInt(n.Version, 10, 64)
		if err != nil || v > last {
			return 0, faults.Mismatch(fault.At{File: n.Location}, "version of the table", "one up to "+strconv.FormatInt(last, 10), n.Version)
		}
		return v, nil
	case !n.Time.IsZero():
		return l.at(ctx, src, n, last)
	}
	return last, nil
}

// at returns the last version that was committed at a time or before. The time of a commit is the
// one that it has in itself, if it begins with one; else that of its file, or one more than that of the commit before
// if that is later.
func (l *listed) at(ctx context.Context, src storage.Source, n lake.Name, last int64) (int64, error) {
	first := last
	for l.commits[first-1].Name != "" {
		first--
	}
	found, before := int64(-1), int64(0)
	for v := first; v <= last; v++ {
		o, ok := l.commits[v]
		if !ok {
			continue
		}
		ms, err := committed(ctx, src, o)
		if err != nil {
			return 0, err
		}
		if ms == 0 {
			ms = max(o.ModTime.UnixMilli(), before+1)
		}
		if before = ms; ms > n.Time.UnixMilli() {
			break
		}
		found = v
	}
	if found < 0 {
		return 0, faults.Mismatch(fault.At{File: n.Location}, "time of a version", "one after the first commit of the log", n.Time.Format(time.RFC3339Nano))
	}
	return found, nil
}

// committed returns when a commit says that it was made; 0: it doesn't.
func committed(ctx context.Context, src storage.Source, o storage.Object) (ms int64, err error) {
	err = lines(ctx, src, o, func(a *action) error {
		if a.Info != nil && a.Info.Time != nil {
			ms = *a.Info.Time
		}
		return errFirst
	})
	if errors.Is(err, errFirst) {
		err = nil
	}
	return ms, err
}

// errFirst ends the reading of a commit after its first action, which is the one with a time.
var errFirst = errors.New("the first action alone matters")

// slashed returns a directory with a slash at its end.
func slashed(dir string) string { return strings.TrimRight(objects.Slashes(dir), "/") + "/" }
