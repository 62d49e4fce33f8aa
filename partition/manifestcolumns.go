package partition

import (
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/columns"
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
