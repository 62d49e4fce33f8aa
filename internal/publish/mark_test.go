package publish

import (
	"maps"
	"testing"
)

// TestMarkers checks which partitions have a _SUCCESS, while others are written. None is outside.
func TestMarkers(t *testing.T) {
	s := &State{Inputs: []Entry{{Input: "../dt=1/a"}, {Input: "c"}, {Input: "dt=1/a"}, {Input: "dt=1/b"}, {Input: "dt=2/x/a"}}}
	for _, c := range []struct {
		busy map[string]bool
		all  bool
		want map[string]bool
	}{
		{nil, true, map[string]bool{"_SUCCESS": true, "dt=1/_SUCCESS": true, "dt=2/_SUCCESS": true}},
		{map[string]bool{"dt=2": true}, false, map[string]bool{"_SUCCESS": false, "dt=1/_SUCCESS": true, "dt=2/_SUCCESS": false}},
		{map[string]bool{"dt=3": true}, false, map[string]bool{"_SUCCESS": false, "dt=1/_SUCCESS": true, "dt=2/_SUCCESS": true, "dt=3/_SUCCESS": false}},
		{map[string]bool{"": true, "dt=1": true}, false, map[string]bool{"_SUCCESS": false, "dt=1/_SUCCESS": false, "dt=2/_SUCCESS": true}},
	} {
		if got := s.markers(c.busy, c.all); !maps.Equal(got, c.want) {
			t.Errorf("busy %v: %v, want %v", c.busy, got, c.want)
		}
	}
}
