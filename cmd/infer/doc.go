// Command infer runs large language models from Hugging Face safetensors
// checkpoints: over HTTP (infer serve), in the terminal (infer run, infer
// chat), and the tools around that (score, bench, tokenize, template, inspect,
// pull, version).
//
// This package is commands, flags and wiring: it resolves MODEL to an opened
// checkpoint (source.go), opens devices and the engine (runtime.go), and is
// the only importer of concrete backends. Each command is one file.
//
// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 does not fit, 130 interrupted.
package main
