package arraycopy_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// largeBatch is a record of n rows, more than are passed on at once: a struct of a
// number and a text, and a flag. Each is sometimes NULL.
func largeBatch(n int) arrow.Record {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "user", Nullable: true, Type: arrow.StructOf(
			arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
			arrow.Field{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true})},
		{Name: "flag", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	user, flag := b.Field(0).(*array.StructBuilder), b.Field(1).(*array.BooleanBuilder)
	id, name := user.FieldBuilder(0).(*array.Int64Builder), user.FieldBuilder(1).(*array.StringBuilder)
	for i := range n {
		user.Append(i%13 != 0)
		id.Append(int64(i))
		name.Append(fmt.Sprint("user-", i))
		if i%7 == 0 {
			name.AppendNull()
			id.AppendNull()
			user.Append(true)
			flag.Append(false)
		}
		flag.Append(i%3 == 0)
	}
	return b.NewRecord()
}

// The keys of a record batch are the same in steps as all at once.
func TestLargeRecordBatch(t *testing.T) {
	rec := largeBatch(3 * source.StepRows)
	defer rec.Release()
	name := sourcetest.Put(t, filepath.Join(t.TempDir(), "ids.arrows"), roomtest.StreamOf(t, rec.NewSlice(5, rec.NumRows())))
	files := roomtest.Open(t, source.Opening{}, name)
	for _, column := range []string{"user.id", "user.name", "flag", "user.id,user.name", "flag,user.name"} {
		got, rows, null, err := keysOf(t, files, column)
		if err != nil {
			t.Fatal(err)
		}
		want, wantRows, wantNull, err := keysByRecords(t, files, column)
		if err != nil {
			t.Fatal(err)
		}
		if rows != wantRows || null != wantNull || !slices.Equal(got, want) || (null == 0) != (column == "flag") || len(got) < rows/2 {
			t.Errorf("%s: %d keys of %d rows, %d NULL; want %d of %d, %d", column, len(got), rows, null, len(want), wantRows, wantNull)
		}
	}
	most := 0
	o := keyscan.ReadOptions{Key: "user.id", IDs: true, Threads: 1}
	_, _, err := keyscan.Read(t.Context(), source.Split(files, dataset.Shard{}), o, func() (func(*keyscan.Keys) error, error) {
		return func(k *keyscan.Keys) error {
			most = max(most, k.Batch.Len)
			return nil
		}, nil
	})
	if err != nil || most > source.StepRows {
		t.Errorf("%d rows at once, %v", most, err)
	}
}
