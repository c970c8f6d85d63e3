// A management library for tests: the two GPUs of stub.c and a third that the
// driver does not show. 0 and 1 have two NVLinks to each other and one that is
// down; 0 has a link to a switch when SWITCH is set.
#include <nvml.h>
#include <string.h>

static int id(nvmlDevice_t d) { return (int)(size_t)d.handle - 1; }

nvmlReturn_t nvmlInit_v2(void) { return NVML_SUCCESS; }
nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }
nvmlReturn_t nvmlSystemGetDriverVersion(char *s, unsigned int n) { strcpy(s, "570.86.10"); return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *d) {
  // In another order than the driver's.
  if (!strncmp(uuid, "GPU-22", 6)) d->handle = (void *)(size_t)1;
  else if (!strncmp(uuid, "GPU-11", 6)) d->handle = (void *)(size_t)2;
  else return NVML_ERROR_NOT_FOUND;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *m) { m->total = 1 << 30; m->free = 1000 + id(d); return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t d, nvmlBAR1Memory_t *m) { m->bar1Total = 1 << 28; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t d, unsigned int *g) { *g = 5; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t d, unsigned int *w) { *w = 8; return id(d) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED; }
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *p) {
  memset(p, 0, sizeof *p);
  p->domain = 0xfffe; // nowhere in sysfs
  p->bus = 0x40 + id(d);
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t *l) { *l = NVML_TOPOLOGY_HOSTBRIDGE; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t i, nvmlGpuP2PStatus_t *s) {
  *s = NVML_P2P_STATUS_OK;
  if (id(a) == 0 && i == NVML_P2P_CAPS_INDEX_READ) *s = NVML_P2P_STATUS_GPU_NOT_SUPPORTED;
  if (id(a) == 1 && i == NVML_P2P_CAPS_INDEX_WRITE) *s = NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned int l, nvmlEnableState_t *s) {
#ifdef NO_LINKS
  return NVML_ERROR_NOT_SUPPORTED;
#endif
  if (l >= 4) return NVML_ERROR_INVALID_ARGUMENT;
  *s = l == 2 ? NVML_FEATURE_DISABLED : NVML_FEATURE_ENABLED;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t d, unsigned int l, nvmlPciInfo_t *p) {
  memset(p, 0, sizeof *p);
  p->domain = 0xfffe;
  p->bus = l == 3 ? 0x7f : 0x40 + !id(d);
  return NVML_SUCCESS;
}
#ifdef SWITCH
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t d, unsigned int l, nvmlIntNvLinkDeviceType_t *t) {
  *t = l == 3 ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
  return NVML_SUCCESS;
}
#endif
