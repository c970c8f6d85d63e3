//go:build cuda && cgo && linux

// The driver's functions. Each takes the thread's current context along to its
// counterpart in Go: a call from a thread on which none is current is an error,
// as it would be with the driver.
#include "entries.h"
#include "_cgo_export.h"

#include <stddef.h>
#include <stdint.h>

typedef unsigned long long ptr; // CUdeviceptr
typedef uintptr_t handle;       // streams, events, modules ...

static __thread handle current;

static int setCurrent(handle c) {
  int r = simContextCheck(c);
  if (r == 0) current = c;
  return r;
}

static int retain(handle *c, int d) { return simPrimaryRetain(c, d); }

static int release(int d) { return simPrimaryRelease(d); }

static int synchronize(void) { return simCtxSynchronize(current); }
static int enablePeer(handle peer, unsigned int flags) {
  return flags ? 1 : simEnablePeer(current, peer);
}
static int disablePeer(handle peer) { return simDisablePeer(current, peer); }
static int memGetInfo(size_t *free, size_t *total) {
  return simMemGetInfo(current, free, total);
}
static int memAlloc(ptr *p, size_t n) { return simMemAlloc(current, p, n); }
static int memFree(ptr p) { return simMemFree(current, p); }
static int hostAlloc(void **p, size_t n, unsigned int flags) {
  (void)flags; // every device reaches it, whatever is asked for
  return simHostAlloc(current, p, n);
}
static int hostFree(void *p) { return simHostFree(current, p); }
static int hostRegister(void *p, size_t n, unsigned int flags) {
  (void)flags;
  return simHostRegister(current, p, n);
}
static int hostUnregister(void *p) { return simHostUnregister(current, p); }
static int htodAsync(ptr d, const void *s, size_t n, handle q) {
  return simUpload(current, d, (void *)s, n, q, 0);
}
static int dtohAsync(void *d, ptr s, size_t n, handle q) {
  return simDownload(current, d, s, n, q, 0);
}
static int dtodAsync(ptr d, ptr s, size_t n, handle q) {
  return simCopy(current, d, s, n, q, 0);
}
static int peerAsync(ptr d, handle dc, ptr s, handle sc, size_t n, handle q) {
  return simCopyPeer(current, d, dc, s, sc, n, q, 0);
}
static int htod(ptr d, const void *s, size_t n) {
  return simUpload(current, d, (void *)s, n, 0, 1);
}
static int dtoh(void *d, ptr s, size_t n) {
  return simDownload(current, d, s, n, 0, 1);
}
static int dtod(ptr d, ptr s, size_t n) {
  return simCopy(current, d, s, n, 0, 1);
}
static int peer(ptr d, handle dc, ptr s, handle sc, size_t n) {
  return simCopyPeer(current, d, dc, s, sc, n, 0, 1);
}
static int set8Async(ptr d, unsigned char v, size_t n, handle q) {
  return simSet(current, d, v, 1, n, q);
}
static int set16Async(ptr d, unsigned short v, size_t n, handle q) {
  return simSet(current, d, v, 2, n, q);
}
static int set32Async(ptr d, unsigned int v, size_t n, handle q) {
  return simSet(current, d, v, 4, n, q);
}
static int streamCreate(handle *q, unsigned int flags) {
  return simStreamCreate(current, q, flags);
}
static int streamDestroy(handle q) { return simStreamDestroy(current, q); }
static int streamQuery(handle q) { return simStreamQuery(current, q); }
static int streamSynchronize(handle q) {
  return simStreamSynchronize(current, q);
}
static int streamWait(handle q, handle e, unsigned int flags) {
  return flags ? 1 : simStreamWaitEvent(current, q, e);
}
static int eventCreate(handle *e, unsigned int flags) {
  return simEventCreate(current, e, flags);
}
static int eventDestroy(handle e) { return simEventDestroy(current, e); }
static int eventRecord(handle e, handle q) {
  return simEventRecord(current, e, q);
}
static int eventQuery(handle e) { return simEventQuery(current, e); }
static int eventSynchronize(handle e) {
  return simEventSynchronize(current, e);
}
static int eventElapsed(float *ms, handle a, handle b) {
  return simEventElapsed(current, ms, a, b);
}

// The options that say where the compiler's complaints go.
enum { errorLog = 5, errorLogSize = 6 };

static int loadModule(handle *m, const void *image, unsigned int n, int *o,
                      void **v) {
  char *log = NULL;
  size_t size = 0;
  for (unsigned int i = 0; i < n; i++) {
    if (o[i] == errorLog) log = v[i];
    if (o[i] == errorLogSize) size = (size_t)v[i];
  }
  return simModuleLoad(current, m, (char *)image, log, log ? size : 0);
}
static int loadModulePlain(handle *m, const void *image) {
  return simModuleLoad(current, m, (char *)image, NULL, 0);
}
static int moduleUnload(handle m) { return simModuleUnload(current, m); }
static int moduleFunction(handle *f, handle m, const char *s) {
  return simModuleFunction(current, f, m, (char *)s);
}
static int moduleGlobal(ptr *p, size_t *n, handle m, const char *s) {
  return simModuleVariable(current, p, n, m, (char *)s);
}
static int funcGetAttribute(int *v, int a, handle f) {
  return simFuncGetAttribute(current, v, a, f);
}
static int funcSetAttribute(handle f, int a, int v) {
  return simFuncSetAttribute(current, f, a, v);
}

// The words of the list that carries a packed block of parameters.
enum { end = 0, bufferPointer = 1, bufferSize = 2 };

static int launch(handle f, unsigned int gx, unsigned int gy, unsigned int gz,
                  unsigned int bx, unsigned int by, unsigned int bz,
                  unsigned int shared, handle q, void **params, void **extra) {
  void *block = NULL;
  size_t n = 0;
  if (params && extra) return 1;
  for (; extra && (uintptr_t)extra[0] != end; extra += 2) {
    switch ((uintptr_t)extra[0]) {
    case bufferPointer:
      block = extra[1];
      break;
    case bufferSize:
      n = *(size_t *)extra[1];
      break;
    default:
      return 1;
    }
  }
  return simLaunch(current, f, gx, gy, gz, bx, by, bz, shared, q, params, block,
                   n);
}
static int beginCapture(handle q, int mode) {
  return simBeginCapture(current, q, mode);
}
static int endCapture(handle q, handle *g) {
  return simEndCapture(current, q, g);
}
static int instantiate(handle *x, handle g, unsigned long long flags) {
  return flags ? 801 : simInstantiate(current, x, g);
}
static int graphLaunch(handle x, handle q) {
  return simGraphLaunch(current, x, q);
}
static int graphDestroy(handle g) { return simGraphDestroy(current, g); }
static int graphExecDestroy(handle x) {
  return simGraphExecDestroy(current, x);
}

// Names and texts of errors are the caller's own.
static int noText(int e, const char **s) {
  (void)e;
  *s = NULL;
  return 1;
}

static const struct {
  const char *name;
  void *function;
} entries[] = {
    {"cuInit", simInit},
    {"cuDriverGetVersion", simDriverGetVersion},
    {"cuGetErrorName", noText},
    {"cuGetErrorString", noText},
    {"cuDeviceGet", simDeviceGet},
    {"cuDeviceGetCount", simDeviceGetCount},
    {"cuDeviceGetName", simDeviceGetName},
    {"cuDeviceGetUuid", simDeviceGetUuid},
    {"cuDeviceTotalMem_v2", simDeviceTotalMem},
    {"cuDeviceGetAttribute", simDeviceGetAttribute},
    {"cuDeviceCanAccessPeer", simDeviceCanAccessPeer},
    {"cuDeviceGetP2PAttribute", simDeviceGetP2PAttribute},
    {"cuDevicePrimaryCtxRetain", retain},
    {"cuDevicePrimaryCtxRelease_v2", release},
    {"cuDevicePrimaryCtxReset_v2", simPrimaryReset},
    {"cuCtxSetCurrent", setCurrent},
    {"cuCtxSynchronize", synchronize},
    {"cuCtxEnablePeerAccess", enablePeer},
    {"cuCtxDisablePeerAccess", disablePeer},
    {"cuMemGetInfo_v2", memGetInfo},
    {"cuMemAlloc_v2", memAlloc},
    {"cuMemFree_v2", memFree},
    {"cuMemHostAlloc", hostAlloc},
    {"cuMemFreeHost", hostFree},
    {"cuMemHostRegister_v2", hostRegister},
    {"cuMemHostUnregister", hostUnregister},
    {"cuMemcpyHtoDAsync_v2", htodAsync},
    {"cuMemcpyDtoHAsync_v2", dtohAsync},
    {"cuMemcpyDtoDAsync_v2", dtodAsync},
    {"cuMemcpyPeerAsync", peerAsync},
    {"cuMemcpyHtoD_v2", htod},
    {"cuMemcpyDtoH_v2", dtoh},
    {"cuMemcpyDtoD_v2", dtod},
    {"cuMemcpyPeer", peer},
    {"cuMemsetD8Async", set8Async},
    {"cuMemsetD16Async", set16Async},
    {"cuMemsetD32Async", set32Async},
    {"cuStreamCreate", streamCreate},
    {"cuStreamDestroy_v2", streamDestroy},
    {"cuStreamQuery", streamQuery},
    {"cuStreamSynchronize", streamSynchronize},
    {"cuStreamWaitEvent", streamWait},
    {"cuEventCreate", eventCreate},
    {"cuEventDestroy_v2", eventDestroy},
    {"cuEventRecord", eventRecord},
    {"cuEventQuery", eventQuery},
    {"cuEventSynchronize", eventSynchronize},
    {"cuEventElapsedTime", eventElapsed},
    {"cuModuleLoadDataEx", loadModule},
    {"cuModuleLoadData", loadModulePlain},
    {"cuModuleUnload", moduleUnload},
    {"cuModuleGetFunction", moduleFunction},
    {"cuModuleGetGlobal_v2", moduleGlobal},
    {"cuFuncGetAttribute", funcGetAttribute},
    {"cuFuncSetAttribute", funcSetAttribute},
    {"cuLaunchKernel", launch},
    {"cuStreamBeginCapture_v2", beginCapture},
    {"cuStreamEndCapture", endCapture},
    {"cuGraphInstantiateWithFlags", instantiate},
    {"cuGraphLaunch", graphLaunch},
    {"cuGraphDestroy", graphDestroy},
    {"cuGraphExecDestroy", graphExecDestroy},
};

int simEntries(void) { return sizeof entries / sizeof entries[0]; }
const char *simEntryName(int i) { return entries[i].name; }
void *simEntryFunction(int i) { return entries[i].function; }
