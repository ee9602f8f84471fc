// CTAs that are alive together and wait for each other: one of them runs at a time, and hands on where it waits, ends
// or, under some schedules, publishes something. So a launch goes the same way each time, although every CTA has an
// OS thread of its own. Owns whose turn it is and the places of resident CTAs; a CTA starts only where one is free.
#pragma once

#include <pthread.h>

#include <atomic>
#include <vector>

#include "launch.hpp"
#include "report.hpp"

// A CTA in its place, as the others see it. They look only while it does not run.
class Resident {
 public:
  virtual bool can_go_on() const = 0;
  virtual void describe_waits(Report& report) const = 0;

 protected:
  ~Resident() = default;
};

class Turns {
 public:
  // `next` is the number, in starting order, of the CTA that starts next.
  Turns(const Launch& launch, const std::vector<uint64_t>& order, const std::atomic<uint64_t>& next, int places)
      : launch_(launch), order_(order), next_(next), random_(launch.seed, ~uint64_t{1}), places_(places) {
    holder_ = launch.order == Order::descending ? places - 1 : launch.order == Order::random ? random_place() : 0;
  }

  // The OS thread of `place` waits for its first turn.
  void begin(int place) { wait_for(place); }

  // A CTA takes the place whose turn it is; it leaves with a null pointer, and the turn goes on.
  void occupy(int place, Resident* resident) {
    places_[place].resident = resident;
    if (resident == nullptr) pass(place);
  }

  // No CTA is left to start in `place`.
  void end(int place) {
    places_[place].ended = true;
    int next = choose(place);
    if (next != nobody) hand_to(next);
    for (const Place& other : places_)
      if (next == nobody && other.resident != nullptr) report_deadlock();
  }

  // The CTA in `place` cannot run until another has: it gets its turn back when it can.
  void wait(int place) { pass(place); }

  // The CTA in `place` has published something. Under a schedule that lets others come first it goes on only when no
  // other can, so that what it should have done before shows.
  void publish(int place) {
    bool others_first =
        launch_.order == Order::descending || (launch_.order == Order::random && (random_.next() & 1) != 0);
    if (!others_first) return;
    places_[place].gives_way = true;
    pass(place);
    places_[place].gives_way = false;
  }

  int holder() const { return holder_; }

 private:
  static constexpr int nobody = -1;
  struct Place {
    Resident* resident = nullptr;
    bool ended = false, gives_way = false;
    pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
  };

  int random_place() { return static_cast<int>(random_.below(places_.size())); }

  bool can_run(int place) const {
    const Place& it = places_[place];
    if (it.resident != nullptr) return it.resident->can_go_on();
    return !it.ended;
  }

  // The next place that can run, in the schedule's order; `place` itself last, those that give way after all others.
  int choose(int place) {
    int count = static_cast<int>(places_.size());
    int step = launch_.order == Order::descending ? count - 1 : 1;
    int next = launch_.order == Order::random ? random_place() : (place + step) % count;
    for (int tried = 0; tried < 2 * count; ++tried, next = (next + step) % count)
      if (places_[next].gives_way == (tried >= count) && can_run(next)) return next;
    return nobody;
  }

  void pass(int place) {
    int next = choose(place);
    if (next == nobody) report_deadlock();
    if (next == place) return;
    hand_to(next);
    wait_for(place);
  }

  void hand_to(int place) {
    pthread_mutex_lock(&mutex_);
    holder_ = place;
    pthread_cond_signal(&places_[place].turn);
    pthread_mutex_unlock(&mutex_);
  }

  void wait_for(int place) {
    pthread_mutex_lock(&mutex_);
    while (holder_ != place) pthread_cond_wait(&places_[place].turn, &mutex_);
    pthread_mutex_unlock(&mutex_);
  }

  // Every resident waits, and what they wait for may be a CTA that has no place to start in.
  [[noreturn]] void report_deadlock() const {
    constexpr int most_told = 4;
    Report report;
    report.add("\"failure\":\"deadlock\",\"places\":%zu,\"ctas\":[", places_.size());
    int told = 0;
    for (const Place& place : places_) {
      if (place.resident == nullptr || told == most_told) continue;
      report.add(told++ == 0 ? "" : ",");
      place.resident->describe_waits(report);
    }
    report.add("],\"not_started\":[");
    uint64_t ctas = launch_.ctas(), next = next_ < ctas ? next_.load() : ctas;
    for (uint64_t i = next; i < ctas && i < next + most_told; ++i) {
      tilewright_index index = launch_.cta_index(order_.empty() ? i : order_[i]);
      report.add("%s[%u,%u,%u]", i == next ? "" : ",", index.x, index.y, index.z);
    }
    report.add("],\"not_started_count\":%lu,", ctas - next).send(false);
  }

  const Launch& launch_;
  const std::vector<uint64_t>& order_;
  const std::atomic<uint64_t>& next_;
  Random random_;
  std::vector<Place> places_;
  std::atomic<int> holder_{0};
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};
