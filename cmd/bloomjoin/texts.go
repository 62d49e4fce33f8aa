package main

// Descriptions of flags of several verbs.
const (
	normalizeHelp = "`RULES` make strings alike before comparing: some of trim,lower,uuid"
	strictHelp    = "fail, and write nothing, instead of warning of too many false positives or keys"
	tempDirHelp   = "`DIR` directory for what exceeds --memory (default: the system's)"
)

// Descriptions of flags that scan and join have.
const (
	outputHelp = "`OUT` file.parquet or .arrow; directory/ for a file per input; - for an Arrow stream"
	formatHelp = "`FORMAT` format of the output: parquet or arrow (default: by the name)"
)
