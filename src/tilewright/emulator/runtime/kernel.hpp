// The kernel's shared object: its entry, where its code lies, and its shared memory.
// A `__shared__` array is thread-local storage of that object, so each OS thread holds one CTA's.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "report.hpp"

extern "C" void* __tls_get_addr(size_t* module_and_offset);

class Kernel {
 public:
  using Entry = void (*)(const void*);

  static Kernel load(const char* path) {
    void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) fail_setup("the kernel cannot be loaded", dlerror());
    Kernel kernel;
    kernel.entry_ = reinterpret_cast<Entry>(dlsym(handle, "tilewright_entry"));
    auto* args_bytes = static_cast<const unsigned*>(dlsym(handle, "tilewright_args_bytes"));
    if (kernel.entry_ == nullptr || args_bytes == nullptr) fail_setup("the kernel has no entry", dlerror());
    kernel.args_bytes_ = *args_bytes;
    kernel.waits_across_ctas_ = dlsym(handle, "tilewright_waits_across_ctas") != nullptr;
    kernel.path_ = path;
    dl_iterate_phdr(find_segments, &kernel);
    return kernel;
  }

  void run(const void* args) const { entry_(args); }
  unsigned args_bytes() const { return args_bytes_; }

  // The calling OS thread's static shared memory; null if the kernel has none.
  unsigned char* static_smem() const {
    size_t start[2] = {tls_module_, 0};
    return tls_bytes_ == 0 ? nullptr : static_cast<unsigned char*>(__tls_get_addr(start));
  }
  size_t static_smem_bytes() const { return tls_bytes_; }

  // Whether its CTAs may wait for each other: it includes grid.cuh.
  bool waits_across_ctas() const { return waits_across_ctas_; }

  // The address's offset in the shared object, or -1 if it lies elsewhere.
  long code_offset(uintptr_t address) const {
    return address >= base_ && address < end_ ? static_cast<long>(address - base_) : -1;
  }

  // The same for an address that is the kernel's.
  uint32_t site(uintptr_t address) const { return static_cast<uint32_t>(address - base_); }

 private:
  static int find_segments(dl_phdr_info* info, size_t, void* data) {
    auto& kernel = *static_cast<Kernel*>(data);
    if (strcmp(info->dlpi_name, kernel.path_) != 0) return 0;
    kernel.base_ = info->dlpi_addr;
    kernel.tls_module_ = info->dlpi_tls_modid;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& segment = info->dlpi_phdr[i];
      uintptr_t end = info->dlpi_addr + segment.p_vaddr + segment.p_memsz;
      if (segment.p_type == PT_LOAD && end > kernel.end_) kernel.end_ = end;
      if (segment.p_type == PT_TLS) kernel.tls_bytes_ = segment.p_memsz;
    }
    return 1;
  }

  Entry entry_ = nullptr;
  unsigned args_bytes_ = 0;
  bool waits_across_ctas_ = false;
  const char* path_ = nullptr;
  uintptr_t base_ = 0, end_ = 0;
  size_t tls_module_ = 0, tls_bytes_ = 0;
};
