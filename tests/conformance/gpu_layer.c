/* A layer of the ICD loader (OPENCL_LAYERS) that shows every device as a GPU of small groups, so that a processor runs
   kernels as GPUs get them: gcc -shared -fPIC gpu_layer.c -o libgpu_layer.so */
#include <CL/cl_layer.h>
#include <string.h>

static struct _cl_icd_dispatch changed;
static cl_int(CL_API_CALL* asked)(cl_device_id, cl_device_info, size_t, void*, size_t*);

static cl_int CL_API_CALL as_gpu(cl_device_id device, cl_device_info what, size_t room, void* place, size_t* size) {
  const cl_device_type type = CL_DEVICE_TYPE_GPU;
  const cl_uint units = 16;
  const size_t items = 256;
  const cl_ulong local = 32 << 10;
  const cl_int status = asked(device, what, room, place, size);
  if (status != CL_SUCCESS || place == NULL) return status;
  if (what == CL_DEVICE_TYPE) memcpy(place, &type, sizeof type);
  if (what == CL_DEVICE_MAX_COMPUTE_UNITS) memcpy(place, &units, sizeof units);
  if (what == CL_DEVICE_MAX_WORK_GROUP_SIZE) memcpy(place, &items, sizeof items);
  if (what == CL_DEVICE_LOCAL_MEM_SIZE) memcpy(place, &local, sizeof local);
  return status;
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t room, void* place, size_t* size) {
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  if (what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  if (size != NULL) *size = sizeof version;
  if (place != NULL && room >= sizeof version) memcpy(place, &version, sizeof version);
  return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch* target, cl_uint* given,
                                            const cl_icd_dispatch** layer) {
  if (count < sizeof changed / sizeof changed.clGetPlatformIDs) return CL_INVALID_VALUE;
  changed = *target;
  asked = target->clGetDeviceInfo;
  changed.clGetDeviceInfo = as_gpu;
  *given = sizeof changed / sizeof changed.clGetPlatformIDs;
  *layer = &changed;
  return CL_SUCCESS;
}
