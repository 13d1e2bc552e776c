"""Kernels by what bounds them: their work from shapes and grids, swaps of devices, batches; on real recordings too."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import crystalperf as cp
from crystalperf.indexes.errors import SettingError
from crystalperf.query.frameworks.ml.pytorch import kernels, kineto
from crystalperf.query.frameworks.ml.pytorch.work import Launch, launch, work
from crystalperf.query.frameworks.ml.training import devices
from crystalperf.query.frameworks.ml.training.devices import MODELS
from crystalperf.query.frameworks.ml.training.roofline import FITTED, Grid, Work, grid_of, shares
from crystalperf.query.text.answers import efficiency_sentences, header_facts

RECORDED = Path(__file__).parents[1] / "lab/recordings/gpu"
H100 = MODELS["H100"]
FULL, SMALL = Grid(65536, 128), Grid(8, 128)


def of(
    operator: str, *tensors: tuple[list[int], str], strides: list[list[int]] | None = None, concrete: object = None
) -> Launch:
    found = launch(operator, [shape for shape, _ in tensors], [kind for _, kind in tensors], strides, concrete)
    assert found is not None
    return found


def test_products_count_operations_and_bytes_of_their_shapes() -> None:
    by = of("aten::addmm", ([64], "float"), ([32, 16], "float"), ([16, 64], "float"), ([], "Scalar"))
    found = work("ampere_sgemm_128x64_tn", 4, by)
    assert found.flops == 2 * 32 * 16 * 64
    assert found.bytes == 4 * (32 * 16 + 16 * 64 + 32 * 64)
    assert found.unit == "fp32"
    assert found.known_by == "shapes"


@pytest.mark.parametrize(
    ("operator", "tensors", "concrete", "flops"),
    [
        ("aten::cudnn_convolution", (([8, 3, 32, 32], "float"), ([16, 3, 3, 3], "float")),
         ["", "", "[1, 1]", "[2, 2]", "[1, 1]", "1"], 2 * 8 * 16 * 16 * 16 * 27),
        ("aten::convolution_backward",
         (([8, 16, 16, 16], "float"), ([8, 3, 32, 32], "float"), ([16, 3, 3, 3], "float")),
         None, 2 * 8 * 16 * 16 * 16 * 27),
        ("aten::_cudnn_attention_forward", (([2, 4, 128, 64], "c10::BFloat16"),) * 3, ["True", "0.", "True", "False"],
         4 * 2 * 4 * 128 * 128 * 64 / 2),
        ("aten::bmm", (([6, 8, 4], "c10::Half"), ([6, 4, 10], "c10::Half")), None, 2 * 6 * 8 * 4 * 10),
    ],
)  # fmt: skip
def test_operations_of_convolutions_and_attention(
    operator: str, tensors: tuple[tuple[list[int], str], ...], concrete: object, flops: float
) -> None:
    assert work("sm90_xmma_implicit_gemm", 132, of(operator, *tensors, concrete=concrete)).flops == flops


def test_pointwise_kernels_read_an_expanded_tensor_once() -> None:
    """The gradient of a mean: each element is the same number, so the kernel writes much and reads nothing."""
    kernel = "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<x<float, float> > >(int)"
    by = of("aten::div", ([1024, 1024], "float"), ([], "Scalar"), strides=[[0, 0], []])
    assert work(kernel, 4096, by).bytes == 4 * (1 + 1024 * 1024)
    whole = of("aten::gelu", ([1024, 1024], "float"), ([], ""))
    assert work(kernel, 4096, whole).bytes == 2 * 4 * 1024 * 1024


def test_a_grid_shows_the_elements_of_a_generic_kernel_without_shapes() -> None:
    kernel = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    )
    found = work(kernel, 65536, None)
    assert found.bytes == 3 * 4 * 65536 * 1024
    assert found.known_by == "grid"


def test_shares_follow_what_a_kernel_reached() -> None:
    at_peak = Work(bytes=3.35e9 * FITTED.attainable)  # 1 ms at the attainable bandwidth
    assert shares(at_peak, 1002, H100, FULL).memory == pytest.approx(0.998, abs=0.001)
    assert shares(Work(bytes=at_peak.bytes and at_peak.bytes / 4), 1002, H100, FULL).bound == "latency"
    assert shares(Work(flops=600e9, unit="16-bit", bytes=1e8), 1002, H100, FULL).bound == "compute"
    assert shares(Work(bytes=1e3), 1.5, H100, SMALL).latency == 1
    from_cache = shares(Work(bytes=2 * 3.35e9), 1002, H100, FULL)  # twice what memory can give
    assert from_cache.memory == pytest.approx(0.5, abs=0.01)


def test_a_second_pass_counts_if_the_cache_cannot_hold_the_rows() -> None:
    one = 1.2e9
    small, large = (Work(bytes=one, again=one, row_bytes=row) for row in (1e3, 1e5))
    assert shares(small, 1002, H100, FULL).memory < 0.2
    assert shares(large, 1002, H100, FULL).memory > 0.5


@pytest.mark.parametrize("kernel", ["relu", "sgemm"])
def test_unknown_work_falls_back_to_names_and_grids(kernel: str) -> None:
    product = Work(unit="fp32") if kernel == "sgemm" else Work()
    full, small = (shares(product, 100, H100, grid) for grid in (FULL, SMALL))
    assert full.latency < 1
    assert small.latency == pytest.approx(0.02 if kernel == "sgemm" else 1, abs=0.001)


def test_grids_are_read_as_recorded_and_nothing_else() -> None:
    assert grid_of([4, 2, 1], [128, 1, 1]) == Grid(8, 128)
    assert grid_of(None, [128]) is None
    assert grid_of([0, 1, 1], [128]) is None
    assert grid_of("4", [128]) is None


@pytest.mark.parametrize(
    ("named", "model"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"), ("NVIDIA H100 PCIe", "H100-PCIE"), ("NVIDIA H200", "H200"),
        ("NVIDIA A100-SXM4-40GB", "A100"), ("NVIDIA A100-SXM4-80GB", "A100-80GB"), ("Tesla V100-SXM2-16GB", "V100"),
        ("NVIDIA A100 80GB PCIe", "A100-80GB-PCIE"), ("Tesla T4", "T4"), ("NVIDIA L4", "L4"), ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "RTX4090"), ("NVIDIA B200", "B200"), ("AMD Instinct MI300X", "MI300X"),
        ("Tesla V100-PCIE-32GB", "V100-PCIE"), ("Tesla V100S-PCIE-32GB", "V100S-PCIE"),
        ("AMD Instinct MI250X", "MI250X"), ("AMD Instinct MI250", "MI250"), ("NVIDIA H200 NVL", None),
        ("NVIDIA A100-SXM-64GB", None), ("NVIDIA GH200 480GB", None), ("NVIDIA A10G", None), ("", None), (None, None),
    ],
)  # fmt: skip
def test_models_of_devices_as_traces_name_them(named: str | None, model: str | None) -> None:
    assert devices.model_of(named) == model


@pytest.mark.parametrize("name", MODELS)
def test_rates_of_a_device_are_dense_sourced_and_in_proportion(name: str) -> None:
    model = MODELS[name]
    assert re.fullmatch(r"(NVIDIA|AMD|Google) .*20[12]\d", model.source)
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", model.checked)
    assert model.tf32 is None or model.tf32 == pytest.approx(model.tflops / 2, rel=0.02)
    assert model.fp8 is None or model.fp8 == pytest.approx(2 * model.tflops, rel=0.02)
    assert model.fp32 is None or model.fp32 < model.tflops
    if model.units is not None and model.ghz is not None and model.fp32 is not None:
        lanes = model.fp32 * 1e3 / 2 / (model.units * model.ghz)  # fused multiply-adds of a unit and clock
        assert any(lanes == pytest.approx(each, rel=0.015) for each in (64, 128))


def test_a_device_without_8_bit_products_has_no_rate_for_them() -> None:
    assert MODELS["A100"].peak_flops("fp8") is None
    assert "fp8" in devices.swapped("H100", "A100", {devices.MIX: "fp8:1"}).unknown
    assert devices.swapped("H100", "H200", {devices.MIX: "fp8:1"}).unknown == ()


def test_a_swap_weighs_arithmetic_by_the_run_s_products() -> None:
    tf32 = devices.swapped("V100", "A100", {devices.MIX: "tf32:1"})
    assert tf32.arithmetic == pytest.approx(156 / 15.7)
    half = devices.swapped("H100", "A100", {devices.MIX: "16-bit:1"})
    assert half.arithmetic == pytest.approx(312 / 989.4)
    assert devices.swapped("H100", "H200", {devices.FULL: "0.5"}).latency == 1


def test_a_swap_needs_an_accelerator_and_known_models() -> None:
    with pytest.raises(SettingError, match="accelerator"):
        devices.expanded("device=H100:A100", ("cpu",), {})
    with pytest.raises(SettingError, match="H100"):
        devices.expanded("device=H100:X1", ("cpu", "gpu"), {})
    known = devices.expanded("device=H200", ("cpu", "gpu"), {devices.MODEL: "H100"})
    assert known == ("device.gpumem=1.433x", "device.host=other")


def test_debug_has_what_operators_reached() -> None:
    run = cp.profile(RECORDED / "h100/tables-8192")
    found = {each.operator: each for each in run.debug().efficiency}
    update = found["aten::_foreach_add_"]
    assert update.bound == "memory"
    assert update.bytes_share == pytest.approx(0.82, abs=0.02)
    assert update.flops_per_s is None
    linear = found["AddmmBackward0"]
    assert linear.bound == "compute"
    assert linear.flops_share == pytest.approx(linear.flops_per_s / 66.9e12 if linear.flops_per_s else 0, rel=0.01)
    assert found["EmbeddingBagBackward0"].bound == "latency"
    bounds = run.sql("SELECT DISTINCT bound FROM training_operations WHERE bound IS NOT NULL")
    assert {each[0] for each in bounds.rows} >= {"compute", "memory", "latency", "copy"}


def test_sql_and_page_have_what_debug_has() -> None:
    run = cp.profile(RECORDED / "h100/tables-8192")
    asked = run.sql("SELECT operator, kernels, time_ms, bound, flops_share, bytes_share FROM device_operators").rows
    listed = {each.operator: each for each in run.debug().efficiency}
    assert len(asked) == len(listed) > 5
    for operator, count, time_ms, bound, flops_share, bytes_share in asked:
        each = listed[operator]
        assert (count, bound) == (each.count, each.bound)
        assert time_ms == pytest.approx(each.time_ms)
        assert flops_share == (None if each.flops_share is None else pytest.approx(each.flops_share))
        assert bytes_share == (None if each.bytes_share is None else pytest.approx(each.bytes_share))
    longest = run.debug().efficiency[0]
    first = efficiency_sentences(run.debug(), 1)
    assert longest.operator in first[0]
    assert f"{100 * (longest.bytes_share or 0):.0f} %" in first[0]
    behind = header_facts(replace(run.header(), step_ms=96.0, traced_step_ms=79.0))
    (steps,) = (each for each in behind if "96 ms" in each)
    assert "79 ms" in steps
    assert "without the profiler" not in steps, "the program marked steps whose work was not done"


def test_a_lower_precision_is_an_upper_bound_by_what_the_run_multiplies() -> None:
    known = {devices.MODEL: "H100", devices.MIX: "tf32:3 16-bit:1", devices.WIDE: "0.5"}
    assert devices.narrowed(known) == pytest.approx({"gpu": 1.6, "gpumem": 4 / 3}, rel=0.01)
    assert devices.narrowed({**known, devices.MIX: "16-bit:1", devices.WIDE: ""}).get("gpu", 1.0) == 1.0
    assert devices.expanded("precision=bf16", ("cpu", "gpu"), known) == ("precision=bf16",)
    with pytest.raises(SettingError, match="table"):
        devices.expanded("precision=bf16", ("cpu", "gpu"), {})


def test_vectorized_kernels_of_older_versions_have_fewer_elements() -> None:
    """With 1 024 elements a block, these kernels would move more than their device can: they have 512."""
    name = "void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)"
    process = kineto.Process("0")
    process.streams["0", "7"] = [kineto.Ran(0, us, name, grid=Grid(131072, 128)) for us in (300.0, 310.0)]
    old = kernels.Kernels(process, {}, {}, {"0": "NVIDIA H100 80GB HBM3"})
    found = old.of(process.streams["0", "7"][0], "NVIDIA H100 80GB HBM3")
    assert found.bytes == 3 * 4 * 131072 * 512
    assert found.bound == "memory"


@pytest.mark.parametrize(
    ("operator", "arguments", "share"),
    [
        ("aten::_flash_attention_forward", ["0.", "True", "False"], 0.5),
        ("aten::_flash_attention_forward", ["0.", "False", "False"], 1),
        ("aten::_cudnn_attention_forward", ["True", "0.", "False", "False"], 1),
        ("aten::_efficient_attention_forward", ["", "", "0.", "1", "True"], 0.5),
        ("aten::_efficient_attention_forward", ["", "", "0.", "0", "True"], 1),
    ],
)
def test_causal_attention_does_half_of_the_products(operator: str, arguments: list[str], share: float) -> None:
    by = of(operator, *(([2, 128, 128, 64], "c10::Half"),) * 3, concrete=arguments)
    assert work("flash_fwd_kernel", 132, by).flops == share * 4 * 2 * 128 * 128 * 128 * 64


def test_kernels_by_index_move_what_they_select() -> None:
    """100 000 edges of a graph of 1 000 nodes with 64 numbers each."""
    by = of("aten::index_select", ([1000, 64], "float"), ([], "Scalar"), ([100_000], "long int"))
    rows = work("void at::native::indexSelectLargeIndex<float, long>(int)", 100, by).bytes
    assert rows == 4 * (100_000 * 64 + 1000 * 64) + 8 * 100_000
    scatter = "void at::native::_scatter_gather_elementwise_kernel<128, 8, at::native::ReduceAdd>(int)"
    edges = ([100_000, 64], "long int")
    added = of("aten::scatter_add_", ([1000, 64], "float"), ([], "Scalar"), edges, ([100_000, 64], "float"))
    assert (found := work(scatter, 100, added).bytes) is not None
    assert found >= 12 * 100_000 * 64
    looked_up = of("aten::index", ([1000, 64], "float"), ([], ""))
    assert work("void at::native::index_elementwise_kernel<128, 4, x>(long)", 10, looked_up).bytes == 2 * 10 * 512 * 4


def test_a_norm_s_pointwise_part_counts_its_largest_tensor() -> None:
    kernel = "void at::native::elementwise_kernel<128, 2, x<float> >(int)"
    by = of("aten::native_group_norm", ([2, 64, 32, 32], "float"), ([64], "float"), ([64], "float"))
    assert work(kernel, 512, by).bytes == 2 * 4 * 2 * 64 * 32 * 32 + 2 * 64 * 4


def test_resized_images_are_written_at_their_new_size() -> None:
    by = of("aten::upsample_nearest2d", ([2, 8, 16, 16], "float"), ([], "ScalarList"), concrete=["", "[32, 32]"])
    assert work("upsample_nearest2d_out_frame<float>", 8, by).bytes == 4 * 2 * 8 * (16 * 16 + 32 * 32)


@pytest.mark.parametrize("shape", [[10**400], [-1, 4], ["4"], [None], "x", {}, [[4]], [1.5]])
def test_damaged_shapes_are_unknown(shape: object) -> None:
    assert launch("aten::mul", [shape, []], ["float", "Scalar"], [[0]], None) is None
    assert launch("aten::mul", shape, "float", 3, {}) is None
    assert work("sgemm", 10**9, of("aten::mm", ([0, 0], "float"), ([0, 5], "float"))).flops is None
    assert grid_of([10**400, 1, 1], [1, 1, 1]) is None
    conv = of("aten::cudnn_convolution", ([1, 1, 4, 4], "float"), ([1, 1, 3, 3], "float"), concrete=[f"[{'9' * 5000}]"])
    assert work("implicit_gemm", 1, conv).flops == 2 * 16 * 9
