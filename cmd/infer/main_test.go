package main

import (
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
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
