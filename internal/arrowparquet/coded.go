package arrowparquet

import "github.com/apache/arrow/go/v15/arrow"

// CodedSchema returns the Schema with columns that are dictionary-encoded in the
// stored Arrow schema as dictionary types instead of the types of their values.
func (p *Parquet) CodedSchema() *arrow.Schema {
	fields := make([]arrow.Field, len(p.columns))
	for i, c := range p.columns {
		fields[i] = c.codedField()
	}
	md := p.schema.Metadata()
	return arrow.NewSchema(fields, &md)
}

func (c *column) codedField() arrow.Field {
	f := c.field
	switch t := f.Type.(type) {
	case *arrow.StructType:
		fields := make([]arrow.Field, len(c.children))
		for i, cc := range c.children {
			fields[i] = cc.codedField()
		}
		f.Type = arrow.StructOf(fields...)
	case *arrow.ListType:
		f.Type = arrow.ListOfField(c.children[0].codedField())
	case *arrow.LargeListType:
		f.Type = arrow.LargeListOfField(c.children[0].codedField())
	case *arrow.FixedSizeListType:
		f.Type = arrow.FixedSizeListOfField(t.Len(), c.children[0].codedField())
	default: // maps stay as they are: their keys are seldom dictionaries in Arrow
		if c.coded != nil {
			f.Type = &arrow.DictionaryType{IndexType: c.coded.index, ValueType: t, Ordered: c.coded.ordered}
		}
	}
	return f
}
