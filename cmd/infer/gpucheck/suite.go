package gpucheck

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"infer/runtime/kernels"
	"infer/runtime/kernels/cuda"
	"infer/runtime/kernels/kerneltest"
)

// childVar tells a process that it is to run the suite and nothing else; its
// value is device:pattern:simulated machine.
const childVar = "INFER_GPUCHECK_SUITE"

// Child runs the kernels' suite and ends the process, if this process was
// started for that; else it does nothing. Programs call it first thing.
func Child() {
	spec, ok := os.LookupEnv(childVar)
	if !ok {
		return
	}
	number, rest, _ := strings.Cut(spec, ":")
	pattern, simulate, _ := strings.Cut(rest, ":")
	device, err := strconv.Atoi(number)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s=%s: want device:pattern:machine\n", childVar, spec)
		os.Exit(2)
	}
	// What go test's own main would read.
	os.Args = []string{os.Args[0], "-test.v", "-test.run=^Suite$/" + pattern}
	open := func(t testing.TB) kernels.Backend {
		s, err := cuda.Open(cuda.Options{Simulate: simulate})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		b, err := s.Backend(device)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	match := func(pattern, name string) (bool, error) { return regexp.MatchString(pattern, name) }
	testing.Main(match, []testing.InternalTest{{Name: "Suite", F: func(t *testing.T) { kerneltest.Run(t, open) }}}, nil, nil)
}

// suite runs the tests whose names match pattern on a device.
func suite(ctx context.Context, device int, pattern, simulate string) (*Suite, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d:%s:%s", childVar, device, pattern, simulate))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	s := read(out.String())
	s.Seconds = time.Since(start).Seconds()
	switch {
	case ctx.Err() != nil:
		return s, fmt.Errorf("the kernels' tests did not end in %.0f s", s.Seconds)
	case len(s.Failed) > 0:
		return s, fmt.Errorf("%d of the kernels' tests fail: %s", len(s.Failed), strings.Join(s.Failed, ", "))
	case err != nil:
		return s, fmt.Errorf("the kernels' tests: %w", err)
	case s.Passed == 0:
		return s, fmt.Errorf("no test of the kernels ran")
	}
	return s, nil
}

var result = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): Suite/([^/ \n]+)(/\S+)? `)

// read counts the tests in what go's testing prints: the suite's own, not the
// cases inside them; failed cases are named.
func read(out string) *Suite {
	s := &Suite{Failed: []string{}}
	for _, m := range result.FindAllStringSubmatch(out, -1) {
		switch {
		case m[1] == "FAIL":
			s.Failed = append(s.Failed, m[2]+m[3])
		case m[1] == "PASS" && m[3] == "":
			s.Passed++
		}
	}
	if len(s.Failed) > 0 || s.Passed == 0 {
		const tail = 16 << 10
		s.Output = out[max(0, len(out)-tail):]
	}
	return s
}
