package tiny

import "embed"

// Name is what the model is called wherever a MODEL is asked for.
const Name = "tiny"

// FS holds the model folder: config.json, model.safetensors, tokenizer.json …
//
//go:embed config.json generation_config.json model.safetensors tokenizer.json tokenizer_config.json
var FS embed.FS
