package cloud_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/cloud"
)

// put writes an object.
func put(ctx context.Context, s storage.Storage, name, text string) error {
	w, err := s.Create(ctx, name, storage.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, text); err != nil {
		return errors.Join(err, w.Abort())
	}
	return errors.Join(w.Commit(false), w.Abort())
}

// Objects are written, listed and read under their URLs. This example uses memory.
// The same works for s3://, gs:// and azblob://.
func Example() {
	ctx := context.Background()
	s := cloud.New(cloud.Options{})
	defer func() { _ = s.Close() }()
	for _, key := range []string{"dt=2024-05-01/a.csv", "dt=2024-05-02/b.csv", "_SUCCESS"} {
		if err := put(ctx, s, "mem://bucket/log/"+key, "user_id\n17\n"); err != nil {
			log.Fatal(err)
		}
	}
	var objects []storage.Object
	err := s.List(ctx, "mem://bucket/log/dt=", func(o storage.Object) error {
		fmt.Println(o.Name, o.Size)
		objects = append(objects, o)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	r, err := s.Open(ctx, objects[0])
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	b := make([]byte, 2)
	if _, err := r.ReadAt(b, 8); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", b)
	// Output:
	// mem://bucket/log/dt=2024-05-01/a.csv 11
	// mem://bucket/log/dt=2024-05-02/b.csv 11
	// 17
}

// A log in a store is opened as one on disk is: partition.Open takes the Store and URLs.
// This one is in memory; the same works for s3://bucket/log/.
func Example_open() {
	ctx := context.Background()
	s := cloud.New(cloud.Options{})
	defer func() { _ = s.Close() }()
	if err := put(ctx, s, "mem://bucket/log/a.csv", "user_id\n17\n"); err != nil {
		log.Fatal(err)
	}
	files, err := partition.Open(ctx, []string{"mem://bucket/log/"}, partition.OpenOptions{Store: s, Text: true})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = partition.Close(files) }()
	for _, f := range files {
		fmt.Println(f.Name(), f.Schema().Field(0).Name)
	}
	// Output: mem://bucket/log/a.csv user_id
}

// Ranges that are announced are fetched while the program does something else, in few
// requests.
func Example_prefetch() {
	ctx := context.Background()
	s := cloud.New(cloud.Options{})
	defer func() { _ = s.Close() }()
	if err := put(ctx, s, "mem://bucket/a", "0123456789"); err != nil {
		log.Fatal(err)
	}
	r, err := s.Open(ctx, storage.Object{Name: "mem://bucket/a"})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	release := objects.Prefetch(r, []storage.Range{{Off: 2, Len: 3}, {Off: 7, Len: 1}})
	defer release()
	b := make([]byte, 3)
	if _, err := r.ReadAt(b, 2); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, %d requests for bytes\n", b, s.Stats().Requests.Get)
	// Output: 234, 1 requests for bytes
}

// A program distinguishes errors that may pass from others.
func ExampleStore_Stat() {
	s := cloud.New(cloud.Options{})
	defer func() { _ = s.Close() }()
	_, err := s.Stat(context.Background(), "hdfs://name/log")
	fmt.Println(errors.Is(err, storage.ErrAgain), err)
	// Output: false hdfs://name/log: unsupported: hdfs:// addresses (copy the data to an object store or a local disk, e.g. with hadoop distcp, or mount it)
}

// Texts that name presigned addresses can be logged.
func ExampleRedact() {
	fmt.Println(address.Redact("https://host/log.parquet?part=1&X-Amz-Signature=1234"))
	// Output: https://host/log.parquet?part=1&X-Amz-Signature=REDACTED
}
