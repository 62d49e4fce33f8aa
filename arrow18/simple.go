package arrow18

import (
	arrow18 "github.com/apache/arrow-go/v18/arrow"
	arrow15 "github.com/apache/arrow/go/v15/arrow"
)

// simple lists the types without parameters, of which both sides have one each.
var simple = []struct {
	v15 arrow15.DataType
	v18 arrow18.DataType
}{
	{arrow15.Null, arrow18.Null},
	{arrow15.FixedWidthTypes.Boolean, arrow18.FixedWidthTypes.Boolean},
	{arrow15.PrimitiveTypes.Int8, arrow18.PrimitiveTypes.Int8},
	{arrow15.PrimitiveTypes.Int16, arrow18.PrimitiveTypes.Int16},
	{arrow15.PrimitiveTypes.Int32, arrow18.PrimitiveTypes.Int32},
	{arrow15.PrimitiveTypes.Int64, arrow18.PrimitiveTypes.Int64},
	{arrow15.PrimitiveTypes.Uint8, arrow18.PrimitiveTypes.Uint8},
	{arrow15.PrimitiveTypes.Uint16, arrow18.PrimitiveTypes.Uint16},
	{arrow15.PrimitiveTypes.Uint32, arrow18.PrimitiveTypes.Uint32},
	{arrow15.PrimitiveTypes.Uint64, arrow18.PrimitiveTypes.Uint64},
	{arrow15.FixedWidthTypes.Float16, arrow18.FixedWidthTypes.Float16},
	{arrow15.PrimitiveTypes.Float32, arrow18.PrimitiveTypes.Float32},
	{arrow15.PrimitiveTypes.Float64, arrow18.PrimitiveTypes.Float64},
	{arrow15.FixedWidthTypes.Date32, arrow18.FixedWidthTypes.Date32},
	{arrow15.FixedWidthTypes.Date64, arrow18.FixedWidthTypes.Date64},
	{arrow15.FixedWidthTypes.MonthInterval, arrow18.FixedWidthTypes.MonthInterval},
	{arrow15.FixedWidthTypes.DayTimeInterval, arrow18.FixedWidthTypes.DayTimeInterval},
	{arrow15.FixedWidthTypes.MonthDayNanoInterval, arrow18.FixedWidthTypes.MonthDayNanoInterval},
	{arrow15.BinaryTypes.Binary, arrow18.BinaryTypes.Binary},
	{arrow15.BinaryTypes.String, arrow18.BinaryTypes.String},
	{arrow15.BinaryTypes.LargeBinary, arrow18.BinaryTypes.LargeBinary},
	{arrow15.BinaryTypes.LargeString, arrow18.BinaryTypes.LargeString},
	{arrow15.BinaryTypes.BinaryView, arrow18.BinaryTypes.BinaryView},
	{arrow15.BinaryTypes.StringView, arrow18.BinaryTypes.StringView},
}

// simple15 returns the v15 type of an ID, nil if types of that ID have parameters
// or v15 has none.
func simple15(id arrow18.Type) arrow15.DataType {
	for _, s := range simple {
		if s.v18.ID() == id {
			return s.v15
		}
	}
	return nil
}

// simple18 is simple15 for the other direction.
func simple18(id arrow15.Type) arrow18.DataType {
	for _, s := range simple {
		if s.v15.ID() == id {
			return s.v18
		}
	}
	return nil
}
