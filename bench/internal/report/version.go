package report

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Version returns the version of a module that is built into this program.
func Version(module string) (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("the program does not know what it was built from")
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version, nil
		}
	}
	return "", fmt.Errorf("module %s is not part of the program", module)
}
