package publish

import (
	"bytes"
	"encoding/json"
)

// Columns describes the columns of a file: a JSON array of [Column]. It stays text
// in memory, since a directory may have very many files.
type Columns string

// Column describes the values of one column in a file: a leaf that is in no list.
// Lower and Upper include all its values that are not NULL; without them the bounds
// are unknown, or all values are NULL. Their form depends on Type:
//
//	bool       true or false
//	int        a number; a string of digits beyond ±2^53, which not all programs
//	           read exactly. Signed and unsigned integers of all widths
//	float      a number with a point or an exponent, of float64: a float32 in all
//	           its digits; "inf", "-inf". A file with a NaN has no bounds. Zeros are
//	           -0.0 as Lower and 0.0 as Upper
//	decimal    a string: digits with a point, as many after it as the scale
//	string     a string, in the order of its UTF-8 bytes
//	date       "2006-01-02"; the years 1 to 9999, as below
//	time       "15:04:05.000000", with the 3, 6 or 9 digits of the unit
//	timestamp  "2006-01-02T15:04:05.000000", likewise; with a Z if it is an instant
//	uuid       "00112233-4455-6677-8899-aabbccddeeff"
//	binary     base64, in the order of its bytes
//
// Strings and binary of more than 32 bytes are cut: Lower to a prefix, Upper to one
// whose last byte or character is raised.
type Column struct {
	Path  []string        `json:"path"`            // of the schema: structs, then the column
	ID    *int32          `json:"id,omitempty"`    // field id
	Type  string          `json:"type,omitempty"`  // absent: a type without bounds
	Nulls *int64          `json:"nulls,omitempty"` // absent: unknown
	Lower json.RawMessage `json:"lower,omitempty"`
	Upper json.RawMessage `json:"upper,omitempty"`
	// A bound that is inexact may not be a value of the file.
	LowerInexact bool `json:"lower_inexact,omitempty"`
	UpperInexact bool `json:"upper_inexact,omitempty"`
}

// maxColumns is the largest size of a file's Columns in bytes, so that manifests of
// many files stay readable.
const maxColumns = 4 << 10

// NewColumns returns the first columns, as many as fit.
func NewColumns(columns []Column) (Columns, error) {
	text := []byte("[")
	for _, c := range columns {
		b, err := json.Marshal(c)
		if err != nil {
			return "", err
		}
		if len(text)+len(b)+1 > maxColumns {
			break
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(text, b...)
	}
	if len(text) == 1 {
		return "", nil
	}
	return Columns(append(text, ']')), nil
}

// MarshalJSON implements [json.Marshaler].
func (c Columns) MarshalJSON() ([]byte, error) { return []byte(c), nil }

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Columns) UnmarshalJSON(text []byte) error {
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return err
	}
	*c = Columns(b.String())
	return nil
}
