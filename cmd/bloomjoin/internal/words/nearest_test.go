package words

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

func TestNearest(t *testing.T) {
	names := []string{"user_id", "USER_IP", "url", "ts"}
	for got, want := range map[string]int{"user_ip": 1, "userid": 0, "usr_id": 0, "URL": 2, "x": -1, "t": 3, "country": -1, "": -1} {
		if i := nearest(got, names, maxTypos(got)); i != want {
			t.Errorf("%q: %d, want %d", got, i, want)
		}
	}
	if i := nearest("ab", []string{"ax", "ay"}, 1); i != 0 {
		t.Errorf("of two that are as near: %d, want the first", i)
	}
	if i := nearest("x", nil, 9); i != -1 {
		t.Errorf("of none: %d", i)
	}
}

// The libraries report which names there are; the command adds the one that was
// probably meant, wherever the error is wrapped.
func TestSuggest(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("users.csv", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	column := func(name string, have ...keys.Path) error {
		return &keys.NotFoundError{Path: keys.Path{name}, Name: name, Err: fmt.Errorf("no column %q", name), Have: have}
	}
	called := &keys.NotFoundError{Path: keys.Path{"x_ids"}, Name: "x_ids", Err: errors.New("no column x_ids"), Have: []keys.Path{{"x_id"}, {"ids", "x"}}, Meant: keys.Path{"ids", "x"}}
	file := func(name string) error { return &faults.NotExist{Name: name} }
	for _, c := range []struct {
		err           error
		library, want string
	}{
		{column("idd", keys.Path{"id"}, keys.Path{"b"}), `no column "idd" (there are id, b)`, `no column "idd" (did you mean id? there are id, b)`},
		{column("nme", keys.Path{"user", "id"}, keys.Path{"user", "na.me"}), `no column "nme" (there are user.id, user."na.me")`, `no column "nme" (did you mean user."na.me"? there are user.id, user."na.me")`},
		{column("country", keys.Path{"id"}), `no column "country" (there is only "id")`, `no column "country" (there is only "id")`},
		{column("x"), `no column "x"`, `no column "x"`},
		{called, "no column x_ids (there are x_id, ids.x)", "no column x_ids (did you mean ids.x? there are x_id, ids.x)"},
		{file("user.csv"), "user.csv: no such file or directory (check the path)", "user.csv: no such file or directory (did you mean users.csv?)"},
		{file("suers.csv"), "suers.csv: no such file or directory (check the path)", "suers.csv: no such file or directory (did you mean users.csv?)"},
		{column("k", keys.Path{"v"}), `no column "k" (there is only "v")`, `no column "k" (there is only "v")`},
		{file("users.txt"), "users.txt: no such file or directory (check the path)", "users.txt: no such file or directory (did you mean users.csv?)"},
		{file("users.csv,b"), "users.csv,b: no such file or directory (check the path)", "users.csv,b: no such file or directory (commas do not separate files: repeat the flag, or name the files one after another)"},
		{file(filepath.Join("logs", "x")), "logs/x: no such file or directory (check the path)", "logs/x: no such file or directory (check the path)"},
	} {
		for _, wrapped := range []string{"%w", "a.parquet: %w (b)", "x (y): %w"} {
			err := fmt.Errorf(wrapped, c.err)
			if got, want := err.Error(), fmt.Errorf(wrapped, errors.New(c.library)).Error(); got != want {
				t.Errorf("the library says %q, want %q", got, want)
			}
			if got, want := Error(err), fmt.Errorf(wrapped, errors.New(c.want)).Error(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
}
