"""Two models from one script: loaded twice where that can be, and told why where it cannot."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from compilescope.domain.workload import Workload
from compilescope.worker import pair as pairing
from compilescope.worker.likeness import common
from compilescope.worker.own_time import OwnTime
from compilescope.worker.pair import Pair, Pairs
from compilescope.worker.proof import plain_sides, prove
from compilescope.worker.steps import Recipe

CPU = torch.device("cpu")
Make = Callable[..., Pairs]

NET = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(6, 6)

    def forward(self, x):
        return self.up(x)
"""
INPUTS = """
def get_inputs():
    return [torch.randn(3, 6)]
"""
PATCHES_A_LIBRARY = """
_call = nn.Linear.forward
def forward(self, x):
    return _call(self, x)
nn.Linear.forward = forward
"""


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Loads a script in this process; afterwards nothing of it is left."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(nn.Linear, "forward", nn.Linear.forward)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPILESCOPE_ALIAS", "")
    before = dict(sys.modules)

    def load(source: str, files: dict[str, str] | None = None, name: str = "model_script.py", **workload: Any) -> Pairs:
        for path, text in {name: source, **(files or {})}.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return Pairs(Workload(script=str(tmp_path / name), **{"device": "cpu", **workload}), device=CPU, seed=7)

    yield load
    for module in sys.modules.keys() - before.keys():
        if str(getattr(sys.modules[module], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[module]


def first(pairs: Pairs) -> Pair:
    pair = pairs.next_pair()
    assert pair is not None
    return pair


def outputs(pair: Pair, seed: int = 3) -> tuple[Any, Any]:
    """What each side gives, at home, from the same inputs and seed."""
    inputs = pair.make_inputs(seed)
    found = []
    for name, instance in (("eager", pair.eager), ("compiled", pair.compiled)):
        torch.manual_seed(seed)
        with instance.at_home(), torch.no_grad():
            found.append(instance.model(*inputs[name].args, **inputs[name].kwargs))
    return found[0], found[1]


def told(pair: Pair, **workload: Any) -> Any:
    """The proof of a pair."""
    recipe = Recipe.of(Workload(script="", **workload), CPU, pair.compiled.module)
    eager, plain = plain_sides(pair, recipe)
    inputs = pair.make_inputs(3)
    return prove(eager, plain, {side.name: side.take(inputs[side.name]) for side in (eager, plain)}, seed=3)


# --- what loading twice keeps apart -------------------------------------------------------------------------------


def test_that_two_loads_have_models_modules_and_globals_of_their_own(make: Make) -> None:
    pair = first(make(NET + INPUTS))

    assert (pair.copies, pair.reason) == ("loaded_twice", "")
    assert pair.eager.model is not pair.compiled.model
    assert type(pair.eager.model) is not type(pair.compiled.model)
    assert pair.eager.globals()["model_script"]["Model"] is type(pair.eager.model)
    assert sys.modules["model_script"] is pair.compiled.module
    assert torch.equal(pair.eager.model.up.weight, pair.compiled.model.up.weight)
    assert list(common(pair.eager.model, pair.compiled.model)) == []


def test_that_a_hook_that_fills_a_global_and_a_counter_of_calls_count_each_side_alone(make: Make) -> None:
    source = (
        NET
        + INPUTS
        + """
SEEN, CALLS = {}, 0
def build_model():
    model = Model()
    def hook(module, args, out):
        global CALLS
        CALLS += 1
        SEEN["out"] = out
    model.up.register_forward_hook(hook)
    return model
"""
    )
    pair = first(make(source, entry="build_model"))

    outputs(pair)

    eager, compiled = (side.globals()["model_script"] for side in (pair.eager, pair.compiled))
    assert eager["CALLS"] == compiled["CALLS"] == 1
    assert eager["SEEN"]["out"] is not compiled["SEEN"]["out"]


ADAPTERS = {
    "a forward": "linear.forward = lambda x: original(x) + x @ extra",
    "a hook": "linear.register_forward_hook(lambda module, args, out: out + args[0] @ extra)",
    "a parametrization": """
    class Adapter(nn.Module):
        def forward(self, weight):
            return weight + extra
    torch.nn.utils.parametrize.register_parametrization(linear, "weight", Adapter())""",
    "weight norm": "torch.nn.utils.parametrizations.weight_norm(linear); model.up.extra.data.zero_()",
}


@pytest.mark.parametrize("how", ADAPTERS)
def test_that_a_closure_works_on_the_parameters_of_its_own_side(make: Make, how: str) -> None:
    source = (
        NET
        + INPUTS
        + f"""
import torch.nn.utils.parametrize
def build_model():
    model = Model()
    linear, original = model.up, model.up.forward
    extra = linear.extra = nn.Parameter(torch.randn(6, 6))
    {ADAPTERS[how]}
    return model
"""
    )
    pair = first(make(source, phase="training", entry="build_model"))
    inputs = pair.make_inputs(1)

    losses = []
    for name, instance in (("eager", pair.eager), ("compiled", pair.compiled)):
        loss = instance.model(*inputs[name].args).square().mean()
        loss.backward()
        losses.append(loss.item())

    assert pair.copies == "loaded_twice"
    assert losses[0] == losses[1]
    mine, theirs = (dict(side.model.named_parameters()) for side in (pair.eager, pair.compiled))
    used = [name for name in mine if how != "weight norm" or "extra" not in name]
    assert all(torch.equal(mine[name].grad, theirs[name].grad) for name in used)


def test_that_neighbours_packages_and_lazy_imports_belong_to_their_load(make: Make) -> None:
    source = """
import torch
from torch import nn
from .parts import table
from .parts.layers import Layer

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Layer()

    def forward(self, x):
        from .parts import late
        late.CALLS.append(1)
        table.CALLS.append(1)
        return self.layer(x) * late.FACTOR

def get_inputs():
    return [torch.randn(3, 6)]
"""
    files = {
        "lib/__init__.py": "",
        "lib/parts/__init__.py": "",
        "lib/parts/table.py": "CALLS = []",
        "lib/parts/late.py": "CALLS = []\nFACTOR = 2",
        "lib/parts/layers.py": "from torch import nn\nclass Layer(nn.Linear):\n"
        "    def __init__(self):\n        super().__init__(6, 6)\n",
    }
    pair = first(make(source, files, name="lib/net.py"))

    one, two = outputs(pair)

    assert torch.equal(one, two)
    for name in ("lib.parts.table", "lib.parts.late"):
        assert pair.eager.own[name] is not pair.compiled.own[name]
        assert len(pair.eager.own[name].CALLS) == len(pair.compiled.own[name].CALLS) == 1
    assert sys.modules["lib.parts.late"] is pair.compiled.own["lib.parts.late"]
    assert pair.eager.own["lib.parts.layers"].Layer is not pair.compiled.own["lib.parts.layers"].Layer


def test_that_dataclasses_and_pickles_find_the_classes_of_their_own_load(make: Make) -> None:
    source = """
import pickle
from dataclasses import dataclass
import torch
from torch import nn
from helper import scaled

@dataclass
class Batch:
    x: torch.Tensor

class Model(nn.Module):
    def forward(self, batch):
        assert isinstance(batch, Batch)
        again = pickle.loads(pickle.dumps(batch))
        assert isinstance(again, Batch)
        return scaled(again.x)

def get_inputs():
    return [Batch(torch.randn(3))]
"""
    pair = first(make(source, {"helper.py": "def scaled(x):\n    return x * 2\n"}))

    one, two = outputs(pair)

    assert pair.copies == "loaded_twice" and set(pair.compiled.own) == {"model_script", "helper"}
    assert torch.equal(one, two)


def test_that_what_is_drawn_anew_at_each_load_is_made_equal(make: Make) -> None:
    source = """
import os
import random
import numpy
import torch
from torch import nn

def drawn():
    return torch.frombuffer(bytearray(os.urandom(6)), dtype=torch.uint8) / 255

SCALE = random.SystemRandom().random()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(drawn())
        self.register_buffer("offset", drawn())
        self.plain = [drawn(), {"deep": drawn().expand(2, 6)}]
        self.factor = random.SystemRandom().random()
        self.table = numpy.frombuffer(os.urandom(6), dtype=numpy.uint8).astype(numpy.float32)
        self.one, self.two, self.three = torch.Generator(), random.Random(), numpy.random.default_rng()
        self.one.seed()
        with torch.inference_mode():
            self.fixed = drawn()
        held = drawn()
        self.adapt = lambda x: x + held

    def forward(self, x):
        noise = torch.rand(6, generator=self.one) + self.two.random() + float(self.three.random())
        y = self.adapt(x * self.weight + self.offset + self.plain[0] + self.plain[1]["deep"][0])
        return (y + self.fixed + torch.from_numpy(self.table)) * self.factor * SCALE + noise

def get_inputs():
    return {"x": drawn()}
"""
    pair = first(make(source))

    for _ in range(2):
        one, two = outputs(pair)
        assert torch.equal(one, two)
    assert pair.copies == "loaded_twice"
    assert list(common(pair.eager.model, pair.compiled.model)) == []


def test_that_parameters_without_a_shape_get_it_before_the_models_are_made_equal(make: Make) -> None:
    source = (
        NET.replace("nn.Linear(6, 6)", "nn.LazyLinear(6)")
        + INPUTS
        + """
import os
with_urandom = torch.nn.LazyLinear.reset_parameters
"""
    )
    pair = first(make(source))

    one, two = outputs(pair)

    assert pair.copies == "loaded_twice" and torch.equal(one, two)


def test_that_the_second_load_finds_the_folder_arguments_and_path_of_the_first(make: Make) -> None:
    source = (
        """
import os, sys
FOUND = os.getcwd(), list(sys.argv), list(sys.path)
os.chdir("/")
sys.argv.append("more")
sys.path.insert(0, "/nowhere")
"""
        + NET
        + INPUTS
    )
    pair = first(make(source, arguments=("--size", "3")))

    one, two = (side.globals()["model_script"]["FOUND"] for side in (pair.eager, pair.compiled))
    assert one == two and one[1][1:] == ["--size", "3"]
    assert sys.argv[-1] == "more" and sys.path.count("/nowhere") == 1


def test_that_the_second_load_finds_the_defaults_of_torch_that_the_first_one_found(make: Make) -> None:
    source = "FOUND = torch.ones(1, requires_grad=True) * 2\n"
    source += (
        "torch.set_default_dtype(torch.bfloat16); torch.set_default_device('meta'); torch.set_grad_enabled(False)\n"
    )
    # built on the CPU all the same, since a model without values gives nothing to compare
    model = NET.replace("nn.Linear(6, 6)", "nn.Linear(6, 6, device='cpu')")

    try:
        pair = first(make(model + source + INPUTS.replace("3, 6", "3, 6, device='cpu'")))
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)

    assert (pair.copies, pair.reason) == ("loaded_twice", "")
    for side in (pair.eager, pair.compiled):
        found = side.globals()["model_script"]["FOUND"]
        assert (found.dtype, found.device.type, found.requires_grad) == (torch.float32, "cpu", True)
        assert side.model.up.weight.dtype is torch.bfloat16


def test_that_a_scripts_own_compilation_is_undone_on_both_sides(make: Make) -> None:
    pair = first(make(NET + INPUTS + "\nmodel = torch.compile(Model(), backend='eager')\n", entry="model"))

    assert pair.unwrapped == ("the model",)
    assert [type(side.model).__name__ for side in (pair.eager, pair.compiled)] == ["Model", "Model"]


# --- what cannot be loaded twice ----------------------------------------------------------------------------------


def test_that_a_script_that_patches_a_library_is_loaded_once_and_its_model_copied(make: Make) -> None:
    pair = first(make(NET + PATCHES_A_LIBRARY + INPUTS))

    assert pair.copies == "copied"
    assert pair.reason == (
        "The script replaces torch.nn.modules.linear.Linear.forward, and a second load would replace it once more."
    )
    assert pair.eager.module is pair.compiled.module
    assert list(common(pair.eager.model, pair.compiled.model)) == []
    one, two = outputs(pair)
    assert torch.equal(one, two)


def test_that_hooks_for_the_modules_of_all_are_not_registered_twice(make: Make) -> None:
    source = "torch.nn.modules.module.register_module_forward_hook(lambda module, args, out: out * 2)\n"

    try:
        pair = first(make(NET + source + INPUTS))
    finally:
        torch.nn.modules.module._global_forward_hooks.clear()

    assert pair.copies == "copied"
    assert pair.reason.startswith("The script replaces torch.nn.modules.module._global_forward_hooks")


def test_that_one_model_is_all_there_is_room_for(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "room", lambda _device: 100)

    pair = first(make(NET + INPUTS))

    assert pair.copies == "shared"
    assert pair.reason == "There is no room for a second model: it takes 0.0 GiB of 0.0 GiB free."


def test_that_an_operator_that_may_be_defined_once_only_makes_copies(make: Make) -> None:
    source = (
        'import torch\nlib = torch.library.Library("scope_test_pair", "DEF")\nlib.define("twice(Tensor x) -> Tensor")\n'
    )

    pair = first(make(source + "\n" + NET + INPUTS))

    assert pair.copies == "copied"
    assert pair.reason.startswith("A second load of the script failed. RuntimeError: Only a single TORCH_LIBRARY")
    assert sys.modules["model_script"] is pair.compiled.module


def test_that_a_start_method_that_may_be_set_once_only_makes_copies(make: Make) -> None:
    try:
        pair = first(make("import multiprocessing\nmultiprocessing.set_start_method('spawn')\n" + NET + INPUTS))
    finally:
        multiprocessing.set_start_method(None, force=True)

    assert pair.copies == "copied"
    assert pair.reason == "A second load of the script failed. RuntimeError: context has already been set."


def test_that_a_script_that_leaves_at_its_second_load_is_copied(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCOPE_LOADS", "")
    source = 'import os, sys\nif os.environ["SCOPE_LOADS"]: sys.exit(3)\nos.environ["SCOPE_LOADS"] = "1"\n'

    pair = first(make(source + NET + INPUTS))

    assert (pair.copies, pair.reason) == ("copied", "A second load of the script failed. SystemExit: 3.")


def test_that_tensors_of_another_form_at_each_load_make_copies(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCOPE_WIDTH", "4")
    source = 'import os\nos.environ["SCOPE_WIDTH"] += "0"\n' + NET.replace(
        "self.up =", 'self.table = torch.ones(int(os.environ["SCOPE_WIDTH"])); self.up ='
    )

    pair = first(make(source + INPUTS))

    assert pair.copies == "copied"
    assert pair.reason == "Two loads of the script made different tensors: model.table."


def test_that_a_model_that_a_library_hands_out_to_both_loads_is_copied(make: Make) -> None:
    library = nn.Linear(6, 6)
    nn.scope_test_model = library  # type: ignore[attr-defined]
    try:
        pair = first(
            make("import torch\nfrom torch import nn\nmodel = nn.scope_test_model\n" + INPUTS.replace("get_", "make_"))
        )
    finally:
        del nn.scope_test_model  # type: ignore[attr-defined]

    assert (pair.copies, pair.reason) == ("copied", "Both loads of the script handed out the same model.")


def test_that_long_work_of_the_scripts_own_is_not_done_twice(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "MOST_OWN_S", 0.2)
    source = "import time\nend = time.perf_counter() + 0.6\nwhile time.perf_counter() < end: pass\n"

    pair = first(make(source + NET + INPUTS))

    assert pair.copies == "copied" and pair.reason.startswith("The script works for ")


def test_that_the_import_of_a_library_is_no_work_of_the_scripts(tmp_path: Path) -> None:
    busy = "import time\nend = time.perf_counter() + 0.5\nwhile time.perf_counter() < end: pass\n"
    code = compile(busy, str(tmp_path / "library.py"), "exec")

    with OwnTime(lambda file: "library" not in file) as apart:
        exec(code, {"__name__": "library"})

    assert apart.seconds < 0.3


def test_that_copies_that_run_on_one_closure_are_built_again_instead(make: Make) -> None:
    source = (
        NET
        + PATCHES_A_LIBRARY
        + INPUTS
        + """
def build_model():
    model = Model()
    up = model.up
    model.forward = lambda x: up(x) * 2
    return model
"""
    )
    pair = first(make(source, entry="build_model"))

    assert pair.copies == "rebuilt"
    assert "Copies of the model hold the same forward.up" in pair.reason
    assert list(common(pair.eager.model, pair.compiled.model)) == []
    one, two = outputs(pair)
    assert torch.equal(one, two)


def test_that_one_model_serves_both_where_nothing_else_can_be(make: Make) -> None:
    source = (
        NET
        + PATCHES_A_LIBRARY
        + INPUTS
        + """
only = Model()
up = only.up
only.forward = lambda x, up=up: up(x) * 2
def build_model():
    return only
"""
    )
    pair = first(make(source, entry="build_model"))

    assert pair.copies == "shared" and pair.eager.model is pair.compiled.model
    assert pair.reason.endswith("build_model hands out the same model each time.")


def test_that_a_way_that_does_not_do_is_followed_by_the_next_with_its_reason(make: Make) -> None:
    pairs = make(NET + INPUTS)

    found = [first(pairs)]
    while (following := pairs.next_pair("They were not alike.")) is not None:
        found.append(following)

    assert [pair.copies for pair in found] == ["loaded_twice", "copied", "rebuilt", "shared"]
    assert found[1].reason == "They were not alike."


# --- inputs -------------------------------------------------------------------------------------------------------


def test_that_inputs_that_are_drawn_anew_have_equal_values_and_their_own_classes(make: Make) -> None:
    source = (
        NET
        + """
import os
class Cache:
    def __init__(self):
        self.rows = [torch.frombuffer(bytearray(os.urandom(8)), dtype=torch.uint8)]

def get_inputs():
    return [torch.randn(3, 6), Cache()]
"""
    )
    pair = first(make(source))

    inputs = pair.make_inputs(5)

    (x, cache), (y, other) = inputs["eager"].args, inputs["compiled"].args
    assert torch.equal(x, y) and x is not y
    assert torch.equal(cache.rows[0], other.rows[0]) and cache.rows[0] is not other.rows[0]
    assert type(cache) is pair.eager.globals()["model_script"]["Cache"]
    assert type(other) is pair.compiled.globals()["model_script"]["Cache"]


def test_that_inputs_go_on_from_where_the_random_streams_stand(make: Make) -> None:
    pair = first(make(NET + INPUTS))
    torch.manual_seed(4)

    one, two = (pair.make_inputs()["eager"].args[0] for _ in range(2))
    torch.manual_seed(4)

    assert not torch.equal(one, two)
    assert torch.equal(pair.make_inputs()["compiled"].args[0], one)


def test_that_inputs_of_another_size_each_time_are_copies_of_one(make: Make) -> None:
    source = NET + "\nimport itertools, os\ndef get_inputs():\n    return [torch.randn(1 + os.urandom(1)[0], 6)]\n"
    pair = first(make(source))

    for _ in range(4):
        inputs = pair.make_inputs()
        assert torch.equal(inputs["eager"].args[0], inputs["compiled"].args[0])
        assert inputs["eager"].args[0] is not inputs["compiled"].args[0]


def test_that_objects_that_differ_in_more_than_numbers_stay_of_their_own_class(make: Make) -> None:
    source = (
        NET
        + """
import uuid
class Batch:
    def __init__(self):
        self.x, self.name = torch.rand(3), uuid.uuid4().hex

def get_inputs():
    return [Batch()]
"""
    )
    pair = first(make(source))

    inputs = pair.make_inputs(5)

    assert type(inputs["eager"].args[0]) is pair.eager.globals()["model_script"]["Batch"]
    assert torch.equal(inputs["eager"].args[0].x, inputs["compiled"].args[0].x)


def test_that_chosen_sizes_hold_for_both_sides(make: Make) -> None:
    pair = first(make(NET + INPUTS))

    pair.use_sizes({"x": [9, 6]})

    inputs = pair.make_inputs(2)
    assert inputs["eager"].args[0].shape == (9, 6)
    assert torch.equal(inputs["eager"].args[0], inputs["compiled"].args[0])


# --- the proof ----------------------------------------------------------------------------------------------------


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Threads that wait for each other on a busy machine make any time possible."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("phase", ["inference", "training"])
@pytest.mark.usefixtures("one_thread")
def test_that_two_loads_are_alike_and_the_proof_leaves_their_state(make: Make, phase: str) -> None:
    source = """
import torch
from torch import nn
CALLS = []
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.count, self.cache = nn.BatchNorm1d(64), 0, None
        self.noise = torch.Generator().manual_seed(1)

    def forward(self, x, seen):
        self.count += 1
        seen.append(self.count)
        CALLS.append(1)
        self.cache = x if self.cache is None else torch.cat([self.cache, x])
        return self.norm(x) + torch.rand(64, generator=self.noise) + torch.rand(64)

def get_inputs():
    return [torch.randn(512, 64), []]
"""
    pair = first(make(source, phase=phase))
    torch.manual_seed(9)
    stream = torch.get_rng_state()

    proof = told(pair, phase=phase)

    assert proof.outputs_equal is True, proof
    assert proof.ratio is not None and proof.low < proof.ratio < proof.high
    for side in (pair.eager, pair.compiled):
        assert side.model.count == 0 and side.model.cache is None
        assert int(side.model.norm.num_batches_tracked) == 0
        assert side.globals()["model_script"]["CALLS"] == []
        assert all(parameter.grad is None for parameter in side.model.parameters())
        assert torch.equal(side.model.noise.get_state(), torch.Generator().manual_seed(1).get_state())
    inputs = pair.make_inputs(3)
    assert inputs["eager"].args[1] == []
    torch.manual_seed(9)
    assert torch.equal(torch.get_rng_state(), stream)


def test_that_models_with_other_weights_are_not_alike(make: Make) -> None:
    pair = first(make(NET + INPUTS))
    with torch.no_grad():
        pair.eager.model.up.bias[0] += 1e-6

    proof = told(pair)

    assert (proof.is_alike, proof.outputs_equal) == (False, False)
    assert proof.detail == "Uncompiled, the two models give different results from the same inputs and state."


def test_that_a_model_that_draws_from_nowhere_is_alike_without_equal_results(make: Make) -> None:
    source = NET.replace("self.up(x)", "self.up(x) * sum(os.urandom(40))") + INPUTS + "\nimport os\n"

    proof = told(first(make(source)))

    assert proof.outputs_equal is None


@pytest.mark.usefixtures("one_thread")
def test_that_a_copy_that_is_slower_than_the_other_is_not_alike_and_the_next_way_is(make: Make) -> None:
    source = (
        """
import torch
from torch import nn
class Model(nn.Module):
    copies = 0
    def __init__(self, rounds=1):
        super().__init__()
        self.rounds = rounds
    def forward(self, x):
        for _ in range(self.rounds):
            y = x.square().sum(1)
        return y
    def __deepcopy__(self, memo):
        Model.copies += 1
        return Model(rounds=5**Model.copies).eval()
def get_inputs():
    return [torch.randn(256, 1024)]
"""
        + PATCHES_A_LIBRARY
    )
    pairs = make(source)
    copied = first(pairs)

    proof = told(copied)

    assert copied.copies == "copied"
    assert proof.outputs_equal is True and not proof.is_alike
    assert proof.high < 0.97 or proof.low > 1.03
    rebuilt = pairs.next_pair(proof.detail)
    assert rebuilt is not None and rebuilt.copies == "rebuilt"
    assert proof.detail in rebuilt.reason
    assert told(rebuilt).outputs_equal is True


def test_that_one_model_for_both_sides_gives_equal_results_from_the_same_state(make: Make) -> None:
    source = NET.replace("return self.up(x)", "self.up.bias.data += 1; return self.up(x)") + INPUTS
    pairs = make(source)
    while (pair := pairs.next_pair()) is not None and pair.copies != "shared":
        pass
    assert pair is not None
    before = pair.eager.model.up.bias.clone()

    proof = told(pair)

    assert proof.outputs_equal is True
    assert torch.equal(pair.eager.model.up.bias, before)
