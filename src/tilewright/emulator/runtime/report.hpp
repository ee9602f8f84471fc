// The runner's one line of JSON. Owns the channel and its form; safe inside a signal handler.
// The kernel's own printing goes to standard error, so that nothing mixes with the line.
#pragma once

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>

#include "abi.hpp"

struct Site {
  const char* file = nullptr;
  int line = 0;
};

class Report {
 public:
  // Keeps standard output for the report and points descriptor 1 at standard error.
  static void open_channel() {
    channel() = fcntl(1, F_DUPFD_CLOEXEC, 3);
    dup2(2, 1);
    setvbuf(stdout, nullptr, _IOLBF, 0);
  }

  Report() { add("{"); }

  __attribute__((format(printf, 2, 3))) Report& add(const char* format, ...) {
    va_list values;
    va_start(values, format);
    int written = vsnprintf(text_ + used_, sizeof text_ - used_, format, values);
    va_end(values);
    used_ = written < 0 || used_ + written >= sizeof text_ ? sizeof text_ - 1 : used_ + written;
    return *this;
  }

  Report& add_string(const char* text) {
    add("\"");
    for (; *text != '\0'; ++text) {
      auto byte = static_cast<unsigned char>(*text);
      if (byte == '"' || byte == '\\' || byte < 0x20)
        add("\\u%04x", byte);
      else
        add("%c", byte);
    }
    return add("\"");
  }

  Report& add_index(const char* key, tilewright_index index) {
    return add("\"%s\":[%u,%u,%u],", key, index.x, index.y, index.z);
  }

  Report& add_site(const char* key, Site site) {
    add("\"%s\":", key);
    if (site.file == nullptr) return add("null,");
    return add("{\"file\":").add_string(site.file).add(",\"line\":%d},", site.line);
  }

  // Writes the line and ends the process; of several threads that fail at once the first reports.
  [[noreturn]] void send(bool ok) {
    static std::atomic<bool> sent{false};
    if (sent.exchange(true))
      for (;;) pause();
    add("\"ok\":%s}\n", ok ? "true" : "false");
    for (size_t done = 0; done < used_;) {
      ssize_t wrote = write(channel(), text_ + done, used_ - done);
      if (wrote <= 0) break;
      done += static_cast<size_t>(wrote);
    }
    _exit(0);
  }

 private:
  static int& channel() {
    static int fd = 1;
    return fd;
  }
  size_t used_ = 0;
  char text_[16384];
};

// The runner itself could not do its part: nothing a kernel did.
[[noreturn]] inline void fail_setup(const char* what, const char* detail) {
  Report report;
  report.add("\"failure\":\"setup\",\"what\":").add_string(what).add(",\"detail\":").add_string(detail).add(",");
  report.send(false);
}
