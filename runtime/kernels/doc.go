// Package kernels is the contract between models and devices: Backend packs
// weights and opens Ops; Ops are the fused, destination-first operations a
// decoder is made of.
//
//	ids ─Embed─► x ─RMSNorm─► h ─MatMul(QKV)─► qkv ─Rotary─► qkv, K/V pages
//	    x ◄─MatMul(O)+=─ a ◄─Attention(K/V pages)─ qkv
//	    x ─RMSNorm─► h ─MatMul(gate,up)─► g ─GatedAct─► u ─MatMul(down)+=─► x
//	x ─GatherRows─► last rows ─RMSNorm─► ─MatMul(head)─► logits
//
// Every implementation passes the one suite in kernels/kerneltest, against the
// definitions in kernels/ref. An op's result for one row never depends on the
// other rows of the batch, nor on how many there are: the order of additions
// of an output element is fixed by the weight's shape alone.
//
// This package never runs anything itself.
package kernels
