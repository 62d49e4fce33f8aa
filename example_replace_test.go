package bloomjoin_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bloomjoin/bloomjoin"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/storage"
)

// service answers requests from the filter that it has at the moment.
type service struct {
	filter atomic.Pointer[codec.Filter]
}

// ask answers a request. A filter that was replaced between the load of the pointer
// and the question says that it is closed; its successor answers then.
func (s *service) ask(id int64) (bool, error) {
	for {
		in, err := s.filter.Load().Contains(key.Int64s([]int64{id}), nil)
		switch {
		case err == nil:
			return in[0], nil
		case !errors.Is(err, fs.ErrClosed):
			return false, err
		}
	}
}

// replace loads the file and answers from it from now on. Requests that are at work
// finish with the old filter. An error that comes from its Close means that its file
// was changed while it was in use, so that answers that it gave may be wrong.
func (s *service) replace(ctx context.Context, name string) error {
	f, err := codec.Load(ctx, storage.Local(), name, codec.Limits{})
	if err != nil {
		return err
	}
	old := s.filter.Swap(f)
	err = old.Close() // of a nil filter it does nothing
	for errors.Is(err, storage.ErrAgain) {
		time.Sleep(time.Millisecond) // requests are at work; they take microseconds
		err = old.Close()
	}
	return err
}

// A service replaces its filter while requests ask it.
func Example_replaceFilter() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	names := []string{filepath.Join(dir, "monday.bjf"), filepath.Join(dir, "tuesday.bjf")}
	for day, name := range names {
		if err := save(ctx, name, 7, int64(day)); err != nil {
			log.Fatal(err)
		}
	}
	var s service
	if err := s.replace(ctx, names[0]); err != nil {
		log.Fatal(err)
	}
	var requests sync.WaitGroup
	for range 4 {
		requests.Go(func() {
			for range 1000 {
				if in, err := s.ask(7); err != nil || !in {
					log.Fatal(in, err)
				}
			}
		})
	}
	err = s.replace(ctx, names[1])
	requests.Wait()
	in, asked := s.ask(1)
	fmt.Println(err, in, asked)
	// Output: <nil> true <nil>
}

// save writes an uncompressed filter, which Load maps where it can.
func save(ctx context.Context, name string, ids ...int64) error {
	f, err := bloomjoin.Build(ctx, filterbuild.Options{Key: "id::int64", Kind: codec.KindBloom}, key.Int64s(ids))
	if err != nil {
		return err
	}
	_, err = codec.Save(ctx, storage.Local(), name, f, codec.Options{Uncompressed: true})
	return err
}
