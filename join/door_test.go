package join

import (
	"reflect"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/joins"
)

// fill gives each field of a struct a value that is not zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		f := v.Field(i)
		if !f.CanSet() {
			continue
		}
		switch f.Kind() {
		case reflect.String:
			f.SetString("s")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(3)
		case reflect.Uint32:
			f.SetUint(3)
		case reflect.Float64:
			f.SetFloat(0.5)
		case reflect.Struct:
			fill(t, f)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Func:
			f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value { return nil }))
		case reflect.Interface:
			f.Set(reflect.ValueOf(memory.DefaultAllocator))
		default:
			t.Fatalf("a field of kind %s", f.Kind())
		}
	}
}

// names returns the exported fields of a struct, and fails the test if one of them is zero.
func names(t *testing.T, v reflect.Value) (all []string) {
	t.Helper()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if !v.Type().Field(i).IsExported() {
			continue
		}
		if all = append(all, name); v.Field(i).IsZero() {
			t.Errorf("%s of %s got lost", name, v.Type())
		}
	}
	slices.Sort(all)
	return all
}

// Each option reaches the room, and each figure of a report comes out of it. Only the
// command sets Prepares, UnreadRows and UnreadNulls.
func TestNothingIsLostAtTheDoor(t *testing.T) {
	var o Options
	fill(t, reflect.ValueOf(&o).Elem())
	in := o.in()
	in.Prepares, in.UnreadRows, in.UnreadNulls = func(bool, int64) {}, 1, 1
	mine, rooms := names(t, reflect.ValueOf(o)), names(t, reflect.ValueOf(in))
	if want := slices.Sorted(slices.Values(append(mine, "Prepares", "UnreadRows", "UnreadNulls"))); !slices.Equal(rooms, want) {
		t.Errorf("the room has options %q, want %q", rooms, want)
	}

	var r joins.Report
	fill(t, reflect.ValueOf(&r).Elem())
	rep := out(r)
	if mine, rooms := names(t, reflect.ValueOf(rep)), names(t, reflect.ValueOf(r)); !slices.Equal(mine, rooms) {
		t.Errorf("a report has %q, the room's %q", mine, rooms)
	}
}
