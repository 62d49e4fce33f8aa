package main

// shortErrors lists cases of which a part of the text is still to be written.
func shortErrors() []string {
	return []string{
		"A quote in a column name is not closed",
		"Two equals signs in a pair",
		"A key in a list",
		"A field of a column that is not a struct",
	}
}
