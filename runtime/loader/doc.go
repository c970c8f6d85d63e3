// Package loader opens model folders in the Hugging Face layout and reads
// tensors from safetensors files.
//
//	folder ─Open─► Checkpoint ── Config, GenerationConfig   raw JSON, size-checked
//	                   ├── File   model-00001-of-00002.safetensors
//	                   │     8-byte length │ JSON header │ data ███████████
//	                   └── Tensor  name, dtype, shape, offset ─ReadAt─► bytes
//
// Open reads headers only. Everything a header, index or config says is
// checked against the file's real size before memory is taken for it: names
// are unique valid UTF-8, shapes multiply without overflow to exactly the
// bytes their range holds, ranges cover the data without overlap or hole. An
// error names the file, the tensor or key, and the numbers.
//
// Names of tensors are opaque keys and never become paths; names of shards are
// paths inside the folder, never outside it. Pickles are never opened.
//
// This package never interprets a weight, and holds none in memory.
package loader
