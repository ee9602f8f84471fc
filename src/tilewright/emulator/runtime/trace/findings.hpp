// What the checks found, told once for each pair of sites. Owns the lines to the parent; the words are the parent's
// (emulator/findings.py).
#pragma once

#include <unordered_set>

#include "arrays.hpp"
#include "output.hpp"
#include "shadow.hpp"

enum class Flaw { race, uninitialised, misaligned, out_of_bounds, padding, index, proxy };

// Who did something, as the parent is told.
struct Deed {
  int thread;
  uint32_t cta;
  uint32_t site;
  Kind kind;
};

class Findings {
 public:
  explicit Findings(int fd) : fd_(fd) {}

  void tell(Flaw flaw, ArrayId array, long offset, unsigned bytes, const Deed& now) {
    if (is_new(flaw, 0, now.site))
      write_line(fd_, "{\"finding\":{%s,%s}}\n", place(flaw, array, offset, bytes).text, deed("now", now).text);
  }

  // `type` is the array's as the compiler spells it, local arrays included.
  void tell_index(const char* type, long index, const Deed& now) {
    if (is_new(Flaw::index, 0, now.site))
      write_line(fd_, "{\"finding\":{\"flaw\":%d,\"type\":\"%s\",\"index\":%ld,%s}}\n", static_cast<int>(Flaw::index),
                 type, index, deed("now", now).text);
  }

  // Two accesses that lack an order. `waited`: whether a thread has waited for the first one, where that is
  // asynchronous.
  void tell_pair(Flaw flaw, ArrayId array, long offset, unsigned bytes, const Deed& before, const Deed& now,
                 bool waited) {
    if (!is_new(flaw, before.site, now.site)) return;
    write_line(fd_, "{\"finding\":{%s,%s,%s,\"waited\":%s}}\n", place(flaw, array, offset, bytes).text,
               deed("before", before).text, deed("now", now).text, waited ? "true" : "false");
  }

 private:
  static constexpr size_t most = 2000;

  struct Text {
    char text[256];
  };

  static Text place(Flaw flaw, ArrayId array, long offset, unsigned bytes) {
    Text part;
    snprintf(part.text, sizeof part.text, "\"flaw\":%d,\"space\":%d,\"array\":%d,\"offset\":%ld,\"bytes\":%u",
             static_cast<int>(flaw), static_cast<int>(array.space), array.number, offset, bytes);
    return part;
  }

  static Text deed(const char* name, const Deed& deed) {
    Text part;
    snprintf(part.text, sizeof part.text, "\"%s\":{\"thread\":%d,\"cta\":%u,\"site\":%u,\"kind\":%d}", name,
             deed.thread, deed.cta, deed.site, static_cast<int>(deed.kind));
    return part;
  }

  bool is_new(Flaw flaw, uint32_t before, uint32_t now) {
    uint64_t key = (static_cast<uint64_t>(flaw) << 58) ^ (uint64_t{before} << 29) ^ now;
    return told_.size() < most && told_.insert(key).second;
  }

  int fd_;
  std::unordered_set<uint64_t> told_;
};
