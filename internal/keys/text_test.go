package keys_test

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// The text of a key of any class is the key.
func TestTexts(t *testing.T) {
	for class, text := range map[keys.Class]string{
		keys.Integer: "-12", keys.Bytes: "Ann", keys.Boolean: "true", keys.Date: "2024-05-01", keys.Float: "0.5",
		keys.Instant: "2024-05-01 10:00:00.5Z", keys.Timestamp: "2024-05-01 10:00:00", keys.Time: "10:30:00", keys.Decimal: "1.5",
		keys.Fixed(16): "61626364-6566-6768-696a-6b6c6d6e6f70",
	} {
		cast, ok := keys.TextType(class, 0)
		if !ok {
			t.Errorf("%s: no type", class)
			continue
		}
		classes := []keys.Class{class, class}
		b, err := keys.FromTexts([]arrow.DataType{cast, cast}, keys.Options{Classes: classes}, []string{text, text})
		if err != nil || len(b.Rows) != 1 {
			t.Errorf("%s: %v", class, err)
			continue
		}
		if got, want := keys.Text(classes, b.Append(nil, 0)), text+","+text; got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
	for _, class := range []keys.Class{keys.Null, keys.Duration} {
		if cast, ok := keys.TextType(class, 0); ok {
			t.Errorf("%s: %s", class, cast)
		}
	}
}
