"""Hashes of batches and projections of gradients: what they tell apart, and what they leave be."""

from __future__ import annotations

import random

import numpy
import torch

from hotlap.inject.conditions import trace_digest as digest


def test_a_batch_is_told_by_contents_shape_and_type() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    plain = digest.batch_hash({"x": x, "y": [1, "text"]})
    assert digest.batch_hash({"x": x.clone(), "y": [1, "text"]}) == plain
    others = (x.flip(0), x.reshape(4, 3), x.double(), x + 1)
    assert len({plain, *(digest.batch_hash({"x": one, "y": [1, "text"]}) for one in others)}) == 5
    assert digest.batch_hash({"x": x, "y": [2, "text"]}) != plain


def test_how_a_tensor_lies_in_memory_makes_no_difference() -> None:
    x = torch.randn(2, 3, 40, 50)
    assert digest.batch_hash(x) == digest.batch_hash(x.to(memory_format=torch.channels_last))
    assert digest.batch_hash(x.numpy()) == digest.batch_hash(x)


def test_large_tensors_are_sampled_evenly() -> None:
    x = torch.zeros(1 << 20)
    plain = digest.batch_hash(x)
    x[-1] = 1
    assert digest.batch_hash(x) != plain


def test_odd_contents_are_borne() -> None:
    odd = [torch.eye(3).to_sparse(), torch.empty(0), None, object(), torch.tensor(1 + 2j).conj()]
    odd += [numpy.array(["a", "b"]), torch.ones(2, dtype=torch.bfloat16), torch.empty(2).to("meta")]
    assert digest.batch_hash(odd) == digest.batch_hash(odd)
    assert digest.row_hashes(odd[4:]) == []


def test_rows_are_told_apart() -> None:
    rows = digest.row_hashes((torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]), "label"))
    assert len(rows) == 3
    assert len(set(rows)) == 2


def test_projections_keep_angles_and_draw_nothing() -> None:
    one = [torch.randn(64, 32), None, torch.randn(64)]
    near = [each if each is None else each + 0.01 * torch.randn_like(each) for each in one]
    before = digest.generators()
    norms, first = digest.sketch(one)
    _, second = digest.sketch(near)
    assert digest.sketch(one) == (norms, first)
    assert digest.generators() == before
    assert norms[1] is None
    a, b = torch.tensor(first), torch.tensor(second)
    assert float(torch.dot(a, b) / (a.norm() * b.norm())) > 0.99


def test_each_generator_is_told() -> None:
    numpy.random.rand()  # numpy loads its generators when they are used first
    before = digest.generators()
    assert set(before) == {"torch", "random", "numpy"}
    torch.rand(1)
    random.random()
    numpy.random.rand()
    assert all(digest.generators()[name] != before[name] for name in before)
