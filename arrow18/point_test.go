package arrow18_test

import (
	"errors"
	"reflect"

	v18 "github.com/apache/arrow-go/v18/arrow"
	v18array "github.com/apache/arrow-go/v18/arrow/array"
	v15 "github.com/apache/arrow/go/v15/arrow"
	v15array "github.com/apache/arrow/go/v15/arrow/array"
)

// point is an extension type with a parameter, the name of its reference system.
// Tests register it on one side, on both or on none.
const pointName = "test.point"

type point15 struct {
	v15.ExtensionBase
	system string
}

type point15Array struct{ v15array.ExtensionArrayBase }

func (a *point15Array) ValueStr(i int) string { return a.Storage().ValueStr(i) }

func newPoint15(system string) *point15 {
	f := v15.Field{Name: "xy", Type: v15.PrimitiveTypes.Float64}
	return &point15{ExtensionBase: v15.ExtensionBase{Storage: v15.FixedSizeListOfField(2, f)}, system: system}
}

func (*point15) ArrayType() reflect.Type { return reflect.TypeFor[point15Array]() }
func (*point15) ExtensionName() string   { return pointName }
func (p *point15) Serialize() string     { return p.system }
func (p *point15) String() string        { return "extension<point>" }
func (p *point15) ExtensionEquals(o v15.ExtensionType) bool {
	q, ok := o.(*point15)
	return ok && q.system == p.system
}
func (*point15) Deserialize(storage v15.DataType, data string) (v15.ExtensionType, error) {
	if p := newPoint15(data); v15.TypeEqual(p.Storage, storage) {
		return p, nil
	}
	return nil, errors.New("a point is two floats")
}

type point18 struct {
	v18.ExtensionBase
	system string
}

type point18Array struct{ v18array.ExtensionArrayBase }

func (a *point18Array) ValueStr(i int) string { return a.Storage().ValueStr(i) }

func newPoint18(system string) *point18 {
	f := v18.Field{Name: "xy", Type: v18.PrimitiveTypes.Float64}
	return &point18{ExtensionBase: v18.ExtensionBase{Storage: v18.FixedSizeListOfField(2, f)}, system: system}
}

func (*point18) ArrayType() reflect.Type { return reflect.TypeFor[point18Array]() }
func (*point18) ExtensionName() string   { return pointName }
func (p *point18) Serialize() string     { return p.system }
func (p *point18) String() string        { return "extension<point>" }
func (p *point18) ExtensionEquals(o v18.ExtensionType) bool {
	q, ok := o.(*point18)
	return ok && q.system == p.system
}
func (*point18) Deserialize(storage v18.DataType, data string) (v18.ExtensionType, error) {
	if p := newPoint18(data); v18.TypeEqual(p.Storage, storage) {
		return p, nil
	}
	return nil, errors.New("a point is two floats")
}
