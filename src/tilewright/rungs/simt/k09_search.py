from tilewright.declare import Lesson, Published, Search

RUNG = Search(
    number=9,
    track="simt",
    builds_on="k08_warp_tile",
    title="search",
    summary="No new kernel: the last rung's constants are searched, because no formula for them covers it all.",
    lesson=Lesson(
        idea="""\
Counting accesses asks for square tiles, counting registers for the largest thread tile that does not spill, and the
shape that won on the article's card is neither. Registers, residency, banks, caches and issue slots move together when
one constant moves, so the constants are tried and timed. What makes that possible is the declaration: rules that tell
a config that is slow from one that is wrong, before anything is compiled.""",
        prediction="""\
A few percent over a good guess, and a shape that reasoning explains only afterwards. The article tried 16 points, of
which 14 were legal; the declared values below span far more, so here a search needs an order or a budget.""",
        cost="""\
A second or less to compile each config, then rounds on the card. A search that keeps its fastest sample keeps its
luckiest one: the winner has to be measured again.""",
        expires="""\
With the kernel, the card and the compiler. This search ran on a kernel that stalls at every barrier, so it found small
CTAs that share an SM; the pipeline after it wants the opposite, and the search must be run again.""",
    ),
    published=Published(time_ms=4.55),
)
