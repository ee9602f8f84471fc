from tilewright.declare import Lesson, Rung, config_rule
from tilewright.rungs.tensor.t02_mma_sync import RUNG as T02

RUNG = Rung(
    number=3,
    track="tensor",
    builds_on="t02_mma_sync",
    title="swizzled",
    summary="Turn the 16-byte chunks of each row by an XOR with its number: eight rows, eight groups of banks.",
    lesson=Lesson(
        idea="""\
A chunk of eight elements is what one lane stores and what one row of an 8×8 matrix is. The chunk with number c of row
r is put in place c XOR r, counted in groups of eight. The same chunk of eight neighbouring rows, which ldmatrix reads
together, then lies in eight different groups of four banks; so do the chunks of one row, which a copy stores.""",
        prediction="""\
One wavefront for each 8×8 matrix, counted by the microscope: a quarter of the last rung's for rows of 64 bytes. Reading
fragments was its limit, so this is the larger part of the distance to the next limit: latency.""",
        cost="""\
An XOR in each address, and rows of a length that the pattern divides. No memory, where padding would take a sixteenth
and spoil the alignment that bulk copies ask for.""",
        expires="""\
Swizzling stays right, and is what the hardware does itself where it copies whole boxes. Tiles still come through
registers, and nothing is in flight while the tensor cores work.""",
    ),
    params=T02.params,
    derived=T02.derived,
    from_problem=T02.from_problem,
    rules=(
        *T02.rules,
        *(
            config_rule(f"{name} == 16 or {name} == 32 or {name} % 64 == 0", "so that the XOR stays within a row")
            for name in ("BM", "BN", "BK")
        ),
    ),
    requires=T02.requires,
    shared=T02.shared,
    launch=T02.launch,
    accesses=T02.accesses,
    unguarded_when=T02.unguarded_when,
)
