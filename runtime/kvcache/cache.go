package kvcache

import (
	"fmt"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// Cache is the pages of one stage's layers on its device.
type Cache struct {
	layers []kernels.KVLayer
	bufs   []device.Buffer
	blocks int
}

// LayerBytes is the memory of one layer's K and V for a number of blocks.
func LayerBytes(blocks int, h kernels.Heads, t tensor.DType) int64 {
	return 2 * int64(blocks) * kernels.BlockSize * int64(h.KV) * int64(kernels.KVDim(h.Dim, t)) * int64(t.Bits()) / 8
}

// NewCache allocates pages for n layers on the backend's device. Their content
// is undefined: a page is read only where it was written before. An error
// leaves nothing allocated.
func NewCache(b kernels.Backend, n, blocks int, h kernels.Heads) (*Cache, error) {
	c := &Cache{blocks: blocks}
	t := b.KVType()
	shape := tensor.Of(blocks, h.KV, kernels.BlockSize, kernels.KVDim(h.Dim, t))
	half := LayerBytes(blocks, h, t) / 2
	for layer := range n {
		var kv [2]tensor.Tensor
		for i := range kv {
			buf, err := b.Device().Alloc(half)
			if err != nil {
				c.Close()
				return nil, fmt.Errorf("allocate K/V pages on %v: layer %d of %d, %d blocks of %d tokens, %d bytes in all: %w",
					b.Device().Info().ID, layer, n, blocks, kernels.BlockSize, int64(n)*2*half, err)
			}
			c.bufs = append(c.bufs, buf)
			kv[i] = tensor.Tensor{Buf: buf, DType: t, Shape: shape}
		}
		c.layers = append(c.layers, kernels.KVLayer{K: kv[0], V: kv[1]})
	}
	return c, nil
}

// Layers has one entry for each layer of the stage.
func (c *Cache) Layers() []kernels.KVLayer { return c.layers }

// Blocks is the number of pages in each layer.
func (c *Cache) Blocks() int { return c.blocks }

// Bytes of device memory.
func (c *Cache) Bytes() int64 {
	var n int64
	for _, b := range c.bufs {
		n += b.Size()
	}
	return n
}

// Close frees the pages; work that uses them must have finished.
func (c *Cache) Close() error {
	var first error
	for _, b := range c.bufs {
		if err := b.Free(); err != nil && first == nil {
			first = err
		}
	}
	c.bufs, c.layers = nil, nil
	return first
}
