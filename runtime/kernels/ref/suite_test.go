package ref_test

import (
	"testing"

	"infer/runtime/kernels"
	"infer/runtime/kernels/kerneltest"
	"infer/runtime/kernels/ref"
)

// The reference passes the suite that others pass against it: its parts that
// do not compare with itself (canaries, bits, errors) can fail.
func TestSuite(t *testing.T) {
	kerneltest.Run(t, func(testing.TB) kernels.Backend { return ref.Open() })
}
