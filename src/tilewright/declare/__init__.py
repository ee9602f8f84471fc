"""Declaring a rung, and what follows from the declaration alone."""

from tilewright.declare.config import Config
from tilewright.declare.expr import Expr
from tilewright.declare.footprint import Footprint, footprint
from tilewright.declare.limits import COUNTED_K, INDEXED_RESULTS, INDICES, whole_tiles_indexed
from tilewright.declare.operand_map import OperandMap, operand_map
from tilewright.declare.registry import Registry, all_rungs, discover
from tilewright.declare.rules import arch_rule, binary_rule, choice_rule, config_rule, problem_rule
from tilewright.declare.rung import (
    Param,
    Requires,
    Rung,
    accesses,
    derived,
    launch,
    shared,
    with_defaults,
)
from tilewright.declare.scratch import Scratch, scratch
from tilewright.declare.space import enumerate_configs, nearest_config, rung_config
from tilewright.declare.step import Lesson, Published, Search, Step

__all__ = [
    "COUNTED_K",
    "INDEXED_RESULTS",
    "INDICES",
    "Config",
    "Expr",
    "Footprint",
    "Lesson",
    "OperandMap",
    "Param",
    "Published",
    "Registry",
    "Requires",
    "Rung",
    "Scratch",
    "Search",
    "Step",
    "accesses",
    "all_rungs",
    "arch_rule",
    "binary_rule",
    "choice_rule",
    "config_rule",
    "derived",
    "discover",
    "enumerate_configs",
    "footprint",
    "launch",
    "nearest_config",
    "operand_map",
    "problem_rule",
    "rung_config",
    "scratch",
    "shared",
    "whole_tiles_indexed",
    "with_defaults",
]
