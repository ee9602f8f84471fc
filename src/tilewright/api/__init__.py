"""The library call, in the order in which a call goes through it.

    calls → frameworks → execution → options → operands → orientation → split → plan → devices → bound_plan

`calls` has the public functions; a framework's module knows its arrays. `execution` looks the call up among those
planned before. For a new one, `options` checks what is no array, `operands` describes the arrays and the product they
pose, `orientation` lists the ways it can be computed, `split` its launches, `plan` takes the first way that a kernel
supports, and `devices` and `bound_plan` bind it to a device. What can't be used as it is stored is copied and reported.
"""
