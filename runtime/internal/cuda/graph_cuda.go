//go:build cuda && cgo && linux

package cuda

// #include "shim.h"
import "C"

import (
	"unsafe"

	"gorgonia.org/cu"
)

// BeginCapture makes s record the work queued on it, and on streams that wait
// for its events, instead of running it. Calls that would wait are errors
// meanwhile, on this thread only.
func (t *Thread) BeginCapture(s Stream) error {
	return t.check(C.cuStreamBeginCapture(cStream(s), C.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture", "")
}

// EndCapture ends the recording. Also on an error s is no longer recording.
func (t *Thread) EndCapture(s Stream) (Graph, error) {
	var g C.CUgraph
	if err := t.check(C.cuStreamEndCapture(cStream(s), &g), "cuStreamEndCapture", ""); err != nil {
		return 0, err
	}
	return *(*Graph)(unsafe.Pointer(&g)), nil
}

// Instantiate prepares a graph for launching; the graph may be destroyed.
func (t *Thread) Instantiate(g Graph) (GraphExec, error) {
	var x C.CUgraphExec
	if err := t.check(C.cuGraphInstantiateWithFlags(&x, *(*C.CUgraph)(unsafe.Pointer(&g)), 0), "cuGraphInstantiateWithFlags", ""); err != nil {
		return 0, err
	}
	return *(*GraphExec)(unsafe.Pointer(&x)), nil
}

// LaunchGraph queues a whole graph on s.
func (t *Thread) LaunchGraph(x GraphExec, s Stream) error {
	return t.check(C.cuGraphLaunch(*(*C.CUgraphExec)(unsafe.Pointer(&x)), cStream(s)), "cuGraphLaunch", "")
}

// DestroyGraph gives a graph back.
func (t *Thread) DestroyGraph(g Graph) error {
	return t.wrap((*(*cu.Graph)(unsafe.Pointer(&g))).Destroy(), "cuGraphDestroy", "")
}

// DestroyGraphExec gives an instantiated graph back.
func (t *Thread) DestroyGraphExec(x GraphExec) error {
	return t.wrap((*(*cu.ExecGraph)(unsafe.Pointer(&x))).Destroy(), "cuGraphExecDestroy", "")
}
