package publish

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// claim is a file as a manifest lists it. Several runs may list the same file.
type claim struct {
	m *Manifest
	f File
}

// summary returns what _SUCCESS says of the directory, or why there cannot be
// one. waits is true if the only reason is that other workers of this run have
// not finished.
func (d *Dir) summary(ctx context.Context, l *listing) (sum *Manifest, lack string, waits bool, err error) {
	sum, lack, waits = d.finished(l)
	if lack != "" {
		return nil, lack, waits, nil
	}
	claims := map[string][]claim{}
	for _, m := range l.manifests {
		for _, f := range m.Files {
			claims[f.Name] = append(claims[f.Name], claim{m, f})
		}
	}
	for name, cs := range claims {
		trouble, err := d.settle(ctx, l, sum, cs)
		if err != nil {
			return nil, "", false, err
		}
		if trouble != "" && (lack == "" || name < lack) {
			lack = name + " is " + trouble
		}
	}
	slices.SortFunc(sum.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	for _, name := range l.data() {
		if claims[name] != nil || l.objects[name].Type != 0 || lack != "" {
			continue
		}
		if marker, _, err := d.Marker(ctx, d.path(name)); err != nil {
			return nil, "", false, err
		} else if marker != "" {
			lack = name + " is an output that no manifest lists"
		}
	}
	return sum, lack, false, nil
}

// finished returns a summary without files if all workers of all runs have
// finished; otherwise see summary.
func (d *Dir) finished(l *listing) (sum *Manifest, lack string, waits bool) {
	sum = &Manifest{Version: 2, Done: true, Files: []File{}}
	workers := map[string]uint32{}
	for i, m := range l.manifests {
		if workers[m.group()]++; !m.Done {
			return nil, "the run of " + m.name + " has not finished", m.of(d)
		}
		if i == 0 {
			sum.Run, sum.Of, sum.Result, sum.Filter = m.Run, m.Of, m.Result, m.Filter
		} else if m.group() != l.manifests[0].group() {
			sum.Run, sum.Of = "", 1
		}
		if m.Result != sum.Result || m.Filter != sum.Filter {
			sum.Result, sum.Filter = "", ""
		}
	}
	for _, m := range l.manifests {
		if n := workers[m.group()]; n < m.Of {
			return nil, fmt.Sprintf("%d of the %d workers of %s have finished", n, m.Of, m.name), m.of(d)
		}
	}
	return sum, "", false
}

// settle adds a file to the summary, as described by the first claim that is true
// of it. If none is, it returns what is wrong with the first one.
func (d *Dir) settle(ctx context.Context, l *listing, sum *Manifest, claims []claim) (trouble string, err error) {
	for i, c := range claims {
		now, err := d.trouble(ctx, l, c.m, c.f)
		if err != nil {
			return "", err
		}
		if now == "" {
			c.f.Run = c.m.Run
			sum.add(c.f)
			return "", nil
		}
		if i == 0 {
			trouble = now
		}
	}
	return trouble, nil
}

// succeed writes _SUCCESS if everything in the directory is there and whole, and
// otherwise removes it. The worker that finishes last writes it; two that finish
// at once write the same. A run that begins writes its manifest first and then
// removes _SUCCESS, so another look at the manifests after _SUCCESS was written
// shows whether it still holds.
func (d *Dir) succeed(ctx context.Context) (lack string, err error) {
	for range 100 {
		l, err := d.look(ctx)
		if err != nil {
			return "", err
		}
		sum, lack, waits, err := d.summary(ctx, l)
		if err != nil {
			return "", err
		}
		if lack != "" || len(l.manifests) == 0 {
			if waits {
				lack = ""
			}
			return lack, d.remove(ctx, Success)
		}
		if old, err := d.readManifest(ctx, Success); err == nil && old.says(sum) {
			return "", nil
		}
		if err := d.writeManifest(ctx, Success, sum); err != nil {
			return "", err
		}
	}
	return "other runs keep changing the directory", d.remove(ctx, Success)
}

// says reports whether two summaries are the same.
func (m *Manifest) says(other *Manifest) bool {
	return m.Run == other.Run && m.Of == other.Of && m.Result == other.Result && m.Filter == other.Filter &&
		m.Rows == other.Rows && m.Bytes == other.Bytes && reflect.DeepEqual(m.Files, other.Files)
}
