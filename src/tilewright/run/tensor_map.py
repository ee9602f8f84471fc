"""Tensor maps as the 128 bytes a kernel takes by value: encoded by a GPU's driver, or plainly for the emulator."""

from __future__ import annotations

import ctypes
from typing import Any

from tilewright.declare.tensor_map import ALIGNMENT_BYTES, TensorMap
from tilewright.errors import InvalidProblem

# Under TFLOAT32 the copy rounds to the nearest TF32 number, ties to even, where wgmma alone would cut elements off.
DRIVER_DTYPES = {
    "float32": "FLOAT32",
    "tfloat32": "TFLOAT32",
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "uint8": "UINT8",
}
SIZE_BYTES = 128


class EncodedMap(ctypes.Structure):
    """128 bytes, opaque to everyone but the device they were made for; 64-byte aligned in an argument struct."""

    _fields_ = (("words", ctypes.c_uint64 * (SIZE_BYTES // 8)),)


def _require_aligned(address: int) -> None:
    if address % ALIGNMENT_BYTES:
        raise InvalidProblem(f"tensor map: address {address:#x}: must be a multiple of 16 bytes; align the operand")


def encode_for_driver(tensor_map: TensorMap, address: int) -> EncodedMap:
    """Encode for the current device's driver: columns, rows, batch entries. Raises InvalidProblem, LaunchFailed."""
    from cuda.bindings import driver

    from tilewright.run.driver import check

    _require_aligned(address)

    def kind(enum: Any, prefix: str, name: str) -> Any:
        return getattr(enum, f"CU_TENSOR_MAP_{prefix}_{name}")

    span = f"{tensor_map.span_bytes}B" if tensor_map.span_bytes else "NONE"
    encoded = check(
        driver.cuTensorMapEncodeTiled(
            kind(driver.CUtensorMapDataType, "DATA_TYPE", DRIVER_DTYPES[tensor_map.dtype]),
            3,
            address,
            [driver.cuuint64_t(size) for size in (tensor_map.cols, tensor_map.rows, tensor_map.entries)],
            [driver.cuuint64_t(size) for size in (tensor_map.row_stride_bytes, tensor_map.entry_stride_bytes)],
            [driver.cuuint32_t(size) for size in (tensor_map.box_cols, tensor_map.box_rows, 1)],
            [driver.cuuint32_t(1)] * 3,
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            kind(driver.CUtensorMapSwizzle, "SWIZZLE", span),
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )
    return EncodedMap.from_buffer_copy(ctypes.string_at(int(encoded.getPtr()), SIZE_BYTES))


def encode_for_emulator(tensor_map: TensorMap, address: int) -> EncodedMap:
    """Encode for the emulator, field by field in words, as `tensor_map.cuh` lists them. Raises InvalidProblem."""
    _require_aligned(address)
    words = (
        address,
        tensor_map.rows,
        tensor_map.cols,
        tensor_map.row_stride_bytes,
        tensor_map.entries,
        tensor_map.entry_stride_bytes,
        tensor_map.box_rows,
        tensor_map.box_cols,
        tensor_map.element_bytes,
        tensor_map.span_bytes,
        int(tensor_map.dtype == "tfloat32"),
    )
    encoded = EncodedMap()
    encoded.words[: len(words)] = words
    return encoded
