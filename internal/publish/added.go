package publish

import (
	"bytes"
	"context"
	"io"
	"slices"
)

// linesAtOnce is the number of lines that are held in memory.
const linesAtOnce = 256

// WriteAdded writes a line for each file of the state, with the full name of the file and the columns
// of its directories. It returns the name of what it has written. The next commit removes that, as it
// is then of an earlier state.
func (d *Dir) WriteAdded(ctx context.Context, format string, line func(f *File, name string, hive []string) ([]byte, error)) (string, error) {
	s, err := d.state(ctx)
	if err != nil {
		return "", err
	}
	var hive []string
	if len(s.Recipes) > 0 {
		hive = s.Recipes[0].Hive
	}
	name := "add-" + format + ".jsonl"
	return d.manifest(name), d.writeFile(ctx, name, true, func(w io.Writer) error {
		for files := range slices.Chunk(s.Files, linesAtOnce) {
			lines := make([][]byte, len(files))
			err := d.all(len(files), func(i int) (err error) {
				lines[i], err = line(&files[i], d.path(files[i].Name), hive)
				return err
			})
			if err == nil {
				_, err = w.Write(append(bytes.Join(lines, []byte("\n")), '\n'))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
