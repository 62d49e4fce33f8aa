package delta

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strconv"
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
var names = regexp.MustCompile(`^(\d{20})\.(?:json|checkpoint(?:\.(\d{10})\.(\d{10})|\.([0-9a-fA-F-]{36}))?\.(parquet|json))$`)

// list lists the log. It does not read _last_checkpoint: that is a hint, and may be stale or damaged.
func list(ctx context.Context, src storage.Source, n lake.Name, dir string) (*listed, error) {
	l := &listed{map[int64]storage.Object{}, map[int64]map[string][]storage.Object{}}
	prefix := dir + logDir
	err := objects.Walk(ctx, src, prefix, nil, func(o storage.Object) (err error) {
		if o.Type&fs.ModeSymlink != 0 { // a version that is left out would be an older one
			if o, err = src.Stat(ctx, o.Name); err != nil {
				return err
			}
		}
		if o.Type == 0 {
			l.add(o, objects.Slashes(o.Name)[len(prefix):])
		}
		return nil
	})
	if err == nil && len(l.commits)+len(l.checkpoints) == 0 {
		e := faults.Mismatch(fault.At{File: n.Text}, "a Delta table", logDir+" with commits", "none").WithHint("name the directory that has %s", logDir)
		e.Err = fs.ErrNotExist
		err = e
	}
	return l, err
}

// add notes an object of the log. Others than commits and checkpoints do not matter.
func (l *listed) add(o storage.Object, name string) {
	m := names.FindStringSubmatch(name)
	if m == nil {
		return
	}
	v, err := strconv.ParseInt(m[1], 10, 64)
	switch {
	case err != nil:
	case m[5] == "":
		l.commits[v] = o
	case o.Size > 0: // else it is being written
		if l.checkpoints[v] == nil {
			l.checkpoints[v] = map[string][]storage.Object{}
		}
		set := cmp.Or(m[3], name) // how many parts there are
		l.checkpoints[v][set] = append(l.checkpoints[v][set], o)
	}
}

// checkpoint returns the newest complete checkpoint of a version up to the given one; -1: there is none.
func (l *listed) checkpoint(upTo int64) (at int64, parts []storage.Object) {
	at = -1
	for v, sets := range l.checkpoints {
		if v > upTo || v <= at {
			continue
		}
		for set, list := range sets {
			want, err := strconv.Atoi(set)
			if err != nil {
				want = 1
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
	last := slices.Max(slices.AppendSeq(slices.Collect(maps.Keys(l.commits)), maps.Keys(l.checkpoints)))
	switch {
	case n.Version != "":
		v, err := strconv.ParseInt(n.Version, 10, 64)
		if err != nil || v > last {
			return 0, faults.Mismatch(fault.At{File: n.Text}, "the version of the table", "up to "+strconv.FormatInt(last, 10), n.Version).WithHint("name one that there is")
		}
		return v, nil
	case !n.Time.IsZero():
		return l.at(ctx, src, n, last)
	}
	return last, nil
}

// at returns the last version that was committed at a time or before. The time of a commit is the
// one that it has in itself, if the newest has one; else that of its file, or one more than that of the
// commit before if that is later. Few commits are read: times ascend.
func (l *listed) at(ctx context.Context, src storage.Source, n lake.Name, last int64) (int64, error) {
	for last > 0 && l.commits[last].Name == "" { // nothing says when a checkpoint's version was made
		last--
	}
	first := last
	for l.commits[first-1].Name != "" {
		first--
	}
	var failed error
	own := func(v int64) (ms int64) {
		if failed == nil && l.commits[v].Name != "" {
			ms, failed = committed(ctx, src, l.commits[v])
		}
		return ms
	}
	find := func(from, to int64, is func(v int64) bool) int64 { // the first that is; to: none
		return from + int64(sort.Search(int(to-from), func(i int) bool { return is(from + int64(i)) }))
	}
	until, end := n.Time.UnixMilli(), last+1
	since := end // the first commit with a time of its own
	if own(last) != 0 {
		since = find(first, end, func(v int64) bool { return own(v) != 0 })
	}
	if since < end && own(since) <= until {
		end = find(since, end, func(v int64) bool { return own(v) > until })
	} else {
		end = l.modified(first, since, until)
	}
	if failed == nil && end == first {
		failed = faults.Mismatch(fault.At{File: n.Text}, "the time", "one after the first commit of the log", n.Time.Format(time.RFC3339Nano)).WithHint("name a later time, or a version as @v3")
	}
	return end - 1, failed
}

// modified returns the first version from lo to hi, exclusive, whose file is later than a time; hi: none.
func (l *listed) modified(lo, hi, until int64) int64 {
	for v, before := lo, int64(0); v < hi; v++ {
		if before = max(l.commits[v].ModTime.UnixMilli(), before+1); before > until {
			return v
		}
	}
	return hi
}

// committed returns when a commit says that it was made; 0: it doesn't.
func committed(ctx context.Context, src storage.Source, o storage.Object) (ms int64, err error) {
	err = lines(ctx, src, o, func(a *action) error {
		if a.Info != nil && a.Info.Time != nil {
			ms = *a.Info.Time
		}
		return fs.SkipAll // the first action alone has a time
	})
	if errors.Is(err, fs.SkipAll) {
		err = nil
	}
	return ms, err
}
