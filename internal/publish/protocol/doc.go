// Package protocol has a model.
package protocol
