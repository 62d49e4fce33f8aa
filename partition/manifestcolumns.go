package partition

import (
	"github.com/apache/arrow/go/v15/arrow"

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
// stand for, without escapes, as the manifest has them: NULL is absent. Directories that
// are no columns of the log, as with HiveOff, have no value.
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
		if t := o.hiveType(p.Name); t != nil && !p.IsNull(t) {
			values[p.Name] = p.Text
		}
	}
	return values
}

// hiveType returns the type of a column that comes from the paths of the log; nil: there
// is none of that name.
func (o Output) hiveType(column string) arrow.DataType {
	for _, f := range o.logs { // as a rule the first one has it
		if f.hive == nil {
			continue
		}
		for _, c := range f.hive.columns {
			if c.Name == column {
				return c.Type
			}
		}
	}
	return nil
}
