package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rs/zerolog"

	"infer/runtime/device"
	"infer/runtime/kernels/cpu"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "__probe" {
		main() // a session of a test probes links in a process of its own
	}
	// What is found about links is kept in a folder of the tests' own.
	cache, err := os.MkdirTemp("", "infer-cache-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(cache)
	os.Setenv("XDG_CACHE_HOME", cache)
	closeTime = 2 * time.Minute // this process goes on, and its next simulated machine needs the place
	testscript.Main(m, map[string]func(){"infer": main})
}

// Each script in testdata/script is a shell session, with what it must print.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HF_HOME", env.WorkDir+"/hf")
			env.Setenv("HF_HUB_OFFLINE", "1")
			env.Setenv("XDG_CACHE_HOME", env.WorkDir+"/cache")
			return nil
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// A limit that cannot be is named by itself, with what it may be.
func TestImpossibleLimits(t *testing.T) {
	for args, want := range map[string]string{
		"--max-gap -1s":   "infer: --max-gap -1s: must not be negative; 0 is no bound\n",
		"--drain -1s":     "infer: --drain -1s: must not be negative\n",
		"--timeout 0s":    "infer: --timeout 0s: must be positive\n",
		"--threads 99999": fmt.Sprintf("cores, want %d at most\n", 4*runtime.NumCPU()),
	} {
		code, _, errOut := call(t, append([]string{"serve", "--port", "0"}, strings.Fields(args)...)...)
		if code != exitUsage || !strings.Contains(errOut, want) {
			t.Errorf("%s: code %d, %q, want %q", args, code, errOut, want)
		}
	}
}

// What the system refuses does not fit either, though the plan had thought so.
func TestRefusedMemoryDoesNotFit(t *testing.T) {
	if code := exitCode(t.Context(), fmt.Errorf("allocate 9 bytes on cpu: %w", device.ErrOutOfMemory)); code != exitDoesNotFit {
		t.Errorf("exit code %d, want %d", code, exitDoesNotFit)
	}
}

// As many threads compute as were asked for, up to one for each processor.
func TestThreadsUpToProcessors(t *testing.T) {
	for _, n := range []int{1, cpu.Processors(), 4 * runtime.NumCPU()} {
		d, err := openDevices(&computeFlags{threads: n, deviceMap: "cpu"}, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		defer d.close()
		if got, want := d.cpu.Device().Info().Units, min(n, cpu.Processors()); got != want {
			t.Errorf("--threads %d: %d threads, want %d", n, got, want)
		}
	}
}

// call runs a command line in this process.
func call(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	code = execute(ctx, args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}
