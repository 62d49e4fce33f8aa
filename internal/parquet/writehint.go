package parquet

import "github.com/parquet-go/parquet-go/format"

// LeavesDictionary reports whether the writer of a column chunk began a
// dictionary and then gave it up, as far as the footer tells: some of the data
// pages are coded by it, others are not.
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

// NoDictionary makes all values plain, also those that come coded. It is
// called before the first page is added.
func (c *ChunkWriter) NoDictionary() { c.mode = plain }
