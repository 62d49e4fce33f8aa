package publish

import (
	"context"
	"fmt"
)

// Verified is what is known of a directory.
type Verified struct {
	State    *State
	Complete bool     // there is a _SUCCESS, and no run is under way
	Problems []string // with the files of the state, and with what else is there
}

// Verify compares the directory with its state: that all files are there with their size
// and, with sums, their checksum and rows, and that there are no outputs besides. It
// changes nothing. The result is nil if there is no state and no run has begun.
func (d *Dir) Verify(ctx context.Context, sums bool) (*Verified, error) {
	l, err := d.look(ctx)
	if err != nil || l.newest == 0 && len(l.parts)+len(l.plans) == 0 {
		return nil, err
	}
	s, err := l.state(ctx)
	if err != nil {
		return nil, err
	}
	_, complete := l.objects[Success]
	v := &Verified{State: s, Complete: complete}
	if s.pending() {
		v.Problems = append(v.Problems, d.Name+": "+cutShort)
	}
	problems := make([]string, len(s.Files))
	err = d.all(len(problems), func(i int) (err error) {
		problems[i], err = d.verify(ctx, l, &s.Files[i], sums)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, problem := range problems {
		if problem != "" {
			v.Problems = append(v.Problems, fmt.Sprintf("%s: %s", d.path(s.Files[i].Name), problem))
		}
	}
	if why, err := l.unfinished(ctx, s); err != nil {
		return nil, err
	} else if why != "" {
		v.Problems = append(v.Problems, fmt.Sprintf("%s: not finished: %s", d.Name, why))
	}
	if one, other := s.twice(); other != "" {
		v.Problems = append(v.Problems, d.twice(one, other).Error())
	}
	if len(v.Problems) > 0 {
		v.Complete = false
		return v, nil
	}
	other, err := d.incomplete(ctx, l, s, map[string]bool{})
	if other != "" {
		v.Complete = false
		v.Problems = append(v.Problems, d.Name+": "+other)
	}
	return v, err
}

// verify returns what is wrong with a file, or "".
func (d *Dir) verify(ctx context.Context, l *listing, f *File, sums bool) (string, error) {
	o, ok := l.objects[f.Name]
	switch {
	case !ok:
		return "it is missing", nil
	case o.Type != 0:
		return "it is no regular file", nil
	case o.Size != f.Bytes:
		return fmt.Sprintf("want %d bytes, got %d", f.Bytes, o.Size), nil
	case !sums:
		return "", nil
	}
	sum, _, err := SumOf(ctx, d.Store, d.path(f.Name))
	if err != nil {
		return "", err
	}
	if f.Sum != "" && sum != f.Sum {
		return fmt.Sprintf("want the checksum %s, got %s", f.Sum, sum), nil
	}
	rows, err := d.Rows(ctx, d.path(f.Name))
	if err != nil {
		return err.Error(), nil
	}
	if rows != f.Rows {
		return fmt.Sprintf("want %d rows, got %d", f.Rows, rows), nil
	}
	return "", nil
}
