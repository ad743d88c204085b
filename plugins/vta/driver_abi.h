// The C interface of VTA's drivers (revision d4a15f6 of its sources, hardware version 0.0.2). Physical addresses have 32
// bits; one buffer has at most 2^25 bytes.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void* VTADeviceAlloc(void);
void VTADeviceFree(void* device);
// 0: done; 1: it took more than wait_cycles.
int VTADeviceRun(void* device, uint32_t insn_phy_addr, uint32_t insn_count, uint32_t wait_cycles);
void* VTAMemAlloc(size_t size, int cached);
void VTAMemFree(void* buffer);
uint32_t VTAMemGetPhyAddr(void* buffer);
void VTAMemCopyFromHost(void* to, const void* from, size_t size);
void VTAMemCopyToHost(void* to, const void* from, size_t size);
void VTAFlushCache(void* virtual_address, uint32_t physical_address, int size);
void VTAInvalidateCache(void* virtual_address, uint32_t physical_address, int size);

#ifdef __cplusplus
}
#endif
