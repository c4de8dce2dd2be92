"""What the answer card says, from a comparison that is over."""

from __future__ import annotations

from compilescope.domain.comparison import Outcome, Recommendation, Rival
from compilescope.domain.config import Config
from compilescope.domain.events import RunError
from compilescope.domain.statistics import Interval
from compilescope.ui.answer import fault, recommended


def test_that_the_title_is_the_choice_and_the_rest_stands_below() -> None:
    found = Recommendation(
        kind="use",
        config=Config(),
        label="default",
        speedup=Interval(value=1.84, low=1.82, high=1.86),
        ties=(Rival(run_id="b", label="other", speedup=Interval(value=1.85, low=1.82, high=1.88)),),
        snippet="model = torch.compile(model)",
        caveats=("Peak memory grows.",),
    )

    shown = recommended(found, [])

    assert shown.title == "Use default: 1.840× ± 0.020 against eager"
    assert shown.text == "other measured 1.850× ± 0.030, which is not a provable gain. Peak memory grows."
    assert shown.action == "snippet"


def test_that_leaving_it_eager_is_a_full_answer() -> None:
    slower = Outcome(run_id="a", label="default", kind="slower", summary="Slower than eager: 0.9×.", word="slower")
    found = Recommendation(kind="leave_eager", outcomes=(slower,))

    shown = recommended(found, [])

    assert (shown.title, shown.text) == ("Leave it eager", "default: Slower than eager: 0.9×.")
    assert shown.action == ""


def test_that_a_failure_in_eager_is_laid_at_the_scripts_door() -> None:
    error = RunError(stage="eager", type="RuntimeError", message="shapes", file="/x/model.py", line=12)

    assert fault(error) == "The model fails in eager too (model.py:12), without torch.compile."
