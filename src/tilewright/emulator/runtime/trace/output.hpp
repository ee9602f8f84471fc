// Lines of JSON to the parent's file, whole lines only. Owns the descriptor's use, not what is said.
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

inline bool write_all(int fd, const void* data, size_t bytes) {
  for (auto* at = static_cast<const char*>(data); bytes > 0;) {
    ssize_t wrote = write(fd, at, bytes);
    if (wrote <= 0) return false;
    at += wrote;
    bytes -= static_cast<size_t>(wrote);
  }
  return true;
}

__attribute__((format(printf, 2, 3))) inline void write_line(int fd, const char* format, ...) {
  char text[1024];
  va_list values;
  va_start(values, format);
  int length = vsnprintf(text, sizeof text, format, values);
  va_end(values);
  if (length > 0 && static_cast<size_t>(length) < sizeof text) write_all(fd, text, static_cast<size_t>(length));
}
