// Package process makes names of temporary objects that identify the process that owns
// them. If it is killed, a later process recognises its objects and removes them.
package process

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// ID identifies a process. Another process that gets the same number later, or
// on another machine with the same storage, has another ID.
type ID struct {
	Host  string // 16 hexadecimal digits of the machine, its boot and its process namespace
	PID   int
	Start uint64 // when the process began, in a unit of the system's
}

// MaxLen is the length of the longest text of an ID.
const MaxLen = 16 + len("-") + 10 + len("-") + 20

// String returns HOST-PID-START, which Parse reads.
func (id ID) String() string { return fmt.Sprintf("%s-%d-%d", id.Host, id.PID, id.Start) }

// Parse reads the text of an ID.
func Parse(s string) (id ID, ok bool) {
	parts := strings.Split(s, "-")
	if len(parts) != 3 || len(parts[0]) != 16 {
		return id, false
	}
	pid, err1 := strconv.ParseUint(parts[1], 10, 31)
	start, err2 := strconv.ParseUint(parts[2], 10, 64)
	if err1 != nil || err2 != nil || pid == 0 {
		return id, false
	}
	return ID{parts[0], int(pid), start}, true
}

// Tag returns the digits of an owner in the names of what it has staged.
func Tag(owner string) string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(owner)))
}
