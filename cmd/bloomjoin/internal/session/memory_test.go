package session

import "testing"

// Bytes that are fetched ahead count toward --memory.
func TestMemoryOfStore(t *testing.T) {
	for _, memory := range []string{"64MiB", "256MiB", "1GiB", "64GiB"} {
		local, remote := &Session{memory: memory}, &Session{memory: memory, remote: true}
		all := local.inFlight()
		ahead, rest := fetched(all), remote.inFlight()
		if ahead < minFetched || ahead > maxFetched || rest < all/4 || ahead+rest > max(all, minFetched+all/4) {
			t.Errorf("%s: of %d, %d are for fetching and %d for pages", memory, all, ahead, rest)
		}
	}
}
