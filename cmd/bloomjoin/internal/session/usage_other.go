//go:build !unix

package session

// systemUsage returns nothing: this system is not asked.
func systemUsage() Usage { return Usage{} }
