package sketch_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/sketch"
	"github.com/bloomjoin/bloomjoin/storage"
)

// What a program has not got from a function returns an error, and does not crash.
func TestZeroValues(t *testing.T) {
	ctx, name := t.Context(), filepath.Join(t.TempDir(), "x.bjs")
	good := sketchOf(sketch.Options{Key: "origin"}, "../testdata/flights/logs")
	for what, s := range map[string]*sketch.Sketch{"nil": nil, "zero": new(sketch.Sketch)} {
		var errs []error
		_, _, err := s.Estimate(key.Int64s([]int64{1}))
		errs = append(errs, err)
		_, _, err = s.Within(key.Int64s([]int64{1, 2}))
		errs = append(errs, err)
		_, _, err = s.Product(good)
		errs = append(errs, err)
		_, _, err = good.Product(s)
		errs = append(errs, err)
		_, _, err = s.Heavy(0.1)
		errs = append(errs, err)
		_, err = s.Save(ctx, storage.Local(), name, false)
		errs = append(errs, err)
		_, err = sketch.Merge(good, s)
		errs = append(errs, err)
		if i := slices.Index(errs, nil); i >= 0 {
			t.Errorf("call %d of a %s Sketch returns no error", i, what)
		}
	}
	if _, err := sketch.Merge(); err == nil {
		t.Error("nothing is merged")
	}
	if _, err := sketch.Load(ctx, nil, name); err == nil {
		t.Error("a sketch without a storage")
	}
	if _, err := good.Save(ctx, nil, name, false); err == nil {
		t.Error("a sketch without a storage is saved")
	}
	if _, err := sketch.Build(ctx, nil, sketch.Options{Key: "a"}); !errors.Is(err, storage.ErrNoFiles) {
		t.Errorf("no files: %v", err)
	}
}

// Questions that a sketch cannot answer are errors; NULLs and numbers without an equal do not occur.
func TestQuestions(t *testing.T) {
	s := sketchOf(sketch.Options{Key: "distance", Range: true, Epsilon: 0.01}, "../testdata/flights/logs")
	if _, _, err := s.Estimate(key.Strings([]string{"1"})); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("text: %v", err)
	}
	most, _, err := s.Estimate(key.Int64s([]int64{337, 337}).Valid([]bool{true, false}))
	if err != nil || most[0] < 347 || most[1] != 0 {
		t.Errorf("a NULL: %v, %v", most, err)
	}
	for _, ends := range [][]int64{nil, {1}, {1, 2, 3}} {
		if _, _, err := s.Within(key.Int64s(ends)); err == nil {
			t.Errorf("%d ends of a range", len(ends))
		}
	}
	if most, bound, err := s.Within(key.Int64s([]int64{5, 4})); most != 0 || bound != 0 || err != nil {
		t.Errorf("an empty range: %d, %d, %v", most, bound, err)
	}
	for _, phi := range []float64{0, 1, -1, 0.001} {
		if _, _, err := s.Heavy(phi); err == nil {
			t.Errorf("a share of %v", phi)
		}
	}
	if _, err := sketch.Merge(s, sketchOf(sketch.Options{Key: "distance", Range: true}, "../testdata/flights/logs")); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("unlike sizes: %v", err)
	}
}
