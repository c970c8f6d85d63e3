// Package modelstest runs models on any backend for tests, and compares them
// with what PyTorch and transformers computed.
//
//	testdata/<family>, $INFER_GOLDENS/<family> ─Goldens─► logits at every position,
//	greedy ids, whole or in chunks, alone or in a batch, in one stage or several
//
// Nothing but tests may import it.
package modelstest
