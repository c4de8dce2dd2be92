"""Configurations: their names, their line of code, and the product of several options."""

from __future__ import annotations

import pytest

from compilescope.domain.config import Choices, Config


@pytest.mark.parametrize(
    ("config", "label", "snippet"),
    [
        (Config(), "default", "model = torch.compile(model)"),
        (Config(mode="default"), "default", "model = torch.compile(model)"),
        (Config(mode="reduce-overhead"), "reduce-overhead", 'model = torch.compile(model, mode="reduce-overhead")'),
        (Config(dynamic=True), "default · dynamic", "model = torch.compile(model, dynamic=True)"),
        (Config(dynamic=False), "default · static", "model = torch.compile(model, dynamic=False)"),
        (Config(fullgraph=True), "default · fullgraph", "model = torch.compile(model, fullgraph=True)"),
        (
            Config(scope="step", mode="reduce-overhead"),
            "reduce-overhead · whole step",
            'step = torch.compile(step, mode="reduce-overhead")'
            "  # forward, loss, backward and optimizer.step() in one function",
        ),
        (Config(backend="aot_eager"), "aot_eager", 'model = torch.compile(model, backend="aot_eager")'),
        (Config(backend="eager"), "backend eager", 'model = torch.compile(model, backend="eager")'),
        (
            Config(options={"max_autotune": True}),
            "max_autotune=True",
            "model = torch.compile(model, options={'max_autotune': True})",
        ),
        (
            Config(options={"triton.cudagraphs": True}, fullgraph=True),
            "triton.cudagraphs=True · fullgraph",
            "model = torch.compile(model, options={'triton.cudagraphs': True}, fullgraph=True)",
        ),
    ],
)
def test_that_a_configuration_has_a_name_and_a_line_of_code(config: Config, label: str, snippet: str):
    assert config.label == label
    assert config.snippet == snippet


@pytest.mark.parametrize(
    ("config", "cudagraphs", "autotuning"),
    [
        (Config(), False, False),
        (Config(mode="reduce-overhead"), True, False),
        (Config(mode="max-autotune"), True, True),
        (Config(mode="max-autotune-no-cudagraphs"), False, True),
        (Config(options={"triton.cudagraphs": True}), True, False),
        (Config(options={"triton.cudagraphs": False}), False, False),
        (Config(options={"max_autotune": True}), False, True),
        (Config(backend="cudagraphs"), True, False),
    ],
)
def test_that_what_a_configuration_asks_for_is_known_by_mode_option_and_backend(
    config: Config, cudagraphs: bool, autotuning: bool
):
    assert (config.wants_cudagraphs, config.wants_autotuning) == (cudagraphs, autotuning)


def test_that_the_line_of_code_is_python_whatever_the_backend_is_called():
    config = Config(backend='my"backend\\')

    compile(config.snippet, "snippet", "exec")


def test_that_a_configuration_comes_back_from_json():
    config = Config(mode="max-autotune", dynamic=False, fullgraph=True, scope="step")

    assert Config.from_json(config.to_json()) == config
    assert Config.from_json({}) == Config()


def test_that_the_product_has_every_configuration_once_in_order():
    choices = Choices(modes=("default", "reduce-overhead"), dynamics=(None, True), fullgraphs=(False, True))

    labels = [config.label for config in choices.product()]

    assert len(labels) == len(set(labels)) == 8
    assert labels[:3] == ["default", "default · fullgraph", "default · dynamic"]


def test_that_modes_do_not_multiply_backends_that_know_none():
    choices = Choices(modes=("default", "max-autotune"), backends=("inductor", "eager"))

    assert [config.label for config in choices.product()] == ["default", "max-autotune", "backend eager"]


def test_that_options_take_the_place_of_modes():
    choices = Choices(modes=("default", "max-autotune"), options={"max_autotune": True})

    assert [(config.mode, config.label) for config in choices.product()] == [(None, "max_autotune=True")]


def test_that_names_are_unique_in_a_product_that_names_the_default_twice():
    assert len(Choices(modes=(None, "default")).product()) == 1
