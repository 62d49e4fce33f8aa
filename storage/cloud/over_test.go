package cloud

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/storetest"
	"github.com/bloomjoin/bloomjoin/storage"
)

// commitOver writes an object in one request or in parts, in place of another.
func commitOver(t *testing.T, s *store, name string, body []byte, replace bool, over string) (string, error) {
	t.Helper()
	w := create(t, t.Context(), s, name)
	if err := write(w, body); err != nil {
		t.Fatal(err)
	}
	identity, _, err := objects.CommitOver(w, replace, over)
	return identity, errors.Join(err, w.Abort())
}

// TestCommitOver: a write replaces the object that was seen and no other, also when its response
// is lost, and returns the identity of what it wrote.
func TestCommitOver(t *testing.T) {
	t.Run("memory", func(t *testing.T) { overAll(t, newStore(t, Options{}), "mem://bucket/dir/") })
	t.Run("Google", func(t *testing.T) { overAll(t, newStore(t, Options{}), storetest.Google(t)) })
	t.Run("Azure", func(t *testing.T) { overAll(t, newStore(t, Options{}), storetest.Azure(t)) })
	t.Run("S3", func(t *testing.T) {
		g, s := gateway(t)
		overAll(t, s, g.Name("dir/"))
		if left := g.Uploads(t); len(left) > 0 {
			t.Errorf("unfinished: %q", left)
		}
	})
	for what, set := range map[string]func(f *lossyS3){
		"kept": func(*lossyS3) {}, "lost": func(f *lossyS3) { f.lose = 1 }, "twice": func(f *lossyS3) { f.twice = true }, "simple": func(f *lossyS3) { f.simple = true },
	} {
		f := newLossyS3(t)
		set(f)
		t.Run(what, func(t *testing.T) { overAll(t, f.store(t), "s3://bucket/dir/") })
	}
}

func overAll(t *testing.T, s *store, at string) {
	for _, size := range []int{100, firstPart + 100} {
		name := fmt.Sprint(at, size)
		body := func(b byte) []byte { return bytes.Repeat([]byte{b}, size) }
		if _, err := commitOver(t, s, name, body('x'), true, "0123"); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, storage.ErrChanged) {
			t.Errorf("%d bytes over what is not there: %v", size, err)
		}
		first, err := commitOver(t, s, name, body('a'), false, "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = commitOver(t, s, name, body('x'), false, "")
		says(t, "where an object is", err, fs.ErrExist)
		second, err := commitOver(t, s, name, body('b'), true, first)
		if o, failed := s.Stat(t.Context(), name); err != nil || failed != nil || second != o.Identity || second == first {
			t.Errorf("%d bytes: identity %q after %q, %v, %v; want %q", size, second, first, err, failed, o.Identity)
		}
		_, err = commitOver(t, s, name, body('x'), true, first)
		says(t, "over an earlier object", err, storage.ErrChanged, name)
		if o, err := s.Stat(t.Context(), name); err != nil || o.Identity != second {
			t.Errorf("%d bytes: %+v, %v, want the second", size, o, err)
		}
		if _, err := commitOver(t, s, name, body('c'), true, ""); err != nil {
			t.Errorf("over any: %v", err)
		}
	}
}

// TestPartsInOrder: parts may end in any order, and make up the object in theirs.
func TestPartsInOrder(t *testing.T) {
	f := newLossyS3(t)
	b, err := f.store(t).bucketOf(t.Context(), place{scheme: schemeS3, bucket: "bucket"})
	if err != nil {
		t.Fatal(err)
	}
	up, err := b.begin(t.Context(), "a", "mark")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 0, 1} {
		if err := up.part(t.Context(), n, []byte{'0' + byte(n)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := up.complete(t.Context(), anyVersion); err != nil {
		t.Fatal(err)
	}
	if got := string(f.objects["a"].body); got != "012" {
		t.Errorf("got %q", got)
	}
}

// TestStaged: a staged object has no name before it is published, and is published once. Tokens
// reach no other object.
func TestStaged(t *testing.T) {
	t.Run("memory", func(t *testing.T) { stageAll(t, newStore(t, Options{}), "mem://bucket/dir/") })
	t.Run("local", func(t *testing.T) { stageAll(t, newStore(t, Options{}), t.TempDir()+"/dir/") })
	t.Run("Google", func(t *testing.T) { stageAll(t, newStore(t, Options{}), storetest.Google(t)) })
	t.Run("Azure", func(t *testing.T) { stageAll(t, newStore(t, Options{}), storetest.Azure(t)) })
	t.Run("S3", func(t *testing.T) {
		g, s := gateway(t)
		stageAll(t, s, g.Name("dir/"))
		if left := g.Uploads(t); len(left) > 0 {
			t.Errorf("unfinished: %q", left)
		}
	})
}

func stageAll(t *testing.T, s *store, at string) {
	victim := at + "victim.staged"
	if _, err := commitOver(t, s, victim, []byte("kept"), false, ""); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 100, firstPart + 100} {
		name := fmt.Sprint(at, "x/", size)
		stage := func(b byte) (body []byte, token string) {
			t.Helper()
			w, seal, err := objects.Stage(t.Context(), s, name, "")
			if err != nil {
				t.Fatal(err)
			}
			body = bytes.Repeat([]byte{b}, size)
			err = write(w, body)
			token, _, _, sealErr := seal()
			if err := errors.Join(err, sealErr); err != nil {
				t.Fatal(err)
			}
			return body, token
		}
		holds := func(what, name string, want []byte) {
			t.Helper()
			if got, err := readAll(t, s, name); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, %d bytes: %d bytes, %v", what, size, len(got), err)
			}
		}
		publish := func(token string) error {
			t.Helper()
			identity, _, err := objects.Publish(t.Context(), s, name, token)
			if now, statErr := s.Stat(t.Context(), name); err == nil && (statErr != nil || now.Identity != identity) {
				t.Errorf("%d bytes: the identity %q, and it is %+v, %v", size, identity, now, statErr)
			}
			return err
		}
		late := func(what, token string, want []byte) {
			t.Helper()
			_, _, err := objects.Publish(t.Context(), s, name, token)
			if !strings.HasSuffix(t.Name(), "/S3") { // which may say that it has done what it did before
				says(t, what, err, fs.ErrNotExist)
			}
			holds(what, name, want)
		}
		first, old := stage('a')
		_, err := s.Stat(t.Context(), name)
		says(t, "staged only", err, fs.ErrNotExist)
		for i := range 2 {
			if err := publish(old); err != nil && (i == 0 || !errors.Is(err, fs.ErrNotExist)) {
				t.Errorf("%d bytes: %v", size, err)
			}
			holds("published", name, first)
		}
		second, token := stage('b')
		if err := publish(token); err != nil {
			t.Error(err)
		}
		if size > 0 {
			late("published late", old, second)
		}
		_, given := stage('c')
		for _, token := range []string{old, given, given} {
			if err := objects.Discard(t.Context(), s, name, token); err != nil {
				t.Error(err)
			}
		}
		if !strings.HasSuffix(t.Name(), "/Azure") { // which drops blocks when it likes
			late("published after it was discarded", given, second)
		}
		for _, hostile := range []string{"", "../victim.staged", "_/../../victim.staged", `{"mark":"00","hidden":"dir/victim.staged"}`, `{"mark":"/../../victim"}`, `{"mark":"00","blocks":1099511627776}`} {
			if publish(hostile) == nil {
				t.Errorf("%q is published", hostile)
			}
			_ = objects.Discard(t.Context(), s, name, hostile)
		}
		holds("at the end", name, second)
		holds("another object", victim, []byte("kept"))
	}
}
