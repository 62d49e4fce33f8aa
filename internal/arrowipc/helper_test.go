package arrowipc

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wantFault requires an error about the input's bytes that a check has found, not a
// recovered panic.
func wantFault(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, panics.ErrRecovered) {
		t.Errorf("got a recovered panic: %v", err)
	}
	if !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("got %v, want a fault", err)
	}
}

func wantCorrupt(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, fault.ErrCorrupt) {
		t.Errorf("got %v, want a corrupt input", err)
	}
}

func wantUnsupported(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "unsupported") {
		t.Errorf("got %v, want an unsupported input", err)
	}
}

// peakAllocator records the peak number of bytes in use.
type peakAllocator struct {
	memory.Allocator
	now, peak int
}

func (a *peakAllocator) add(n int) {
	a.now += n
	a.peak = max(a.peak, a.now)
}

func (a *peakAllocator) Allocate(n int) []byte {
	a.add(n)
	return a.Allocator.Allocate(n)
}

func (a *peakAllocator) Reallocate(n int, b []byte) []byte {
	a.add(n - len(b))
	return a.Allocator.Reallocate(n, b)
}

func (a *peakAllocator) Free(b []byte) {
	a.add(-len(b))
	a.Allocator.Free(b)
}
