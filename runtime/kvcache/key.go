package kvcache

import (
	"crypto/sha256"
	"encoding/binary"

	"infer/runtime/kernels"
)

// Key identifies a full block by everything that its K/V depends on: the ids
// of the block, of all blocks before it, and the salt. It is a SHA-256, so
// that no choice of prompts makes two contexts share a page by collision.
type Key [sha256.Size]byte

// Root is the Key that stands before the first block of a sequence. Sequences
// of different salts share nothing.
func Root(salt string) Key {
	return sha256.Sum256(append([]byte("kv\x00"), salt...))
}

// Next is the Key of the block that holds ids (exactly kernels.BlockSize of
// them) behind the block of Key prev.
func Next(prev Key, ids []int32) Key {
	var b [len(prev) + 4*kernels.BlockSize]byte
	copy(b[:], prev[:])
	for i, id := range ids[:kernels.BlockSize] {
		binary.LittleEndian.PutUint32(b[len(prev)+4*i:], uint32(id))
	}
	return sha256.Sum256(b[:])
}

// Extend appends to keys the Keys of ids' full blocks that are not in it yet.
// keys must be those of a prefix of ids under the same salt.
func Extend(keys []Key, salt string, ids []int32) []Key {
	full := len(ids) / kernels.BlockSize
	if len(keys) >= full {
		return keys
	}
	prev := Key{}
	if len(keys) > 0 {
		prev = keys[len(keys)-1]
	} else {
		prev = Root(salt)
	}
	for i := len(keys); i < full; i++ {
		prev = Next(prev, ids[i*kernels.BlockSize:(i+1)*kernels.BlockSize])
		keys = append(keys, prev)
	}
	return keys
}

// BlocksFor is the number of blocks that hold the K/V of n tokens.
func BlocksFor(n int) int { return (n + kernels.BlockSize - 1) / kernels.BlockSize }
