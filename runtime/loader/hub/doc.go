// Package hub brings models from a Hugging Face hub into the cache that it shares with Python's huggingface_hub.
//
//	org/name@revision ─► api: commit, files ─► Select: what a model needs ─► HEAD: etag, size
//	                                                      │
//	   CACHE/models--org--name/                           ▼
//	     blobs/<etag>.incomplete ─ Range, digest ─rename─► blobs/<etag>
//	     snapshots/<commit>/<file> ─► ../../blobs/<etag>      (what Resolve returns)
//	     refs/<revision>, .no_exist/<commit>/<file>
//	   CACHE/.locks/models--org--name/<etag>.lock
//
// Only the files that a safetensors model needs are fetched; pickles never are. Every file is checked against what the hub announced:
// SHA-256 for large files, git's SHA-1 for small ones, the size for all. A download that ends early keeps its partial file and goes on
// from there.
//
// The package must never send the token to another host than the hub's, write outside the cache, trust a name or a size from the
// network, or wait without a deadline.
package hub
