// Package tiny carries the default model inside the binary, so that a fresh
// machine answers with nothing downloaded: a Llama-style model of 2.8 million
// parameters that tells small stories. README.md beside this file says how it
// was made, what it can do, and what it cannot; recipe/ makes it again.
//
//	files ─embed─► FS ─► loader, tokenizer, chattemplate: like any model folder
//
// It holds the files and must never read them: they get no treatment of their own.
package tiny
