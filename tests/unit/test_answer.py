"""What the answer card says, from a comparison that is over."""

from __future__ import annotations

from compilescope.domain.comparison import Recommendation
from compilescope.domain.config import Config
from compilescope.domain.events import RunError
from compilescope.ui.answer import fault, recommended


def test_that_the_title_is_the_choice_and_the_rest_stands_below() -> None:
    found = Recommendation(
        config=Config(),
        summary="Use default: 1.84× ± 0.02 against eager; other measured 1.85×, which is no gain. It pays off soon.",
        snippet="model = torch.compile(model)",
        caveats=("Peak memory grows.",),
    )

    shown = recommended(found, [])

    assert shown.title == "Use default: 1.84× ± 0.02 against eager"
    assert shown.text == "other measured 1.85×, which is no gain. It pays off soon. Peak memory grows."
    assert shown.action == "snippet"


def test_that_leaving_it_eager_is_a_full_answer() -> None:
    found = Recommendation(config=None, summary="Leave it eager. default: Slower than eager: 0.9×.")

    shown = recommended(found, [])

    assert shown.title == "Leave it eager"
    assert shown.action == ""


def test_that_a_failure_in_eager_is_laid_at_the_scripts_door() -> None:
    error = RunError(stage="eager", type="RuntimeError", message="shapes", file="/x/model.py", line=12)

    assert fault(error) == "The model fails in eager too (model.py:12), without torch.compile."
