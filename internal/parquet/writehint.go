package parquet

import "github.com/parquet-go/parquet-go/format"

// LeavesDictionary reports whether, according to the footer, a column chunk has
// both dictionary-coded and other data pages, that is, whether its writer started a
// dictionary and then gave it up.
func (f *File) LeavesDictionary(rowGroup, leaf int) bool {
	byDict, others := false, false
	for _, s := range f.Metadata.RowGroups[rowGroup].Columns[leaf].MetaData.EncodingStats {
		if s.Count <= 0 || s.PageType != format.DataPage && s.PageType != format.DataPageV2 {
			continue
		}
		if isCoded(s.Encoding) {
			byDict = true
		} else {
			others = true
		}
	}
	return byDict && others
}

// NoDictionary makes all values plain, even those that arrive coded. It must be
// called before the first page is added.
func (c *ChunkWriter) NoDictionary() { c.mode = plain }
