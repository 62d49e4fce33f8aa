package output

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
)

// textMark is what Parquet and Arrow files have in their metadata. Text has no place for it, so
// that of rows.csv is in a file beside it, .rows.csv.bloomjoin: hidden, so that readers of the
// directory do not take it for data. It is published before the text, and says what text it is
// about: after a crash or a change, no other text is taken for the output of the run.
type textMark struct {
	Version  int               `json:"version"`
	Sum      string            `json:"xxh3"` // of the text, compressed if it is
	Rows     int64             `json:"rows"`
	Metadata map[string]string `json:"metadata"`
}

// maxMark is the largest size of a mark. Types of partition columns take most of it.
const maxMark = 1 << 20

// asText reports whether the output is text.
func (o Destination) asText() bool { return source.IsText(o.Format) }

// markOf returns the name of the file that describes a text file.
func markOf(name string) string {
	i := len(name)
	for i > 0 && !os.IsPathSeparator(name[i-1]) {
		i--
	}
	return name[:i] + "." + name[i:] + address.ManifestSuffix
}

// writeMark describes the text file that is to be published, given its checksum and number of rows.
func (o Destination) writeMark(ctx context.Context, sum string, rows int64) (err error) {
	if !o.owner.Known() {
		return nil
	}
	if !o.Force { // keep the mark of a file that stays
		if err := o.owner.Compare(ctx, o.Name); err != nil && !errors.Is(err, ErrDone) {
			return err
		}
	}
	b, err := json.Marshal(textMark{1, sum, rows, o.metadata()})
	if err != nil {
		return err
	}
	name := markOf(o.Name)
	if err := objects.Sweep(ctx, o.Store, name); err != nil {
		return err
	}
	file, err := o.Store.Create(ctx, name, storage.CreateOptions{})
	if err != nil {
		return err
	}
	defer faults.Join(&err, file.Abort)
	if _, err := file.Write(append(b, '\n')); err != nil {
		return err
	}
	return file.Commit(true)
}

// marker implements [publish.Owner].Marker.
func (o Destination) marker(ctx context.Context, name string) (marker string, table bool, err error) {
	if !o.asText() {
		return source.MarkerOf(ctx, o.Store, name)
	}
	for n := 0; ; n++ {
		m, err := o.markOfText(ctx, name)
		if err == nil || n == 100 || !errors.Is(err, storage.ErrChanged) { // else another attempt at the run has just written it
			return m.Metadata[source.MetaRun], true, err
		}
	}
}

// markOfText returns the mark of a text file, an empty one if it has none, or another text's.
func (o Destination) markOfText(ctx context.Context, name string) (textMark, error) {
	m, err := o.readMark(ctx, name)
	if err != nil || m.Version == 0 {
		return m, err
	}
	sum, _, err := publish.SumOf(ctx, o.Store, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return textMark{}, nil
	case err != nil || sum != m.Sum:
		return textMark{}, err
	}
	return m, nil
}

// readMark returns the mark beside a text file, whatever the text is; an empty one if there is none.
func (o Destination) readMark(ctx context.Context, name string) (m textMark, err error) {
	src, err := o.Store.Open(ctx, storage.Object{Name: markOf(name)})
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	b, err := io.ReadAll(io.NewSectionReader(src, 0, min(src.Object().Size, maxMark)))
	if err = errors.Join(err, src.Close()); err != nil {
		return m, fmt.Errorf("%s: %w", markOf(name), err)
	}
	if json.Unmarshal(b, &m) != nil || m.Version != 1 {
		return textMark{}, nil
	}
	return m, nil
}
