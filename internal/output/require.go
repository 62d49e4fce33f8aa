package output

import "github.com/bloomjoin/bloomjoin/internal/publish"

// ErrRequire is wrapped by errors about conditions that are not met.
var ErrRequire = publish.ErrRequire
