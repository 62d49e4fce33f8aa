package nearest_test

import (
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/nearest"
)

func TestIndex(t *testing.T) {
	names := []string{"user_id", "USER_IP", "url", "ts"}
	for got, want := range map[string]int{"user_ip": 1, "userid": 0, "usr_id": 0, "URL": 2, "x": -1, "t": 3, "country": -1, "": -1} {
		if i := nearest.Index(got, names, nearest.Most(got)); i != want {
			t.Errorf("%q: %d, want %d", got, i, want)
		}
	}
	if i := nearest.Index("ab", []string{"ax", "ay"}, 1); i != 0 {
		t.Errorf("of two that are as near: %d, want the first", i)
	}
	if i := nearest.Index("x", nil, 9); i != -1 {
		t.Errorf("of none: %d", i)
	}
}

func TestHint(t *testing.T) {
	for _, c := range []struct {
		names []string
		meant int
		want  string
	}{
		{[]string{"a", "b"}, -1, "there are a, b"},
		{[]string{"a", "b"}, 1, "did you mean b? there are a, b"},
		{[]string{"0"}, -1, `there is only "0"`},
	} {
		if got := nearest.Hint(c.names, c.meant); got != c.want {
			t.Errorf("%v, %d: %q, want %q", c.names, c.meant, got, c.want)
		}
	}
	many := strings.Split(strings.Repeat("x ", 21), " ")[:21]
	many[20] = "meant"
	if got := nearest.Hint(many, 20); !strings.HasPrefix(got, "did you mean meant? there are x, ") || !strings.HasSuffix(got, "x, …") {
		t.Errorf("21 names: %q", got)
	}
}
