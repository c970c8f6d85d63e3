// Package tiny carries the default model inside the binary, so that a fresh
// machine answers with nothing downloaded: a Llama-style model of 2.8 million
// parameters that tells small stories. README.md beside this file says how it
// was made, what it can do, and what it cannot; recipe/ makes it again.
//
// The package only holds the files. They are read like any model folder.
package tiny

import "embed"

// Name is what the model is called wherever a MODEL is asked for.
const Name = "tiny"

// FS holds the model folder: config.json, model.safetensors, tokenizer.json …
//
//go:embed config.json generation_config.json model.safetensors tokenizer.json tokenizer_config.json
var FS embed.FS
