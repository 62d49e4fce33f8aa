package partition

import (
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/columns"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/publish"
)

// columnsIn returns what the manifest says of the columns of the file that w has
// completed. Only Parquet files have statistics.
func columnsIn(w writer) (publish.Columns, error) {
	var s []parquet.LeafSummary
	var err error
	switch w := w.(type) {
	case pageWriter:
		s, err = w.layout.Summaries()
	case recordWriter:
		if p, ok := w.w.(*arrowparquet.ParquetWriter); ok {
			s, err = p.Summaries()
		}
	}
	if err != nil {
		return "", err
	}
	return columns.Of(s)
}

// valuesIn returns the values of the columns that the directories of an output's name
// stand for, in the form that the manifest has them: NULL is absent.
func (o Output) valuesIn(name string) map[string]string {
	if len(o.owner.Hive) == 0 {
		return nil
	}
	parts, err := hive.Parse(name)
	if err != nil {
		return nil // it was parsed before, as a part of the input's path
	}
	values := map[string]string{}
	for _, p := range parts {
		text := slices.Contains(o.owner.Hive, p.Name+":string")
		if !p.Null && (text || p.Text != "" && !strings.EqualFold(p.Text, "NULL")) {
			values[p.Name] = p.Text
		}
	}
	return values
}
