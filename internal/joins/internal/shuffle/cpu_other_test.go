//go:build !unix

package shuffle

import "time"

var begun = time.Now()

// cpu returns the time since the process began in nanoseconds: the system does not report
// processor time as Unix does.
func cpu() float64 { return float64(time.Since(begun)) }
