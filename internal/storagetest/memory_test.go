package storagetest

import "testing"

func TestMemory(t *testing.T) { Check(t, NewMemory(), "dir") }
