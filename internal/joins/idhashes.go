package joins

import (
	"context"
	"errors"
	"sync"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
)

// LogKey returns the key columns of the log, and the classes in which they are compared under
// the rule.
func (j *Join) LogKey() (columns string, classes []string, rule keys.Rule) {
	t, err := j.prepared()
	if err != nil {
		return "", nil, 0
	}
	return t.keys.LogText, keyOptions(t.keys, "").Classes, t.keys.Rule
}

// errMany ends the reading of IDs that are too many.
var errMany = errors.New("too many")

// IDHashes reads the keys of the IDs and returns their hashes, if the IDs have at most a
// number of rows and can be read again.
func (j *Join) IDHashes(ctx context.Context, h bloom.Hash, most int) (hashes []uint64, ok bool, err error) {
	t, err := j.prepared()
	if err != nil {
		return nil, false, err
	}
	known := int64(0)
	for _, f := range t.ids {
		known += max(f.Rows(), 0)
		if f.Once() || known > int64(most) {
			return nil, false, nil
		}
	}
	o := t.keysOf(t.keys.IDsText, 0)
	o.IDs = true
	var mu sync.Mutex
	_, _, err = keyscan.Read(ctx, t.idPieces, o, func() (func(*keyscan.Keys) error, error) {
		return func(k *keyscan.Keys) error {
			some := k.Batch.Hash(h, nil)
			mu.Lock()
			defer mu.Unlock()
			if len(hashes)+len(some) > most {
				return errMany
			}
			hashes = append(hashes, some...)
			return nil
		}, nil
	})
	if errors.Is(err, errMany) {
		return nil, false, nil
	}
	return hashes, err == nil, err
}
