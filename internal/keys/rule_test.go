package keys_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
)

func TestParseRule(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "trim": "trim", "lower": "lower", "uuid": "uuid",
		"lower,trim": "trim,lower", "uuid,lower,trim": "trim,lower,uuid", "uuid,trim": "trim,uuid",
		"url": "url", "url,lower": "lower,url", "url-host,trim": "trim,url-host",
		"ascii-only,lower,trim": "trim,lower,ascii-only", "uuid,ascii-only,trim": "trim,uuid,ascii-only",
	} {
		r, err := keys.ParseRule(text)
		if err != nil || r.String() != want {
			t.Errorf("%q: %q, error %v, want %q", text, r, err, want)
		}
		again, err := keys.RuleOf(r.NormalForm())
		if err != nil || again != r {
			t.Errorf("%q: the normal form %s is read as %q, error %v", text, r.NormalForm(), again, err)
		}
	}
	for text, want := range map[string]string{"": "1", "lower": "1+lower,unicode-15.0", "trim,url": "1+trim,url,unicode-15.0", "trim,lower,ascii-only": "1+trim,lower", "uuid": "1+uuid"} {
		if r, err := keys.ParseRule(text); err != nil || r.NormalForm() != want {
			t.Errorf("%q: normal form %s, error %v, want %s: files have that name", text, r.NormalForm(), err, want)
		}
	}
	for _, text := range []string{"Lower", "trim,", ",trim", "trim trim", "trim, lower", "trim,trim", "uuid,lower,uuid", "upper", " ", "uuid,url", "url-host,url", "uuid,url-host,trim",
		"ascii-only", "ascii-only,uuid", "lower,ascii-only,ascii-only", "lower,unicode-15.0", "ascii-lower"} {
		if r, err := keys.ParseRule(text); err == nil {
			t.Errorf("%q: is %q", text, r)
		}
	}
	for _, normal := range []string{"", "2", "1+", "1+lower,trim", "1+upper", "1lower", "1+trim,trim", "1 + trim", "1+lower,ascii-only", "1+unicode-15.0", "1+uuid,unicode-15.0", "1+lower,unicode-16.0"} {
		if r, err := keys.RuleOf(normal); !errors.Is(err, fault.ErrMismatch) {
			t.Errorf("normal form %q: is %q, error %v", normal, r, err)
		}
	}
}

// allRules are the rules that are possible.
var allRules = func() (all []keys.Rule) {
	for r := range keys.Rule(64) {
		if again, err := keys.ParseRule(r.String()); err == nil && again == r {
			all = append(all, r)
		}
	}
	return all
}()

const someUUID = "123e4567-e89b-12d3-a456-426614174000"

func TestRuleVectors(t *testing.T) {
	bin := string(unhex(t, strings.ReplaceAll(someUUID, "-", "")))
	for _, v := range []struct{ rule, value, want string }{
		{"trim", "", ""}, {"trim", " ", ""}, {"trim", "\t\n\v\f\r x y \r\n", "x y"},
		{"trim,ascii-only", "\u00a0x\u0085", "\u00a0x\u0085"}, {"trim", "\u00a0\t\u3000x\u2028y\u0085 ", "x\u2028y"}, {"trim", "\x00x\x00", "\x00x\x00"}, {"trim", "\x1fx\x0e\x08", "\x1fx\x0e\x08"},
		{"trim,ascii-only", "\u2003x", "\u2003x"}, {"trim", "\u2003x", "x"}, {"trim", "\xffx \x80", "\xffx \x80"},
		{"trim", "\u200b\u180e\ufeffx", "\u200b\u180e\ufeffx"}, {"trim", "x\xe2\u2003\xa0", "x\xe2\u2003\xa0"}, {"trim", "x\xe2\u2003", "x\xe2"},
		{"lower", "AZaz@[`{09", "azaz@[`{09"}, {"lower,ascii-only", "AÄÖ ẞ İ \u212a", "aÄÖ ẞ İ \u212a"},
		{"lower", "MÜLLER@EXAMPLE.DE", "müller@example.de"}, {"lower", "ẞ İ \u212a ΟΔΟΣ ǅ Ⴀ Ა Ꭰ 𐐀", "ß i k οδοσ ǆ ⴀ ა ꭰ 𐐨"},
		{"lower", strings.Repeat("Ⱥ", 100) + "A", strings.Repeat("ⱥ", 100) + "a"}, {"lower", "\xc3Ü\xe2\x84A\xed\xa0\x80\xf4\x90\x80\x80", "\xc3ü\xe2\x84a\xed\xa0\x80\xf4\x90\x80\x80"}, {"lower", " A ", " a "},
		{"lower", "\xc1\xda\xff\x00", "\xc1\xda\xff\x00"},
		{"trim,lower", "\tAnna@Example.COM\n", "anna@example.com"},
		{"uuid", someUUID, bin}, {"uuid", strings.ToUpper(someUUID), bin}, {"uuid", "{" + someUUID + "}", bin},
		{"uuid", "urn:uuid:" + someUUID, bin}, {"uuid", "URN:UUID:" + strings.ToUpper(someUUID), bin},
		{"uuid", strings.ReplaceAll(someUUID, "-", ""), bin}, {"uuid", "{" + strings.ReplaceAll(someUUID, "-", "") + "}", bin},
		{"uuid", strings.Repeat("0", 32), strings.Repeat("\x00", 16)}, {"uuid", strings.Repeat("fF", 16), strings.Repeat("\xff", 16)},
		{"trim,uuid", "\n" + someUUID + " ", bin}, {"lower,uuid", strings.ToUpper(someUUID), bin},
		{"trim,lower,url", "\u00a0HTTP://Bücher.DE/Ü", "http://xn--bcher-kva.de/%C3%BC"}, {"lower,url", "http://a/ȺÄ", "http://a/%E2%B1%A5%C3%A4"},
		{"trim,uuid", "\u2003" + someUUID + "\u00a0", bin}, {"trim,url-host", "\u3000A.b", "a.b"},
		{"url", "HTTP://A.b/c d", "http://a.b/c%20d"}, {"url", " HTTP://A", " HTTP://A"}, {"trim,lower,url", " HTTP://A/B%2F", "http://a/b%2F"},
		{"url-host", "HTTP://A.b:8/c", "a.b"}, {"trim,url-host", "\tBücher.de.\n", "xn--bcher-kva.de"},
	} {
		got, void := ruled(t, v.rule, []string{v.value})
		if len(void) > 0 || len(got) != 1 || got[0] != v.want {
			t.Errorf("%s of %q: %q, want %q", v.rule, v.value, got, v.want)
		}
	}
	digits := strings.ReplaceAll(someUUID, "-", "")
	for _, value := range []string{
		"", " ", bin, someUUID + " ", " " + someUUID, someUUID[:35], someUUID + "0", "{" + someUUID, someUUID + "}", "(" + someUUID + ")",
		"{" + someUUID + ")", "{{" + digits + "}}", "{}", "urn:uuid:", "urn:uuid:{" + someUUID + "}", "{urn:uuid:" + someUUID + "}",
		"urn:uuid" + someUUID, "uuid:" + someUUID, strings.Replace(someUUID, "e", "g", 1), strings.Replace(someUUID, "-", "_", 1),
		"123e4567e-89b-12d3-a456-426614174000", "123e4567-e89b12d3a456-426614174000", strings.ReplaceAll(someUUID, "-", "--"),
		digits[:31] + "-", "-" + digits[:31], digits[:31] + "é", digits[:30] + "é", strings.Replace(someUUID, "1", "+", 1), someUUID + "\x00",
		"ſrn:uuid:" + someUUID[1:], "0x" + digits[:30],
	} {
		if got, void := ruled(t, "uuid", []string{value}); len(got) > 0 || len(void) != 1 {
			t.Errorf("uuid of %q: %q", value, got)
		}
	}
}

// ruled returns the keys of values under a rule, and the rows without one.
func ruled(t testing.TB, rule string, values []string) (got []string, void []uint32) {
	t.Helper()
	r, err := keys.ParseRule(rule)
	if err != nil {
		t.Fatal(err)
	}
	var plain []byte
	for _, v := range values {
		plain = binary.LittleEndian.AppendUint32(plain, uint32(len(v)))
		plain = append(plain, v...)
	}
	var b keys.Batch
	b.SetBytes(plain, len(values), r)
	for i := range b.Rows {
		got = append(got, string(b.Append(nil, i)))
	}
	if b.Nulls() != 0 || len(got)+len(b.Void()) != len(values) {
		t.Fatalf("%d keys and %d voids of %d values, %d NULLs", len(got), len(b.Void()), len(values), b.Nulls())
	}
	return got, b.Void()
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func FuzzRule(f *testing.F) {
	for _, s := range []string{"", " x ", someUUID, "\v" + someUUID, "{" + someUUID + "}", "urn:uuid:" + someUUID, strings.ReplaceAll(someUUID, "-", ""), "ÄA\xff\v", "\u2003MÜLLER\xe2\x80", "http://Ⱥ/Ⱥ"} {
		for r := range uint8(len(allRules)) {
			f.Add(r, s, "\t"+s)
		}
	}
	f.Fuzz(func(t *testing.T, r uint8, a, b string) {
		rule := allRules[int(r)%len(allRules)]
		values := []string{a, b, a + b, "", b, a}
		var want []string
		var void []uint32
		for i, v := range values {
			if k, ok := roomtest.Ruled(rule.String(), v); ok {
				want = append(want, k)
			} else {
				void = append(void, uint32(i))
			}
			if _, ok := roomtest.Ruled(rule.String(), v); ok != rule.Accepts(v) {
				t.Errorf("%s accepts %q: %t", rule, v, !ok)
			}
		}
		got, gotVoid := ruled(t, rule.String(), values)
		if !slices.Equal(got, want) || !slices.Equal(gotVoid, void) {
			t.Errorf("%s of %q: %q, void %d, want %q, void %d", rule, values, got, gotVoid, want, void)
		}
	})
}

// nearly returns a string that is equal, or almost equal, to others that it
// returns, under some rule.
func nearly(r *rand.Rand) string {
	spaces := []string{"", "", "", " ", "\t\n", "\v\f\r", "\u00a0", "\u2003\u0085", "\x00"}
	core := []string{"", "a", "A", "ab", "aB", "ä", "Ä", "a b", "K", "\xff", "http://A.b", "HTTP://a.B:80/é", "https://Ä/", "ȺȾİ", "ⱥⱦi"}[r.IntN(15)]
	if r.IntN(3) > 0 {
		var id [16]byte
		id[r.IntN(16)] = byte(r.IntN(3)) * 0xab
		core = hex.EncodeToString(id[:])
		if r.IntN(3) > 0 {
			core = core[:8] + "-" + core[8:12] + "-" + core[12:16] + "-" + core[16:20] + "-" + core[20:]
		}
		core = []string{core, core, strings.ToUpper(core), "{" + core + "}", "urn:uuid:" + core, core[1:], core + "}"}[r.IntN(7)]
	}
	return spaces[r.IntN(len(spaces))] + core + spaces[r.IntN(len(spaces))]
}

// Every kind of string column gives the same keys under a rule: with and without
// NULLs, in a dictionary, in a struct, sliced, and as a part of a key.
func TestRuleOfArrays(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 60 {
		for _, rule := range allRules {
			for _, nullable := range []bool{false, true} {
				values := make([]*string, r.IntN(40))
				for i := range values {
					if v := nearly(r); !nullable || r.IntN(4) > 0 {
						values[i] = &v
					}
				}
				for kind, a := range stringArrays(values, r.IntN(3)) {
					checkRuled(t, kind, rule, a, values)
					a.Release()
				}
			}
		}
	}
}

// stringArrays returns arrays of the values, after skip other values.
func stringArrays(values []*string, skip int) map[string]arrow.Array {
	out := map[string]arrow.Array{}
	for _, dt := range []arrow.DataType{
		arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary,
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String},
		arrow.StructOf(arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}),
	} {
		b := array.NewBuilder(memory.NewGoAllocator(), dt)
		for range skip {
			b.AppendNull()
		}
		for _, v := range values {
			switch b := b.(type) {
			case *array.StructBuilder:
				b.Append(true)
				appendString(b.FieldBuilder(0), v)
			default:
				appendString(b, v)
			}
		}
		whole := b.NewArray()
		out[dt.String()] = array.NewSlice(whole, int64(skip), int64(skip+len(values)))
		whole.Release()
		b.Release()
	}
	return out
}

func appendString(b array.Builder, v *string) {
	if v == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case array.StringLikeBuilder:
		b.Append(*v)
	case *array.BinaryDictionaryBuilder:
		_ = b.AppendString(*v)
	case *array.BinaryBuilder:
		b.AppendString(*v)
	}
}

// checkRuled compares the keys of an array, alone and as both parts of a key, with
// the naive ones.
func checkRuled(t *testing.T, kind string, rule keys.Rule, a arrow.Array, values []*string) {
	t.Helper()
	var one, two []string
	var rows, void []uint32
	for i, v := range values {
		if v == nil {
			continue
		}
		k, ok := roomtest.Ruled(rule.String(), *v)
		if !ok {
			void = append(void, uint32(i))
			continue
		}
		rows, one = append(rows, uint32(i)), append(one, k)
		part := string(binary.AppendUvarint(nil, uint64(len(k)))) + k
		two = append(two, part+part)
	}
	path := keys.Column{Path: keys.Path{"c"}}
	if a.DataType().ID() == arrow.STRUCT {
		path.Path = keys.Path{"c", "s"}
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "c", Type: a.DataType(), Nullable: true}}, nil)
	rec := array.NewRecord(schema, []arrow.Array{a}, int64(a.Len()))
	defer rec.Release()
	before := fmt.Sprint(rec)
	for _, c := range []struct {
		paths []keys.Column
		want  []string
	}{{[]keys.Column{path}, one}, {[]keys.Column{path, path}, two}} {
		enc, err := keys.NewEncoder(schema, c.paths, keys.Options{Rule: rule})
		if len(c.paths) > 1 && rule&keys.URLHost != 0 {
			if !errors.Is(err, fault.ErrUnsupported) {
				t.Errorf("%s of two columns: %v", rule, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var b keys.Batch
		for range 2 { // the second time in reused memory
			if err := enc.Encode(rec, &b); err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range b.Rows {
				got = append(got, string(b.Append(nil, i)))
			}
			if !slices.Equal(got, c.want) || !slices.Equal(b.Rows, rows) || !slices.Equal(b.Void(), void) {
				t.Errorf("%s of %s: %q in rows %d, void %d, want %q in rows %d, void %d", rule, kind, got, b.Rows, b.Void(), c.want, rows, void)
			}
			if n := len(values) - len(rows) - len(void); b.Nulls() != n {
				t.Errorf("%s of %s: %d NULLs, want %d", rule, kind, b.Nulls(), n)
			}
		}
		err = enc.EncodeIDs("ids", rec, &b)
		no := keys.ErrNoUUID
		if rule&keys.URLHost != 0 {
			no = keys.ErrNoHost
		}
		if (len(void) > 0) != errors.Is(err, no) || (err == nil) != (len(void) == 0) {
			t.Errorf("%s of %s as IDs: error %v, void %d", rule, kind, err, void)
		}
	}
	if fmt.Sprint(rec) != before {
		t.Errorf("%s of %s changed the record", rule, kind)
	}
}

// A rule is for strings. For anything else it is an error that names the class.
func TestRuleOfOtherClasses(t *testing.T) {
	uuid := &arrow.FixedSizeBinaryType{ByteWidth: 16}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "s", Type: arrow.BinaryTypes.String}, {Name: "i", Type: arrow.PrimitiveTypes.Int32}, {Name: "u", Type: uuid},
		{Name: "f", Type: &arrow.FixedSizeBinaryType{ByteWidth: 8}}, {Name: "d", Type: arrow.FixedWidthTypes.Date32}, {Name: "n", Type: arrow.Null},
	}, nil)
	for _, c := range []struct{ column, rule, classes, unsupported string }{
		{"s", "lower", "bytes", ""}, {"s", "uuid", "fixed[16]", ""}, {"u", "uuid", "fixed[16]", ""}, {"u", "trim,uuid", "fixed[16]", ""},
		{"s,i", "trim", "bytes integer", ""}, {"i,s", "lower,uuid", "integer fixed[16]", ""}, {"u,s", "trim", "fixed[16] bytes", ""},
		{"u,s,i", "uuid", "fixed[16] fixed[16] integer", ""}, {"n", "lower", "null", ""}, {"u,i", "uuid", "fixed[16] integer", ""},
		{"i", "lower", "", "integer"}, {"i", "uuid", "", "integer"}, {"u", "trim,lower", "", "fixed[16]"}, {"f", "uuid", "", "fixed[8]"},
		{"d", "trim", "", "date"}, {"i,d", "lower", "", "integer, date"},
	} {
		paths, err := keys.ParseColumns(c.column)
		if err != nil {
			t.Fatal(err)
		}
		rule, err := keys.ParseRule(c.rule)
		if err != nil {
			t.Fatal(err)
		}
		enc, err := keys.NewEncoder(schema, paths, keys.Options{Rule: rule})
		if c.unsupported != "" {
			if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "Normalize "+c.rule+" of a key of class "+c.unsupported+" ") {
				t.Errorf("%s of %s: error %v", c.rule, c.column, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s of %s: %v", c.rule, c.column, err)
			continue
		}
		if got := fmt.Sprint(enc.Classes()); got != "["+c.classes+"]" {
			t.Errorf("%s of %s: classes %s, want %s", c.rule, c.column, got, c.classes)
		}
	}
}

// In a composite key a rule changes only strings, and a NULL takes precedence over
// a value that is not a UUID.
func TestRuleOfCompositeKeys(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "i", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "u", Type: &arrow.FixedSizeBinaryType{ByteWidth: 16}},
	}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	defer b.Release()
	raw := []byte("ABCDEFGHIJKLMNO ")
	for i, s := range []string{someUUID, "no", "no", "NULL", strings.ToUpper(someUUID)} {
		if s == "NULL" {
			b.Field(0).AppendNull()
		} else {
			b.Field(0).(*array.StringBuilder).Append(s)
		}
		if i == 2 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.Int32Builder).Append('A')
		}
		b.Field(2).(*array.FixedSizeBinaryBuilder).Append(raw)
	}
	rec := b.NewRecord()
	defer rec.Release()
	enc, err := keys.NewEncoder(schema, []keys.Column{{Path: keys.Path{"i"}}, {Path: keys.Path{"s"}}, {Path: keys.Path{"u"}}}, keys.Options{Rule: keys.UUID | keys.Trim | keys.Lower})
	if err != nil {
		t.Fatal(err)
	}
	var batch keys.Batch
	if err := enc.Encode(rec, &batch); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(batch.Rows, []uint32{0, 4}) || !slices.Equal(batch.Void(), []uint32{1}) || batch.Nulls() != 2 {
		t.Errorf("rows %d, void %d, %d NULLs", batch.Rows, batch.Void(), batch.Nulls())
	}
	want := "\x09A\x00\x00\x00\x00\x00\x00\x00\x00\x10" + string(unhex(t, strings.ReplaceAll(someUUID, "-", ""))) + "\x10" + string(raw)
	for i := range batch.Rows {
		if got := string(batch.Append(nil, i)); got != want {
			t.Errorf("key %d: %q, want %q", i, got, want)
		}
	}
}

// A host is asked with its parents of up to 253 bytes, in time that grows with its length.
func TestParentsOfLongHosts(t *testing.T) {
	var hash bloom.Hash
	for _, host := range []string{
		"a.b", strings.Repeat("a.", 200) + "b", strings.Repeat("abc.", 100) + "b", "a" + strings.Repeat(".b", 127), strings.Repeat("a", 300) + ".b",
		strings.Repeat("a.", 200) + strings.Repeat("b", 260), strings.Repeat("a.", 1e5) + "1", strings.Repeat("a.", 1e5) + strings.Repeat("1", 1e5) + "b",
	} {
		want := []uint64{hash.Sum([]byte(host))}
		for at := max(len(host)-254, 0); at < len(host); at++ {
			if host[at] == '.' && host[len(host)-1] != '1' {
				want = append(want, hash.Sum([]byte(host[at+1:])))
			}
		}
		plain := append(binary.LittleEndian.AppendUint32(nil, uint32(len(host))), host...)
		var b keys.Batch
		b.SetBytes(plain, 1, keys.URLHost)
		began := time.Now()
		if got, _ := b.Asked(hash, keys.URLHost, nil, nil); !slices.Equal(got, want) {
			t.Errorf("%.10s… of %d bytes: %d hashes, want %d", host, len(host), len(got), len(want))
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("%.10s… of %d bytes: %v", host, len(host), d)
		}
	}
}
