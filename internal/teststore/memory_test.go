package teststore

import (
	"testing"

	"github.com/bloomjoin/bloomjoin/storage/storagetest"
)

func TestMemory(t *testing.T) { storagetest.TestStorage(t, NewMemory(), "dir") }
