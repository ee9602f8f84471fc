// What a box must keep to before TMA copies it: its map, its place in shared memory. Owns the words of the refusals.
#pragma once

#include "shared_memory.hpp"
#include "tensor_map.hpp"
#include "wait.hpp"

// A box as the kernel asks for it.
struct BoxOperands {
  const void* smem;
  const void* map;
  int col, row, entry;
};

inline void check_box_place(Threads& threads, const SharedMemory& smem, const Box& box, const char* name, Site site) {
  Extent extent = smem.extent_of(reinterpret_cast<const void*>(box.smem));
  if (extent.bytes == 0) threads.refuse(site, "%s: the box's place is not in shared memory", name);
  uintptr_t offset = box.smem - extent.start;
  if (offset + box.map.box_bytes() > extent.bytes)
    threads.refuse(site, "%s: a box of %u bytes at shared offset %lu does not fit into %zu bytes", name,
                   box.map.box_bytes(), offset, extent.bytes);
  if (unsigned alignment = box.map.alignment_bytes(); box.smem % alignment != 0)
    threads.refuse(site, "%s: the box's place is %lu bytes off a multiple of %u, %s", name, box.smem % alignment,
                   alignment, box.map.span_bytes == 0 ? "TMA's alignment" : "eight rows of the swizzle");
}

inline Box checked_box(Threads& threads, const SharedMemory& smem, const BoxOperands& operands, const char* name,
                       Site site) {
  constexpr unsigned map_alignment = 64;
  if (uintptr_t off = reinterpret_cast<uintptr_t>(operands.map) % map_alignment; off != 0)
    threads.refuse(site,
                   "%s: its tensor map is %lu bytes off a multiple of %u: pass it by value, as a __grid_constant__",
                   name, off, map_alignment);
  Box box{EncodedMap::read(operands.map), reinterpret_cast<uintptr_t>(operands.smem), operands.col, operands.row,
          operands.entry};
  if (!box.map.is_valid())
    threads.refuse(site, "%s: its tensor map is not encoded: it holds zeros or no map at all", name);
  if (box.map.span_bytes != 0 && box.map.row_bytes() != box.map.span_bytes)
    threads.refuse(site,
                   "%s: a box's row of %u bytes under a swizzle of %lu: the emulator takes only rows as long as the "
                   "swizzle's span",
                   name, box.map.row_bytes(), box.map.span_bytes);
  check_box_place(threads, smem, box, name, site);
  return box;
}
