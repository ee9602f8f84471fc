"""Tensor maps as the 128 bytes a kernel takes by value: encoded by a GPU's driver, or plainly for the emulator."""

from __future__ import annotations

import ctypes
from typing import Any

from tilewright.declare.tensor_map import ELEMENT_BYTES, SPAN_BYTES, TensorMap
from tilewright.errors import InvalidProblem
from tilewright.run.cuda import check

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
    if address % 16:
        raise InvalidProblem(f"tensor map: address {address:#x}: must be a multiple of 16 bytes; align the operand")


def encode_for_driver(tensor_map: TensorMap, address: int) -> EncodedMap:
    """Encode for the current device's driver. Raises InvalidProblem, LaunchFailed, NoDevice by the driver's absence."""
    from cuda.bindings import driver

    _require_aligned(address)

    def kind(enum: Any, prefix: str, name: str) -> Any:
        return getattr(enum, f"CU_TENSOR_MAP_{prefix}_{name}")

    encoded = check(
        driver.cuTensorMapEncodeTiled(
            kind(driver.CUtensorMapDataType, "DATA_TYPE", DRIVER_DTYPES[tensor_map.dtype]),
            2,
            address,
            [driver.cuuint64_t(tensor_map.cols), driver.cuuint64_t(tensor_map.rows)],
            [driver.cuuint64_t(tensor_map.ld * ELEMENT_BYTES[tensor_map.dtype])],
            [driver.cuuint32_t(tensor_map.box_cols), driver.cuuint32_t(tensor_map.box_rows)],
            [driver.cuuint32_t(1), driver.cuuint32_t(1)],
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            kind(driver.CUtensorMapSwizzle, "SWIZZLE", tensor_map.swizzle.upper()),
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )
    return EncodedMap.from_buffer_copy(ctypes.string_at(int(encoded.getPtr()), SIZE_BYTES))


def encode_for_emulator(tensor_map: TensorMap, address: int) -> EncodedMap:
    """Encode for the emulator: address, then rows, cols, row stride in bytes, box, element and span bytes as words."""
    _require_aligned(address)
    element_bytes = ELEMENT_BYTES[tensor_map.dtype]
    words = (
        address,
        tensor_map.rows,
        tensor_map.cols,
        tensor_map.ld * element_bytes,
        tensor_map.box_rows,
        tensor_map.box_cols,
        element_bytes,
        SPAN_BYTES[tensor_map.swizzle] if tensor_map.swizzle != "none" else 0,
    )
    encoded = EncodedMap()
    for index, word in enumerate(words):
        encoded.words[index] = word
    return encoded
