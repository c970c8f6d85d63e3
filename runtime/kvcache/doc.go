// Package kvcache keeps the keys and values of attention in pages (blocks) of
// kernels.BlockSize tokens.
//
//	BlockManager (host, pure)                    Cache (device, one per stage)
//	  sequence A ─► [ 7, 3, 9 ]                    layer 0: K [blocks, heads, 16, dim]
//	  sequence B ─► [ 7, 3, 4 ]  shares 7 and 3             V [blocks, heads, 16, dim]
//	  cached  key(prompt's first 16 ids) ─► 7      layer 1: …
//	  free    LRU: oldest evicted first
//
// A block number means the same page in every layer of every stage, so that
// one block table serves the whole plan.
//
// Prefix cache: a full block's Key is the hash of its ids, of the Key before
// it and of the salt, so that equal Keys mean equal contexts. A block is
// published only after the step that computed it has been committed; it must
// never be written again while published.
//
// BlockManager starts no goroutine, reads no clock and touches no device.
package kvcache
