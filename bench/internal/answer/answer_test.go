package answer

import "testing"

func TestSame(t *testing.T) {
	a := Answer{Rows: 3, Hash: "4", Columns: []string{"a", "b"}, Codecs: []string{"snappy"}}
	if err := a.Same(a); err != nil {
		t.Error(err)
	}
	for what, b := range map[string]Answer{
		"rows":    {Rows: 2, Hash: "4", Columns: a.Columns, Codecs: a.Codecs},
		"values":  {Rows: 3, Hash: "5", Columns: a.Columns, Codecs: a.Codecs},
		"columns": {Rows: 3, Hash: "4", Columns: []string{"a", "c"}, Codecs: a.Codecs},
		"codec":   {Rows: 3, Hash: "4", Columns: a.Columns, Codecs: []string{"zstd"}},
	} {
		if err := b.Same(a); err == nil {
			t.Errorf("other %s: want an error", what)
		}
	}
	if err := (Answer{}).Same(Answer{}); err == nil {
		t.Error("answers without rows show nothing: want an error")
	}
}
