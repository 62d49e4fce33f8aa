package objects

import (
	"context"
	"errors"
	"fmt"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/storage"
)

// CatalogTable is what a catalog knows of a table.
type CatalogTable struct {
	MetadataLocation string // the name of the file with the metadata
	Metadata         []byte // the content of that file; empty: the catalog did not send it
	Grants           bool   // files are read with credentials that the catalog grants
}

// LoadTable asks the Iceberg REST catalog at a URL for a table, whose name is that of its
// namespace, a dot and its own. From then on the source reads the table's files with the
// credentials that the catalog grants. listed: a list of inputs has the URL, so that no secret may be
// sent there unless it is known to be the user's. The error wraps [fs.ErrNotExist] if there is no such
// table, and [errors.ErrUnsupported] if the source knows no catalogs.
func LoadTable(ctx context.Context, s storage.Source, catalog, table string, listed bool) (*CatalogTable, error) {
	if s, ok := s.(interface {
		LoadTable(ctx context.Context, catalog, table string, listed bool) (*CatalogTable, error)
	}); ok {
		return s.LoadTable(ctx, catalog, table, listed)
	}
	e := faults.Unsupported(fault.At{File: address.Redact(catalog)}, "names of catalogs need storage/cloud")
	return nil, fmt.Errorf("%w%w", e, quiet.Error{Err: errors.ErrUnsupported})
}
