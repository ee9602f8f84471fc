"""Rounds, conditions, graphs, the stopping rule and verdicts, on a simulated device."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tilewright.errors import InvalidInput, LaunchFailed, UnknownName
from tilewright.measure import Arm, ClockReading, Samples, judge, measure
from tilewright.measure.schedule import BURST_IDLE_S, MAX_GRAPH_LAUNCHES, MAX_LAUNCHES_PER_ROUND
from tilewright.measure.stopping import FIRST_LOOK, MAX_REJECTED, enough, is_look
from tilewright.measure.warm_up import Window, has_settled

BAD_TIMES = [0.0, -1.0, math.nan, math.inf, -math.inf]


class FakeTimer:
    """A device whose launches take what `cost` says at the current host time; reports a time per batch."""

    def __init__(
        self, cost: Callable[[str, float], float] = lambda name, now_s: 100.0, overhead_s: float = 1e-4
    ) -> None:
        self.cost, self.overhead_s = cost, overhead_s
        self.host_s = 0.0
        self.launch_s = 0.0
        self.idle_s: list[float] = []
        self.replayed: list[str] = []
        self.captured: list[int] = []
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

    def idle(self, seconds: float) -> None:
        self.idle_s.append(seconds)
        self.host_s += seconds

    def capture(self, batch: Callable[[Any], None]) -> Callable[[Any], None]:
        """A graph's launches take half as long: there is no gap between them."""
        before = len(self.launches)
        batch(self)
        captured = self.launches[before:]
        del self.launches[before:]
        self.captured.append(len(captured))

        def replay(stream: FakeTimer) -> None:
            stream.replayed.append(captured[0][0])
            stream.launches += captured
            stream.spent_us += sum(stream.cost(name, stream.host_s) / 2 for name, _ in captured)

        return replay

    def arm(self, name: str) -> Arm:
        def launch(slot: int, stream: FakeTimer) -> None:
            stream.host_s += stream.launch_s
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
    timer = FakeTimer(noisy(0.0, short=25.0, long=5000.0))
    got = measure([timer.arm(x) for x in ("short", "long")], timer, rounds=3, seed=0, budget_s=1e3, slots=2)
    assert got.inner == {"short": 40, "long": 1}
    assert got.median_us("short") == pytest.approx(25.0)
    assert set(timer.batch_sizes[-4:]) == {40, 1}


def test_a_round_never_holds_more_launches_than_the_stream_queues() -> None:
    names = "abcdefghijklmnopqrstuvwxyz"
    timer = FakeTimer(noisy(0.0, **dict.fromkeys(names, 21.0)))
    got = measure([timer.arm(x) for x in names], timer, rounds=2, seed=0, budget_s=1.0, slots=2)
    assert sum(got.inner.values()) == MAX_LAUNCHES_PER_ROUND // 26 * 26


def test_it_stops_once_every_interval_is_narrow() -> None:
    timer = FakeTimer(noisy(1e-4, a=1000.0, b=1200.0))
    got = measure([timer.arm(x) for x in "ab"], timer, rounds=500, seed=0, budget_s=1e3, slots=2)
    assert (got.stop, got.rounds) == ("precision", FIRST_LOOK)
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
        ({"arms": ("a", "a (A/A control)"), "baseline": "a"}, InvalidInput, "A/A control"),
        ({"mode": "hot"}, InvalidInput, "mode 'hot'.*steady, burst"),
        ({"launch": "hot"}, InvalidInput, "launch 'hot'.*stream, graph"),
        ({"launch": "stream", "mode": "sustained"}, InvalidInput, "launch 'stream' in mode sustained"),
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


# --- the baseline's A/A control, and the looks


def test_the_baseline_runs_twice_a_round_and_its_aa_control_shows_what_equal_arms_look_like() -> None:
    timer = FakeTimer(noisy(0.01, a=1000.0, base=2000.0))
    got = measure(
        [timer.arm(x) for x in ("a", "base")], timer, rounds=30, seed=0, budget_s=1e3, slots=2, baseline="base"
    )
    assert all(sorted(order) == ["a", "base", "base (A/A control)"] for order in got.order)
    assert got.aa is not None and got.aa.low < 1.0 < got.aa.high
    assert got.aa_floor == max(got.aa.high - 1.0, 1.0 - got.aa.low)


def test_without_a_baseline_there_is_no_aa_control() -> None:
    timer = FakeTimer()
    got = measure([timer.arm("a")], timer, rounds=2, seed=0, budget_s=1.0, slots=2)
    assert (set(got.times_us), got.aa, got.aa_floor) == ({"a"}, None, None)


def test_intervals_are_looked_at_after_twenty_rounds_and_their_doublings() -> None:
    assert [rounds for rounds in range(400) if is_look(rounds)] == [20, 40, 80, 160, 320]


@pytest.mark.parametrize(
    ("control_us", "scale", "stop"),
    [(1000.0, 0.005, "precision"), (1020.0, 0.005, "precision"), (1020.0, 0.02, "floor"), (1000.0, 0.02, "")],
)
def test_there_is_no_use_in_going_on_where_equal_arms_differ_by_more_than_is_known(
    control_us: float, scale: float, stop: str
) -> None:
    times = {
        "a": around(900.0, scale=scale),
        "base": [1000.0] * 40,
        "base (A/A control)": around(control_us, scale=scale),
    }
    assert enough(times, "base", "base (A/A control)") == stop


# --- settling


def window(level: float = 1000.0, sm_mhz: float | None = 1980.0, power_w: float | None = 600.0) -> Window:
    return Window(math.log(level), sm_mhz, power_w)


@pytest.mark.parametrize(
    ("windows", "settled"),
    [
        ([window(), window()], False),
        ([window(), window(), window()], True),
        ([window(level=900), window(), window(), window()], True),
        ([window(level=1011), window(), window()], False),
        ([window(sm_mhz=1960), window(sm_mhz=1975), window()], False),
        ([window(power_w=600), window(power_w=604), window(power_w=608)], False),
        ([window(power_w=608), window(power_w=604), window(power_w=600)], False),
        ([window(power_w=600), window(power_w=640), window(power_w=601)], True),
        ([window(sm_mhz=None, power_w=None)] * 3, True),
    ],
)
def test_a_card_has_settled_when_times_clock_and_power_have(windows: list[Window], settled: bool) -> None:
    assert has_settled(windows) == settled


def test_sampling_waits_for_the_clock_and_not_for_times_alone() -> None:
    timer = FakeTimer()

    def read() -> ClockReading:
        return ClockReading(round(1980 - 200 * math.exp(-timer.host_s)))

    got = measure([timer.arm("a")], timer, rounds=20, seed=0, budget_s=1e3, slots=2, read_clocks=read)
    assert got.warm
    assert all(mhz is not None and mhz > 1955 for mhz in got.sm_mhz)


# --- modes


def test_in_burst_mode_the_card_rests_before_every_round_for_at_least_as_long_as_the_last_one_took() -> None:
    for time_us, gap_s in ((1000.0, BURST_IDLE_S), (300_000.0, 0.6)):
        timer = FakeTimer(noisy(0.0, a=time_us, b=time_us), overhead_s=0.0)
        arms = [timer.arm(x) for x in "ab"]
        got = measure(arms, timer, rounds=5, seed=0, budget_s=1e3, slots=2, mode="burst")
        assert got.mode == "burst"
        assert len(timer.idle_s) == timer.rounds
        assert got.idle_s == pytest.approx(gap_s, rel=0.6)
        assert got.idle_s >= gap_s


def test_a_burst_begins_with_a_batch_that_is_not_recorded() -> None:
    """The first batch after a gap takes twice as long here, and no sample shows it."""
    timer = FakeTimer()
    fresh = itertools.count()

    def cost(name: str, now_s: float) -> float:
        first = timer.rounds != cost.seen  # type: ignore[attr-defined]
        cost.seen = timer.rounds  # type: ignore[attr-defined]
        next(fresh)
        return 10_000.0 if first else 5000.0

    cost.seen = 0  # type: ignore[attr-defined]
    timer.cost = cost
    got = measure([timer.arm(x) for x in "ab"], timer, rounds=10, seed=0, budget_s=1e3, slots=2, mode="burst")
    assert set(got.times_us["a"]) == set(got.times_us["b"]) == {5000.0}


def test_in_sustained_mode_each_arm_runs_alone_for_half_a_second() -> None:
    cost_us = {"a": 20.0, "b": 200.0, "c": 4000.0}  # the fake's graphs take half
    timer = FakeTimer(noisy(0.0, **cost_us), overhead_s=0.0)
    got = measure([timer.arm(x) for x in "abc"], timer, rounds=5, seed=0, budget_s=1e3, slots=3, mode="sustained")
    assert got.launch == "graph" and not timer.idle_s
    for name, time_us in cost_us.items():
        assert got.inner[name] % 3 == 0 and 0.5e6 <= got.inner[name] * time_us < 0.515e6
        assert got.median_us(name) == pytest.approx(time_us / 2)


def test_graphs_are_small_enough_for_a_stream_to_hold_two() -> None:
    timer = FakeTimer(noisy(0.0, a=20.0), overhead_s=0.0)
    got = measure([timer.arm("a")], timer, rounds=5, seed=0, budget_s=1e3, slots=3, mode="sustained")
    assert 0 < timer.captured[0] <= 256 and got.inner["a"] >= 25_000


def test_sustained_mode_is_refused_where_no_graph_can_be_made() -> None:
    timer = FakeTimer()
    timer.capture = refuse_capture  # type: ignore[method-assign]
    with pytest.raises(LaunchFailed, match="no capture here"):
        measure([timer.arm("a")], timer, rounds=5, seed=0, budget_s=1e3, slots=2, mode="sustained")


def refuse_capture(_batch: Any) -> Any:
    raise LaunchFailed("no capture here")


def test_steady_rounds_follow_each_other_at_once() -> None:
    timer = FakeTimer()
    got = measure([timer.arm("a")], timer, rounds=5, seed=0, budget_s=1e3, slots=2)
    assert (got.mode, got.idle_s, timer.idle_s) == ("steady", 0.0, [])


# --- graphs


def test_in_graph_mode_every_arm_is_replayed_and_loses_the_gaps_between_launches() -> None:
    timer = FakeTimer(noisy(0.0, short=10.0, longer=300.0))
    arms = [timer.arm(x) for x in ("short", "longer")]
    got = measure(arms, timer, rounds=10, seed=0, budget_s=1e3, slots=7, launch="graph")
    assert got.launch == "graph"
    assert (got.median_us("short"), got.median_us("longer")) == (5.0, 150.0)
    slots = [slot for _, slot in timer.launches[-2 * sum(got.inner.values()) :]]
    assert slots == [index % 7 for index in range(len(slots))]
    assert len(timer.replayed) >= 20


def test_graphs_of_all_arms_hold_equally_many_launches_in_whole_passes_over_the_ring() -> None:
    timer = FakeTimer(noisy(0.0, short=10.0, longer=300.0))
    got = measure(
        [timer.arm(x) for x in ("short", "longer")], timer, rounds=2, seed=0, budget_s=1e3, slots=7, launch="graph"
    )
    assert got.inner == {"short": 105, "longer": 105} and timer.captured == [105, 105]


@pytest.mark.parametrize(("slots", "graphs"), [(256, [256]), (300, [150, 150]), (1024, [256] * 4)])
def test_a_pass_of_more_launches_than_a_graph_may_hold_is_of_several_graphs(slots: int, graphs: list[int]) -> None:
    timer = FakeTimer(noisy(0.0, a=10.0))
    got = measure([timer.arm("a")], timer, rounds=2, seed=0, budget_s=1e3, slots=slots, launch="graph")
    assert timer.captured == graphs and max(graphs) <= MAX_GRAPH_LAUNCHES
    assert got.inner == {"a": slots}
    assert [slot for _, slot in timer.launches[-slots:]] == list(range(slots))


def test_a_sample_of_very_short_launches_replays_its_graph_again() -> None:
    timer = FakeTimer(noisy(0.0, a=1.0))
    got = measure([timer.arm("a")], timer, rounds=2, seed=0, budget_s=1e3, slots=8, launch="graph")
    assert (timer.captured, got.inner) == ([256], {"a": 1024})


def test_on_a_stream_nothing_is_captured_however_short() -> None:
    timer = FakeTimer(noisy(0.0, a=2.0, b=30.0))
    got = measure([timer.arm(x) for x in "ab"], timer, rounds=5, seed=0, budget_s=1e3, slots=2)
    assert got.launch == "stream" and timer.replayed == timer.captured == []


def test_an_arm_that_cannot_be_captured_ends_a_measurement_in_graphs() -> None:
    timer = FakeTimer()
    timer.capture = refuse_capture  # type: ignore[method-assign]
    with pytest.raises(LaunchFailed, match="no capture here"):
        measure([timer.arm("a")], timer, rounds=5, seed=0, budget_s=1e3, slots=2, launch="graph")


# --- the host's time


@pytest.mark.parametrize("launch", ["stream", "graph"])
def test_the_hosts_time_for_a_launch_is_a_figure_of_its_own(launch: str) -> None:
    timer = FakeTimer(noisy(0.0, a=10.0, b=10.0))
    timer.launch_s = 4e-6
    got = measure([timer.arm(x) for x in "ab"], timer, rounds=5, seed=0, budget_s=1e3, slots=2, launch=launch)
    assert got.host_us == {"a": pytest.approx(4.0), "b": pytest.approx(4.0)}


# --- verdicts


def sampled(
    stop: str = "rounds", rejected: int = 0, baseline: str | None = "base", **times: Sequence[float]
) -> Samples:
    count = len(next(iter(times.values())))
    named = {name.replace("_control", " (A/A control)"): tuple(each) for name, each in times.items()}
    return Samples(
        times_us=named,
        order=(tuple(named),) * count,
        clocks=(None,) * count,
        inner=dict.fromkeys(named, 1),
        slots=2,
        seed=0,
        stop=stop,
        warm=True,
        rejected_rounds=rejected,
        baseline=baseline,
    )


def around(centre: float, count: int = 40, scale: float = 0.002) -> list[float]:
    """Times whose order has nothing to say and whose median is `centre`."""
    steps = [(2 * i - count + 1) / count for i in range(count)]
    return [centre * math.exp(scale * step) for step in random.Random(count).sample(steps, count)]


@pytest.mark.parametrize(
    ("arm_us", "scale", "word"),
    [
        (990.0, 0.002, "faster"),
        (1010.0, 0.002, "slower"),
        (999.0, 0.002, "equivalent"),
        (1000.0, 0.05, "inconclusive"),
    ],
)
def test_a_word_follows_from_where_the_interval_lies(arm_us: float, scale: float, word: str) -> None:
    samples = sampled(a=around(arm_us, scale=scale), base=[1000.0] * 40, base_control=[1000.0] * 40)
    outcome = judge(samples, "a", "base")
    assert outcome.word == word
    assert outcome.ratio is not None and outcome.ratio.median == pytest.approx(1000.0 / arm_us, rel=1e-3)


def test_a_word_that_the_aa_control_does_not_bear_out_is_not_given() -> None:
    samples = sampled(a=around(990.0), base=[1000.0] * 40, base_control=[990.0] * 40)
    outcome = judge(samples, "a", "base")
    assert (outcome.word, "A/A control" in outcome.reason) == ("inconclusive", True)


def test_the_margin_of_equivalence_is_the_callers() -> None:
    samples = sampled(a=around(990.0), base=[1000.0] * 40, baseline=None)
    assert judge(samples, "a", "base", equivalence=0.02).word == "equivalent"


def test_too_few_rounds_decide_nothing() -> None:
    assert judge(sampled(a=[1.0] * 5, base=[2.0] * 5, baseline=None), "a", "base").word == "inconclusive"
    assert judge(sampled(a=[1.0] * 6, base=[2.0] * 6, baseline=None), "a", "base").word == "faster"


def test_an_arm_that_was_not_measured_makes_the_comparison_invalid() -> None:
    outcome = judge(sampled(base=[1.0] * 9, baseline=None), "a", "base")
    assert (outcome.word, outcome.ratio, outcome.reason) == ("invalid", None, "a was not measured")


@pytest.mark.parametrize(("arm", "margin"), [("base", 0.005), ("a", 0.0), ("a", 1.0)])
def test_a_question_without_an_answer_is_refused(arm: str, margin: float) -> None:
    with pytest.raises(InvalidInput):
        judge(sampled(a=[1.0] * 9, base=[1.0] * 9), arm, "base", equivalence=margin)


@pytest.mark.parametrize("rounds", [10, 80])
@pytest.mark.parametrize("slow_share", [0.6, 1.0])
def test_a_throttled_card_ends_as_throttled_whatever_its_rounds_say(rounds: int, slow_share: float) -> None:
    for seed in range(20):
        rng = random.Random(seed)
        timer = FakeTimer(noisy(0.002, seed, a=1000.0, base=2000.0))

        def read(rng: random.Random = rng) -> ClockReading:
            return ClockReading(900, reasons=("hw_thermal_slowdown",) if rng.random() < slow_share else ())

        arms = [timer.arm("a"), timer.arm("base")]
        got = measure(arms, timer, rounds=rounds, seed=seed, budget_s=1e3, slots=2, baseline="base", read_clocks=read)
        outcome = judge(got, "a", "base")
        assert outcome.word == "throttled" and "rounds fell to slowdowns" in outcome.reason
