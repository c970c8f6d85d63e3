//go:build !(linux || darwin)

package hub

// freeSpace is not known here.
func freeSpace(string) (uint64, bool) { return 0, false }

func noSpace(err error, _ meta) error { return err }
