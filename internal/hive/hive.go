// Package hive finds the directories of partitioned tables, whose names are
// name=value.
package hive

import "strings"

// Cut splits a slash-separated directory path before its first name=value
// element. dir must end in a slash. ok is false if there is no such element;
// before is then the whole path.
func Cut(dir string) (before, after string, ok bool) {
	at := 0
	for _, element := range strings.SplitAfter(dir, "/") {
		if i := strings.IndexByte(element, '='); i > 0 && strings.HasSuffix(element, "/") {
			return dir[:at], dir[at:], true
		}
		at += len(element)
	}
	return dir, "", false
}
