//go:build !(linux || darwin || freebsd)

package hub

import "os"

// tryLock does not lock here: the digest will tell if two writers met.
func tryLock(*os.File) (bool, error) { return true, nil }
