package flags

// Descriptions of flags of several verbs.
const (
	NormalizeHelp = "`RULES` for strings: trim, lower, uuid, url, url-host"
	StrictHelp    = "fail if false positives or keys are too many, instead of warning"
	TempDirHelp   = "`DIR` for what exceeds --memory (default: the system's)"
)

// Descriptions of flags that scan and join have.
const (
	OutputHelp = "`OUT` file.parquet, file.arrow, directory/ or - (a stream)"
	FormatHelp = "`FORMAT` of the output: parquet or arrow"
)
