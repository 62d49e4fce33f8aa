package budget

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
)

// TestShares: all shares together never exceed the account, and what is given back can
// be taken again.
func TestShares(t *testing.T) {
	a := New(1000)
	x, y := a.Share("the first"), a.Share("the second")
	if err := x.Take(600); err != nil {
		t.Fatal(err)
	}
	err := y.Take(401)
	if !errors.Is(err, fault.ErrMemory) || !strings.Contains(err.Error(), "the second needs") {
		t.Errorf("401 of 400 bytes: %v", err)
	}
	if x.Bytes() != 600 || y.Bytes() != 0 || a.InUse() != 600 {
		t.Errorf("%d and %d bytes in shares, %d in use, want 600, 0, 600", x.Bytes(), y.Bytes(), a.InUse())
	}
	x.Give(100)
	if err := y.Take(500); err != nil {
		t.Error(err)
	}
	x.GiveAll()
	y.GiveAll()
	if a.InUse() != 0 {
		t.Errorf("%d bytes in use after all was given back", a.InUse())
	}
	if err := New(0).Share("any").Take(1 << 60); err != nil {
		t.Errorf("an account without a bound: %v", err)
	}
}

// TestSharesTogether: many goroutines together never exceed the account.
func TestSharesTogether(t *testing.T) {
	a := New(100)
	var taken sync.WaitGroup
	for range 8 {
		taken.Go(func() {
			s := a.Share("one of many")
			for range 1000 {
				if s.Take(30) == nil {
					if all := a.InUse(); all < 30 || s.Bytes() != 30 {
						t.Errorf("%d bytes in use, %d of this share", all, s.Bytes())
					}
					s.Give(30)
				}
			}
		})
	}
	taken.Wait()
	if a.InUse() != 0 {
		t.Errorf("%d bytes in use after all was given back", a.InUse())
	}
}
