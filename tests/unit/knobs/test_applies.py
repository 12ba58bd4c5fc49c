"""Where knobs are offered and where not, on facts made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotlap.knobs import catalogue
from hotlap.values.facts import Measured, Setting, WhatIf, WorkerPoint
from hotlap.values.finding import Bounds, Remedy
from hotlap.values.knob import No
from unit.diagnose.made import loader, operator, place
from unit.knobs.cases import WAITING, case, finding, offered, refused

OPTIMIZING = {"optimizer": 0.4, "forward": 0.3, "backward": 0.3}
BF16 = {"bf16_flags": ["avx512_bf16"]}


def setting(name: str, value: Any = True) -> Setting:
    return Setting(name, value, place(3))


def curve(*rates: float) -> tuple[WorkerPoint, ...]:
    return tuple(
        WorkerPoint(k, rate, rate, rate) for k, rate in zip((0, 1, 2, 4), rates, strict=False)
    )


@pytest.mark.parametrize("name", catalogue.KNOBS)
def test_nothing_is_offered_of_a_run_without_steps(name: str) -> None:
    given = case()
    empty = replace(given.facts, run=replace(given.facts.run, trainers=(), phases={}))
    assert isinstance(catalogue.load(name).applies(replace(given, facts=empty)), No)


@pytest.mark.parametrize("name", catalogue.KNOBS)
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_every_answer_is_in_words_and_every_offer_has_values(name: str, device: str) -> None:
    knob = catalogue.load(name)
    answer = knob.applies(case(WAITING, device=device, loaders=(loader(2),)))
    assert answer.because
    if not isinstance(answer, No):
        assert answer.values
        assert answer.numerics in knob.NUMERICS
        for value in answer.values:
            assert knob.snippet(value)
            assert isinstance(knob.environment(value, {}), dict)


def test_a_finding_that_names_a_knob_predicts_its_gain() -> None:
    given = replace(case(OPTIMIZING), findings=(finding("fused_optimizer", 1.2, 1.5),))
    offer = offered("fused_optimizer", given)
    assert offer.predicted == Bounds(1.2, 1.5)
    assert "HL999" in offer.because
    assert offer.most == pytest.approx(1 / 0.6)


def test_a_share_without_a_finding_only_bounds_the_gain() -> None:
    offer = offered("fused_optimizer", case(OPTIMIZING))
    assert offer.predicted == Bounds(None, None)
    assert offer.most == pytest.approx(1 / 0.6)
    small = refused("fused_optimizer", case({"optimizer": 0.02, "forward": 0.98}))
    assert "2.0 %" in small.because


def test_what_was_tried_in_vain_is_not_offered_again() -> None:
    tried = WhatIf("fused_optimizer", True, 1.0, 0.98, 1.02, acted=True)
    assert "no gain" in refused("fused_optimizer", case(OPTIMIZING, what_ifs=(tried,))).because
    idle = replace(tried, acted=False)
    assert offered("fused_optimizer", case(OPTIMIZING, what_ifs=(idle,)))


def test_a_trial_that_gained_tells_how_much() -> None:
    tried = WhatIf("fused_optimizer", True, 1.4, 1.3, 1.5, acted=True)
    offer = offered("fused_optimizer", case(OPTIMIZING, what_ifs=(tried,)))
    assert offer.predicted.low == pytest.approx(1.3)
    assert offer.predicted.high == pytest.approx(1.5)


def test_workers_are_offered_from_the_knee_of_the_curve() -> None:
    given = case(WAITING, curve=curve(100.0, 150.0, 300.0, 305.0))
    offer = offered("loader_workers", given)
    assert offer.values == (2, 4, 1)
    assert offer.numerics == "resampled"
    known = case(WAITING, curve=curve(100.0, 150.0), defaults={"dataset_draws": []})
    assert offered("loader_workers", known).numerics == "identical"
    drawing = case(WAITING, defaults={"dataset_draws": ["random"]})
    assert offered("loader_workers", drawing).numerics == "resampled"


def test_never_more_workers_than_cores() -> None:
    given = case(WAITING, cores=2.0, curve=curve(100.0, 150.0, 300.0, 600.0))
    assert offered("loader_workers", given).values == (2, 1)
    assert offered("loader_workers", case(WAITING, cores=2.0)).values == (2, 1)


def test_no_workers_for_a_stream_or_without_a_loader() -> None:
    stream = replace(loader(), iterable=True)
    assert "stream" in refused("loader_workers", case(WAITING, loaders=(stream,))).because
    assert "no DataLoader" in refused("loader_workers", case(WAITING, loaders=())).because
    assert "stream" in refused("batched_fetch", case(WAITING, loaders=(stream,))).because


def test_fewer_workers_where_none_were_the_best() -> None:
    given = case(WAITING, loaders=(loader(2),), curve=curve(300.0, 100.0, 90.0))
    assert offered("loader_workers", given).values == (0, 1)


def test_a_loader_at_its_knee_is_left_alone_unless_a_finding_says_more() -> None:
    given = case(WAITING, loaders=(loader(2),), curve=curve(100.0, 150.0, 300.0, 301.0))
    assert "fastest" in refused("loader_workers", given).because
    named = replace(given, findings=(finding("loader_workers"),))
    assert offered("loader_workers", named).values == (4, 1)


def test_what_needs_workers_waits_for_them() -> None:
    edge = case(WAITING, phases={"epoch_edge": 0.3})
    for name in ("persistent_workers", "prefetch_depth", "worker_threads"):
        assert "workers" in refused(name, edge).because
    for name in ("persistent_workers", "prefetch_depth"):
        assert offered(name, replace(edge, applied={"loader_workers": 2}))


def test_threads_are_the_users_own_where_the_environment_says_so() -> None:
    given = case(defaults={"threads": 1})
    offer = offered("intra_op_threads", given)
    assert offer.values == (4, 2)
    assert (
        "OMP_NUM_THREADS=1"
        in refused("intra_op_threads", replace(given, environ={"OMP_NUM_THREADS": "1"})).because
    )
    knob = catalogue.load("intra_op_threads")
    assert knob.environment(2, {}) == {"OMP_NUM_THREADS": "2"}
    assert knob.environment(2, {"MKL_NUM_THREADS": "1"}) == {}
    assert offered("intra_op_threads", case(defaults={"threads": 4})).values == (2, 1)
    alone = case(cores=1.0, defaults={"threads": 1})
    assert "one core" in refused("intra_op_threads", alone).because


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("anomaly_mode", {"defaults": {"anomaly": True}}),
        ("zero_grad_to_none", {"settings": (setting("set_to_none", False),)}),
        ("activation_checkpointing", {"settings": (setting("activation_checkpoint"),)}),
        ("gc_control", {"counts": {"gc_ns": 20e9}}),
        ("matmul_precision", {"machine": BF16}),
        ("autocast", {"machine": BF16}),
        ("evaluation_without_grad", {"settings": (setting("print"),)}),
        (
            "channels_last",
            {"operators": (operator(3, "aten::mkldnn_convolution", 4, 5e6),)},
        ),
    ],
)
def test_it_is_offered_where_facts_speak_for_it(name: str, known: dict[str, Any]) -> None:
    evaluating = {"evaluation": 0.3}
    refused(name, case(phases=evaluating))
    assert offered(name, case(phases=evaluating, **known)).because


def test_low_precision_is_hopeless_without_units_for_it() -> None:
    for name in ("autocast", "matmul_precision"):
        assert refused(name, case()).hopeless
        old = case(device="cuda:0", machine={"gpus": [{"capability": [7, 5]}]})
        assert refused(name, old).hopeless
        assert offered(name, case(device="cuda:0", machine={"gpus": [{"capability": [8, 0]}]}))
    own = case(machine=BF16, settings=(setting("autocast"),))
    assert not refused("autocast", own).hopeless


def test_compiling_must_be_able_to_pay() -> None:
    assert offered("compile", case()).values == ("default",)
    assert "too little" in refused("compile", case({"data_wait": 0.9})).because
    given = case()
    short = replace(given.facts, run=replace(given.facts.run, horizon_steps=100))
    assert "10 s" in refused("compile", replace(given, facts=short)).because
    padded = case(defaults={"padded_width": 100.0})
    assert offered("compile", padded).values == ("dynamic", "default")


def test_a_script_that_compiles_again_and_again_is_made_dynamic() -> None:
    given = case(settings=(setting("compile"),), phases={"compile": 0.3})
    assert "already" in refused("compile", given).because
    again = replace(finding("compile"), phase="compile")
    assert offered("compile", replace(given, findings=(again,))).values == ("dynamic",)


def test_on_a_device_of_cudas() -> None:
    device: dict[str, Any] = {"device": "cuda:0"}
    copying = {"transfer": 0.3, "forward": 0.4, "backward": 0.3}
    for name in ("pinned_memory", "cudnn_benchmark", "cuda_allocator"):
        assert offered(name, case(copying, **device))
        assert "CUDA" in refused(name, case(copying)).because
    own = replace(case(copying, **device), environ={"PYTORCH_ALLOC_CONF": "x"})
    assert "PYTORCH_ALLOC_CONF" in refused("cuda_allocator", own).because
    for name in ("flush_denormal", "intra_op_threads"):
        assert "processor" in refused(name, case(device="cuda:0")).because


def test_ranks_are_asked_before_ddp_is_changed() -> None:
    assert "one rank" in refused("ddp_bucket_view", case()).because
    asks: dict[str, Any] = {"settings": (setting("find_unused_parameters"),)}
    assert "not measured" in refused("ddp_unused_parameters", case(**asks)).because
    some = case(defaults={"unused_parameters": 3}, **asks)
    assert "needed" in refused("ddp_unused_parameters", some).because
    assert offered("ddp_unused_parameters", case(defaults={"unused_parameters": 0}, **asks))


def test_samples_that_take_long_are_no_rows() -> None:
    tiny = case(WAITING, sample_ns={"p50": 5_000})
    assert offered("batched_fetch", tiny)
    long = case(WAITING, sample_ns={"p50": 2_000_000})
    assert "2000 us" in refused("batched_fetch", long).because
    assert offered("batched_fetch", replace(long, findings=(finding("batched_fetch"),)))


def test_handing_over_must_take_time() -> None:
    busy = loader(2, {"ipc": 0.4})
    assert offered("compact_hand_over", case(WAITING, loaders=(busy,)))
    idle = case(WAITING, loaders=(loader(2, {"ipc": 0.01}),))
    assert "no time" in refused("compact_hand_over", idle).because
    assert "workers" in refused("compact_hand_over", case(WAITING)).because


def test_sharing_work_out_brings_less_than_the_cause_s_end() -> None:
    ceiling = Measured(800.0, "replay")  # the training as it stands makes 320 samples/s
    given = case(WAITING, cores=2.0, curve=curve(533.0, 500.0, 1000.0), compute_per_s=ceiling)
    named = replace(given, findings=(finding("loader_workers", 5.0, 9.0),))
    by_code = replace(named.findings[0], remedy=Remedy("code", ("loader_workers",), "nothing"))
    offer = offered("loader_workers", replace(named, findings=(by_code,)))
    # Taking turns 1,000 and 800 samples/s make 444; beside each other the slower one is reached.
    assert offer.predicted.low == pytest.approx(444.4 / 320, rel=0.05)
    assert offer.predicted.high == pytest.approx(800 / 320, rel=0.05)
    assert offered("loader_workers", named).predicted.low == 5.0  # the knob's own finding
    tried = WhatIf("loader_workers", 2, 1.4, 1.3, 1.5, acted=True)
    measured = replace(given, facts=replace(given.facts, what_ifs=(tried,)))
    assert offered("loader_workers", measured).predicted.low == pytest.approx(1.3)
