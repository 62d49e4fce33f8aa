//go:build !linux

package bloom

func adviseHuge([]uint64) {}
