// What an operand of wgmma must keep to. Owns the words of the refusals.
#pragma once

#include "wait.hpp"
#include "wgmma_operand.hpp"

inline void check_operand(Threads& threads, const WgmmaOperand& operand, char name, unsigned long long descriptor,
                          size_t smem_bytes, Site site) {
  if (!operand.is_descriptor())
    threads.refuse(site,
                   "wgmma: %c's descriptor %#llx has bits outside its fields, or a base offset: make it with "
                   "smem_descriptor, and move it within shared memory only",
                   name, descriptor);
  if (!operand.starts_with_pattern())
    threads.refuse(
        site,
        "wgmma: %c starts at shared offset %u, inside the pattern of its swizzle, which starts at multiples of "
        "%u: move it along k within eight rows, or by whole blocks",
        name, operand.start(), WgmmaOperand::block_lines * operand.span());
  if (operand.end() > smem_bytes)
    threads.refuse(site, "wgmma: %c ends at byte %zu of dynamic shared memory, which has %zu", name, operand.end(),
                   smem_bytes);
}
