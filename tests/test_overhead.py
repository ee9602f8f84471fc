"""How the host's time is taken, on a clock that runs while calls are made."""

from itertools import count

from tilewright.lab.overhead import BASELINE, CALLS, WARM_CALLS, host_times_us, ratios


class Clock:
    def __init__(self):
        self.ns, self.calls, self.synchronised = 0, 0, []

    def taking(self, ns):
        def call():
            self.ns += ns
            self.calls += 1

        return call


def test_each_form_is_timed_in_every_round_and_the_synchronisation_is_not():
    clock = Clock()
    pending = count()

    def synchronize():
        clock.ns += 10**9
        clock.synchronised.append(next(pending))

    times = host_times_us(
        {BASELINE: clock.taking(4000), "ours": clock.taking(6000)}, synchronize, rounds=5, now_ns=lambda: clock.ns
    )
    assert times == {BASELINE: [4.0] * 5, "ours": [6.0] * 5}
    assert clock.calls == 2 * (WARM_CALLS + 5 * CALLS) and len(clock.synchronised) == 11
    assert ratios(times) == {BASELINE: 1.0, "ours": 1.5}


def test_fewer_calls_between_synchronisations_than_a_driver_keeps_pending():
    assert CALLS < 1024
