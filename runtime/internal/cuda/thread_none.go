//go:build !(cuda && cgo && linux)

package cuda

import "time"

// The calls of a Thread, which nobody has in this build: Open fails.

type (
	contextHandle struct{}
	threadState   struct{}
)

func (t *Thread) begin(int) error { return ErrNotBuilt }
func (t *Thread) end() error      { return nil }

func (t *Thread) Alloc(int64) (Ptr, error)                        { return 0, ErrNotBuilt }
func (t *Thread) Free(Ptr) error                                  { return ErrNotBuilt }
func (t *Thread) MemInfo() (free, total int64, err error)         { return 0, 0, ErrNotBuilt }
func (t *Thread) AllocHost(int64) ([]byte, error)                 { return nil, ErrNotBuilt }
func (t *Thread) FreeHost([]byte) error                           { return ErrNotBuilt }
func (t *Thread) RegisterHost([]byte) error                       { return ErrNotBuilt }
func (t *Thread) UnregisterHost([]byte) error                     { return ErrNotBuilt }
func (t *Thread) NewStream() (Stream, error)                      { return 0, ErrNotBuilt }
func (t *Thread) DestroyStream(Stream) error                      { return ErrNotBuilt }
func (t *Thread) Query(Stream) (done bool, err error)             { return false, ErrNotBuilt }
func (t *Thread) Synchronize(Stream) error                        { return ErrNotBuilt }
func (t *Thread) NewEvent(bool) (Event, error)                    { return 0, ErrNotBuilt }
func (t *Thread) DestroyEvent(Event) error                        { return ErrNotBuilt }
func (t *Thread) Record(Event, Stream) error                      { return ErrNotBuilt }
func (t *Thread) QueryEvent(Event) (done bool, err error)         { return false, ErrNotBuilt }
func (t *Thread) WaitEvent(Stream, Event) error                   { return ErrNotBuilt }
func (t *Thread) Elapsed(_, _ Event) (time.Duration, error)       { return 0, ErrNotBuilt }
func (t *Thread) CopyToDevice(Ptr, []byte, Stream) error          { return ErrNotBuilt }
func (t *Thread) CopyToHost([]byte, Ptr, Stream) error            { return ErrNotBuilt }
func (t *Thread) Copy(_, _ Ptr, _ int64, _ Stream) error          { return ErrNotBuilt }
func (t *Thread) CopyPeer(Ptr, *Device, Ptr, int64, Stream) error { return ErrNotBuilt }
func (t *Thread) EnablePeer(*Device) error                        { return ErrNotBuilt }
func (t *Thread) Set8(Ptr, byte, int64, Stream) error             { return ErrNotBuilt }
func (t *Thread) LoadModule([]byte) (Module, error)               { return 0, ErrNotBuilt }
func (t *Thread) UnloadModule(Module) error                       { return ErrNotBuilt }
func (t *Thread) Function(Module, string) (Function, error)       { return 0, ErrNotBuilt }
func (t *Thread) SetMaxDynamicShared(Function, int) error         { return ErrNotBuilt }
func (t *Thread) BeginCapture(Stream) error                       { return ErrNotBuilt }
func (t *Thread) EndCapture(Stream) (Graph, error)                { return 0, ErrNotBuilt }
func (t *Thread) Instantiate(Graph) (GraphExec, error)            { return 0, ErrNotBuilt }
func (t *Thread) LaunchGraph(GraphExec, Stream) error             { return ErrNotBuilt }
func (t *Thread) DestroyGraph(Graph) error                        { return ErrNotBuilt }
func (t *Thread) DestroyGraphExec(GraphExec) error                { return ErrNotBuilt }

func (t *Thread) FunctionInfo(Function) (regs, localBytes, sharedBytes int, err error) {
	return 0, 0, 0, ErrNotBuilt
}

func (t *Thread) Launch(_ Function, _, _ [3]uint32, _ uint32, _ Stream, _ []byte) error {
	return ErrNotBuilt
}
