package session

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// Live memory is a few large buffers that are reused, of which a fifth is much; beside them
// a run over many small files makes garbage of a small heap, of which a fifth is
// little. So garbage may be a fifth of the live heap, up to a bound, or a fixed room if
// that is more.
const (
	leastGarbage = 20        // per cent
	mostGarbage  = 128 << 20 // bytes
	roomPart     = 32        // of the memory, for the fixed room
	minRoom      = 4 << 20   // bytes
	maxRoom      = 16 << 20
)

var garbageRoom atomic.Int64

// PaceGC makes garbage collection follow the size of the live heap, unless GOGC says how
// often. It is for the start of the process.
func PaceGC() {
	if os.Getenv("GOGC") != "" || garbageRoom.Swap(maxRoom) > 0 {
		return
	}
	debug.SetGCPercent(100 * maxRoom / (4 << 20)) // of the smallest heap that the runtime assumes
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var collected func(*[2]*int)
	collected = func(sentinel *[2]*int) {
		metrics.Read(live)
		heap := max(int64(live[0].Value.Uint64()), 1<<20)
		garbage := max(garbageRoom.Load(), min(heap*leastGarbage/100, mostGarbage))
		debug.SetGCPercent(int(max(100*garbage/heap, 1)))
		runtime.SetFinalizer(sentinel, collected)
	}
	runtime.SetFinalizer(new([2]*int), collected)
}
