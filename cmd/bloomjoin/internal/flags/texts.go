package flags

// Descriptions of flags of several verbs.
const (
	NormalizeHelp = "`RULES` make strings alike before comparing: some of trim,lower and one of uuid,url,url-host"
	StrictHelp    = "fail, and write nothing, instead of warning of too many false positives or keys"
	TempDirHelp   = "`DIR` directory for what exceeds --memory (default: the system's)"
)

// Descriptions of flags that scan and join have.
const (
	OutputHelp = "`OUT` file.parquet, .arrow, .csv, .tsv, .ndjson, .csv.gz…; directory/ for a file per input; - for a stream"
	FormatHelp = "`FORMAT` parquet, arrow, csv, tsv or ndjson (default: by the name)"
)
