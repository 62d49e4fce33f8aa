package output

import (
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// judge returns an error if most of the lines that tasks have read of a text file are
// bad.
func judge(tasks []task) error {
	for len(tasks) > 0 {
		f := tasks[0].file
		var groups []int
		for len(tasks) > 0 && tasks[0].file == f {
			for g := tasks[0].group; g < tasks[0].after(); g++ {
				groups = append(groups, g)
			}
			tasks = tasks[1:]
		}
		if t, ok := source.Stored(f.Table()).(*text.Table); ok && len(groups) > 0 && f.NumGroups() > 1 {
			if err := t.Judge(groups); err != nil {
				return err
			}
		}
	}
	return nil
}
