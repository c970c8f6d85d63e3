//go:build !amd64 || purego

package cpu

// paths lists what this processor and system can do, the best first.
func paths() []path { return []path{purego} }

// pause passes a moment.
func pause(n int) {
	for range 32 * n {
	}
}
