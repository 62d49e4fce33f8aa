package flags

// Descriptions of flags of several verbs.
const (
	NormalizeHelp = "`RULES` normalize strings: trim, lower, uuid, url, url-host"
	StrictHelp    = "fail if false positives or keys are too many, instead of warning"
)

// Descriptions of flags that scan and join have.
const (
	OutputHelp = "`OUT` x.parquet, .arrow, .csv, .tsv, .ndjson[.gz], directory/ or -"
	FormatHelp = "`FORMAT` parquet, arrow, csv, tsv or ndjson (default: by the name)"
)
