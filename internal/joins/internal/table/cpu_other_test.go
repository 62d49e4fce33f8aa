//go:build !unix

package table

import "time"

var begun = time.Now()

// spentCPU returns the time since the process began in nanoseconds: the system does not report
// processor time as Unix does.
func spentCPU() float64 { return float64(time.Since(begun)) }
