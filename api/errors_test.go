package api

import (
	"fmt"
	"testing"

	"infer/runtime/engine"
)

func TestEngineErrors(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{engine.ErrQueueFull, 429, codeQueueFull},
		{engine.ErrDraining, 503, codeDraining},
		{engine.ErrDeadline, 408, codeTimeout},
		{engine.ErrTooLong, 400, codeContextLength},
		{engine.ErrInvalid, 400, ""},
		{engine.ErrFault, 500, codeDeviceFault},
	} {
		if e := asAPIError(fmt.Errorf("generating: %w", c.err), "prompt", 0); e.Status != c.status || e.Code != c.code {
			t.Errorf("%v: %d %q, want %d %q", c.err, e.Status, e.Code, c.status, c.code)
		}
	}
}
