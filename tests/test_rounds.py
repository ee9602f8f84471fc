"""Rounds, conditions, graphs, the stopping rule and verdicts, on a simulated device."""

from __future__ import annotations

# --- rounds, on a simulated device


class FakeTimer:
    """A device whose launches take what `cost` says at the current host time; reports a time per batch."""

    def __init__(
        self, cost: Callable[[str, float], float] = lambda name, now_s: 100.0, overhead_s: float = 1e-4
    ) -> None:
        self.cost, self.overhead_s = cost, overhead_s
        self.host_s = 0.0
        self.spent_us = 0.0
        self.rounds = 0
        self.launches: list[tuple[str, int]] = []
        self.batch_sizes: list[int] = []

    def now_s(self) -> float:
        return self.host_s

    def time_us(self, batches: Sequence[Callable[[Any], None]], during: Callable[[], None]) -> list[float]:
        measured = []
        self.rounds += 1
        for batch in batches:
            self.spent_us, before = 0.0, len(self.launches)
            batch(self)
            measured.append(self.spent_us)
            self.batch_sizes.append(len(self.launches) - before)
            self.host_s += abs(self.spent_us) * 1e-6 if math.isfinite(self.spent_us) else 0.0
        self.host_s += self.overhead_s
        during()
        return measured

    def arm(self, name: str) -> Arm:
        def launch(slot: int, stream: FakeTimer) -> None:
            stream.launches.append((name, slot))
            stream.spent_us += stream.cost(name, stream.host_s)

        return Arm(name, launch)


def noisy(scale: float, seed: int = 0, **base_us: float) -> Callable[[str, float], float]:
    rng = random.Random(seed)
    return lambda name, now_s: base_us[name] * math.exp(rng.gauss(0, scale))


def test_every_arm_runs_once_a_round_in_an_order_that_changes() -> None:
    timer = FakeTimer(noisy(0.2, a=900.0, b=1100.0, c=2000.0))
    got = measure([timer.arm(x) for x in "abc"], timer, rounds=120, seed=7, budget_s=1e3, slots=5)
    assert got.rounds == 120
    assert all(sorted(order) == ["a", "b", "c"] for order in got.order)
    seen = Counter(got.order)
    assert set(seen) == set(itertools.permutations("abc"))
    assert max(seen.values()) < 45  # 20 expected
    assert {name: len(us) for name, us in got.times_us.items()} == dict.fromkeys("abc", 120)


def test_the_same_seed_gives_the_same_order_and_another_one_another() -> None:
    orders = []
    for seed in (1, 1, 2):
        timer = FakeTimer(noisy(0.2, a=900.0, b=1100.0))
        orders.append(measure([timer.arm(x) for x in "ab"], timer, rounds=40, seed=seed, budget_s=1e3, slots=2).order)
    assert orders[0] == orders[1] != orders[2]


def test_consecutive_launches_take_the_next_buffer_set() -> None:
    timer = FakeTimer(noisy(0.1, a=90.0, b=310.0))
    measure([timer.arm(x) for x in "ab"], timer, rounds=10, seed=0, budget_s=1.0, slots=3)
    slots = [slot for _, slot in timer.launches]
    assert slots == [index % 3 for index in range(len(slots))]


def test_a_sample_is_the_mean_of_enough_launches_to_last_a_millisecond() -> None:
    timer = FakeTimer(noisy(0.0, short=12.0, long=5000.0))
    got = measure([timer.arm(x) for x in ("short", "long")], timer, rounds=3, seed=0, budget_s=1e3, slots=2)
    assert got.inner == {"short": 84, "long": 1}
    assert got.median_us("short") == pytest.approx(12.0)
    assert set(timer.batch_sizes[-4:]) == {84, 1}


def test_a_round_never_holds_more_launches_than_the_stream_queues() -> None:
    timer = FakeTimer(noisy(0.0, a=1.0, b=1.0, c=1.0))
    got = measure([timer.arm(x) for x in "abc"], timer, rounds=2, seed=0, budget_s=1.0, slots=2)
    assert sum(got.inner.values()) == MAX_LAUNCHES_PER_ROUND


def test_it_stops_once_every_interval_is_narrow() -> None:
    timer = FakeTimer(noisy(1e-4, a=1000.0, b=1200.0))
    got = measure([timer.arm(x) for x in "ab"], timer, rounds=500, seed=0, budget_s=1e3, slots=2)
    assert (got.stop, got.rounds) == ("precision", MIN_ROUNDS)
    assert got.interval_us("a").half_width <= 0.0025


def test_precision_of_ratios_to_a_baseline_ignores_what_a_round_shares() -> None:
    stops = {}
    for baseline in (None, "base"):
        timer = FakeTimer()

        def cost(name: str, now_s: float, timer: FakeTimer = timer) -> float:
            shared = math.exp(random.Random(timer.rounds).gauss(0, 0.1))
            return {"a": 1000.0, "base": 2000.0}[name] * shared

        timer.cost = cost
        arms = [timer.arm("a"), timer.arm("base")]
        got = measure(arms, timer, rounds=100, seed=0, budget_s=20.0, slots=2, baseline=baseline)
        stops[baseline] = got.stop
        assert got.ratio("a", "base").median == pytest.approx(2.0)
    assert stops == {None: "rounds", "base": "precision"}


def test_it_stops_at_the_rounds_asked_for() -> None:
    timer = FakeTimer(noisy(0.3, a=1000.0))
    got = measure([timer.arm("a")], timer, rounds=33, seed=0, budget_s=1e6, slots=2)
    assert (got.stop, got.rounds) == ("rounds", 33)


def test_it_stops_on_budget_which_includes_the_warm_up() -> None:
    timer = FakeTimer(noisy(0.3, a=10_000.0))
    got = measure([timer.arm("a")], timer, rounds=10**6, seed=0, budget_s=5.0, slots=2)
    assert got.stop == "budget"
    assert 5.0 <= timer.host_s < 5.1
    assert got.rounds > 100


def test_even_a_budget_below_one_round_gives_one_round() -> None:
    timer = FakeTimer(noisy(0.0, a=5e6))
    got = measure([timer.arm("a")], timer, rounds=10, seed=0, budget_s=0.01, slots=2)
    assert (got.stop, got.rounds, got.median_us("a")) == ("budget", 1, 5e6)


def test_sampling_starts_when_a_warming_device_has_settled() -> None:
    timer = FakeTimer(lambda name, now_s: 1000.0 * (1.0 + math.exp(-now_s)))
    got = measure([timer.arm("a")], timer, rounds=50, seed=0, budget_s=1e3, slots=2)
    assert got.warm
    assert max(got.times_us["a"]) < 1015.0


def test_a_device_that_never_settles_is_measured_and_said_to_be_so() -> None:
    timer = FakeTimer(lambda name, now_s: 1000.0 * math.exp(now_s / 10.0))
    got = measure([timer.arm("a")], timer, rounds=10, seed=0, budget_s=20.0, slots=2)
    assert not got.warm
    assert got.rounds == 10
    assert timer.host_s < 20.0


def test_the_clock_is_read_every_round_and_slowed_rounds_are_dropped_whole() -> None:
    timer = FakeTimer(noisy(0.2, a=1000.0, b=1000.0))
    reads = itertools.count()

    def read() -> ClockReading:
        index = next(reads)
        return ClockReading(
            1980 - index % 7, reasons=("hw_thermal_slowdown",) if index % 25 == 0 else ("sw_power_cap",)
        )

    arms = [timer.arm(x) for x in "ab"]
    got = measure(arms, timer, rounds=60, seed=0, budget_s=1e3, slots=2, read_clocks=read)
    assert got.rounds == len(got.clocks) == len(got.times_us["a"]) == len(got.times_us["b"]) == 60
    assert got.rejected_rounds in (2, 3)
    assert not any(reading is None or reading.slowed for reading in got.clocks)
    assert got.median_sm_mhz == pytest.approx(1977, abs=1)


def test_a_device_that_stays_slowed_is_throttled_and_not_an_answer() -> None:
    timer = FakeTimer()
    slowed = ClockReading(600, reasons=("hw_slowdown",))
    got = measure([timer.arm("a")], timer, rounds=50, seed=0, budget_s=1e3, slots=2, read_clocks=lambda: slowed)
    assert (got.stop, got.rounds, got.rejected_rounds) == ("throttled", 0, MAX_REJECTED)
    with pytest.raises(InvalidInput, match="no samples"):
        got.median_us("a")


def test_without_clocks_there_are_readings_of_none() -> None:
    timer = FakeTimer(noisy(0.2, a=1000.0))
    got = measure([timer.arm("a")], timer, rounds=4, seed=0, budget_s=1e3, slots=2)
    assert (got.clocks, got.sm_mhz) == ((None,) * 4, (None,) * 4)
    assert got.median_sm_mhz is None


@pytest.mark.parametrize("bad", BAD_TIMES)
def test_a_timer_that_returns_no_time_is_an_error(bad: float) -> None:
    timer = FakeTimer(lambda name, now_s: bad)
    with pytest.raises(InvalidInput, match="must be finite and above 0"):
        measure([timer.arm("a")], timer, rounds=2, seed=0, budget_s=1.0, slots=2)


def test_the_stopping_rule_keeps_the_coverage_of_the_ratio() -> None:
    covered = 0
    for seed in range(150):
        timer = FakeTimer(noisy(0.005, seed, a=100.0, base=105.0), overhead_s=0.0)
        arms = [timer.arm("a"), timer.arm("base")]
        got = measure(arms, timer, rounds=200, seed=seed, budget_s=3.0, slots=2, baseline="base", warm_window_s=0.01)
        interval = got.ratio("a", "base")
        covered += interval.low <= 1.05 <= interval.high
    assert covered / 150 > 0.89


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"rounds": 0}, InvalidInput, "rounds=0"),
        ({"slots": 0}, InvalidInput, "slots=0"),
        ({"budget_s": 0.0}, InvalidInput, "budget_s=0"),
        ({"budget_s": math.nan}, InvalidInput, "budget_s=nan"),
        ({"baseline": "z"}, UnknownName, "baseline 'z'.*a, b"),
        ({"arms": ""}, InvalidInput, "at least one"),
        ({"arms": "aa"}, InvalidInput, "name of its own"),
        ({"arms": "a", "baseline": "a"}, InvalidInput, "only arm"),
    ],
)
def test_a_measurement_that_cannot_be_is_refused(change: dict[str, Any], error: type[Exception], says: str) -> None:
    timer = FakeTimer()
    settings: dict[str, Any] = {"arms": "ab", "rounds": 5, "seed": 0, "budget_s": 1.0, "slots": 2, **change}
    with pytest.raises(error, match=says):
        measure([timer.arm(x) for x in settings.pop("arms")], timer, **settings)


def test_an_arm_that_was_not_measured_is_named_with_those_that_were() -> None:
    timer = FakeTimer()
    got = measure([timer.arm("a")], timer, rounds=2, seed=0, budget_s=1.0, slots=2)
    with pytest.raises(UnknownName, match=r"arm 'b'.*there are a"):
        got.ratio("b", "a")


