// Package layers has the blocks that decoder families share, and the Model and
// Stage made of them.
//
//	config.json ─ReadSpec─► Spec ◄─ what the family adds (biases, norms, windows)
//	                          └─New─► Model ─Load─► Stage: weights, tables, scratch
//
//	x += O·attention(rotary(QKV·norm(x)))      for each layer,
//	x += down·(act(gate·norm(x)) ⊙ up·norm(x))   pre-norm, residual stream x
//
// Q, K and V are packed as one weight, and so are gate and up.
//
// Nothing here knows a device or a family; all computation is kernels.Ops.
package layers
