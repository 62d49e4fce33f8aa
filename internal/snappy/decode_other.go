//go:build !amd64 || purego

package snappy

type turns struct{ n int }

func (*turns) add(*Block) bool      { return false }
func (*turns) next() (*Block, bool) { panic("no block") }
