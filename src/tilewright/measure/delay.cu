// Holds the stream for about duration_ns, touching no memory, while the host queues the work behind it.
extern "C" __global__ void tilewright_delay(unsigned long long duration_ns) {
  unsigned long long start_ns;
  unsigned long long now_ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start_ns));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now_ns));
  } while (now_ns - start_ns < duration_ns);
}
