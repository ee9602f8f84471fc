// One launch as the parent asks for it, read from standard input: `key value…` lines, then end of file.
// Owns parsing; it checks form, not sense, since the parent wrote it.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vector>

#include "abi.hpp"
#include "schedule.hpp"
#include "trace/request.hpp"

struct Mapping {
  unsigned long address;
  int fd;
  unsigned long bytes;
  bool writable;
};

// Argument bytes lie aligned as a struct that holds tensor maps is.
struct alignas(64) ArgsLine {
  unsigned char bytes[64];
};

struct Launch {
  const char* kernel = nullptr;
  tilewright_index grid{}, block{};
  size_t dynamic_smem_bytes = 0;
  int workers = 1;
  long time_limit_ms = 0;
  Order order = Order::ascending;
  uint64_t seed = 0;
  Completion completion = Completion::latest;
  std::vector<Mapping> mappings;
  std::vector<ArgsLine> args;
  size_t args_bytes = 0;
  TraceRequest trace;

  int threads() const { return static_cast<int>(block.x * block.y * block.z); }
  uint64_t ctas() const { return uint64_t{grid.x} * grid.y * grid.z; }

  // The blockIdx of CTA number `linear` of the grid.
  tilewright_index cta_index(uint64_t linear) const {
    uint64_t row = linear / grid.x;
    return {unsigned(linear % grid.x), unsigned(row % grid.y), unsigned(row / grid.y)};
  }
};

inline std::vector<char> read_all(int fd) {
  std::vector<char> text(4096);
  size_t used = 0;
  for (ssize_t got; (got = read(fd, text.data() + used, text.size() - used - 1)) > 0;) {
    used += static_cast<size_t>(got);
    if (text.size() - used < 2) text.resize(2 * text.size());
  }
  text[used] = '\0';
  return text;
}

inline bool parse_index(const char* value, tilewright_index& index) {
  return sscanf(value, "%u %u %u", &index.x, &index.y, &index.z) == 3;
}

inline bool parse_args(const char* value, Launch& launch) {
  for (unsigned byte; sscanf(value, "%2x", &byte) == 1; value += 2) {
    size_t place = launch.args_bytes++ % sizeof(ArgsLine);
    if (place == 0) launch.args.push_back({});
    launch.args.back().bytes[place] = static_cast<unsigned char>(byte);
  }
  return true;
}

inline bool parse_mapping(const char* value, std::vector<Mapping>& mappings) {
  Mapping mapping{};
  char mode[3] = "";
  if (sscanf(value, "%lu %d %lu %2s", &mapping.address, &mapping.fd, &mapping.bytes, mode) != 4) return false;
  mapping.writable = strcmp(mode, "rw") == 0;
  mappings.push_back(mapping);
  return true;
}

inline bool parse_schedule(const char* value, Launch& launch) {
  char name[16] = "";
  if (sscanf(value, "%15s %lu", name, &launch.seed) != 2) return false;
  launch.order = strcmp(name, "reverse") == 0  ? Order::descending
                 : strcmp(name, "random") == 0 ? Order::random
                                               : Order::ascending;
  return true;
}

inline bool parse_completion(const char* value, Completion& completion) {
  completion = strcmp(value, "earliest") == 0 ? Completion::earliest
               : strcmp(value, "random") == 0 ? Completion::random
                                              : Completion::latest;
  return true;
}

inline bool parse_line(const char* key, const char* value, Launch& launch) {
  auto is = [key](const char* name) { return strcmp(key, name) == 0; };
  if (is("kernel")) return (launch.kernel = value) != nullptr;
  if (is("grid")) return parse_index(value, launch.grid);
  if (is("block")) return parse_index(value, launch.block);
  if (is("dynamic_smem")) return sscanf(value, "%zu", &launch.dynamic_smem_bytes) == 1;
  if (is("workers")) return sscanf(value, "%d", &launch.workers) == 1;
  if (is("time_limit")) return sscanf(value, "%ld", &launch.time_limit_ms) == 1;
  if (is("schedule")) return parse_schedule(value, launch);
  if (is("async")) return parse_completion(value, launch.completion);
  if (is("map")) return parse_mapping(value, launch.mappings);
  if (is("trace")) return launch.trace.parse_trace(value);
  if (is("static")) return TraceRequest::parse_static(value, launch.trace.statics);
  if (is("guard")) return TraceRequest::parse_static(value, launch.trace.guards);
  if (is("array")) return launch.trace.parse_array(value);
  if (is("args")) return parse_args(value, launch);
  return false;
}

// `text` is cut into lines in place and must outlive `launch`. Returns the line that makes no sense, or null.
inline const char* parse_launch(char* text, Launch& launch) {
  for (char* line = strtok(text, "\n"); line != nullptr; line = strtok(nullptr, "\n")) {
    char* space = strchr(line, ' ');
    if (space == nullptr) return line;
    *space = '\0';
    if (!parse_line(line, space + 1, launch)) return line;
  }
  return launch.kernel != nullptr && launch.ctas() > 0 && launch.threads() > 0 ? nullptr : "incomplete";
}
