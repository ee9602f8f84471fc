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

inline Box checked_box(Threads& threads, const SharedMemory& smem, const BoxOperands& operands, bool is_store,
                       Site site) {
  const char* name = is_store ? "tma_store" : "tma_load";
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
  if (auto off = (int64_t{box.col} * int64_t(box.map.element_bytes)) & int64_t(EncodedMap::chunk_bytes - 1); off != 0)
    threads.refuse(site, "%s: the box's first column %d is %ld bytes off a multiple of 16: an illegal instruction",
                   name, box.col, off);
  if (is_store && (box.col < 0 || box.row < 0 || box.entry < 0))
    threads.refuse(site,
                   "%s: the box starts at (%d, %d, %d): a store may end outside the matrix but not start before it",
                   name, box.col, box.row, box.entry);
  check_box_place(threads, smem, box, name, site);
  return box;
}
