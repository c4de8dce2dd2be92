"""The PDF as a reader meets it: pages, text, fonts, bookmarks, links, bytes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pypdf
import pytest
from fakes.comparisons import SCRIPT, comparison
from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QFontDatabase

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.errors import AppError, UsageError
from compilescope.report.pdf import write_pdf

LONG = "_".join(["a_name_without_any_space"] * 12)
STRANGE = "größe_モデル_модель.py"

WRITE_WITHOUT_APPLICATION = """
import sys
from compilescope.report.pdf import write_pdf
from fakes.comparisons import SCRIPT, comparison

write_pdf(comparison(samples=40), sys.argv[1], source=SCRIPT)
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of eight configurations, of every kind of verdict."""
    path = tmp_path_factory.mktemp("report") / "report.pdf"
    write_pdf(comparison(samples=60), path, source=SCRIPT)
    return path


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with names that are long, or not Latin, or both."""
    path = tmp_path_factory.mktemp("strange") / "strange.pdf"
    found = comparison([Config(options={LONG: True}), Config(backend="日本語")], script=f"/home/用户/{STRANGE}")
    found.runs[0].processes[0].warnings.append(e.Warning(message="null \x00, tab \t, 人工知能"))
    write_pdf(found, path, "Letter")
    return path


def text_of(path: Path) -> str:
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(path).pages)


def test_that_the_file_is_well_formed_and_says_what_it_is(report: Path) -> None:
    reader = pypdf.PdfReader(report, strict=True)

    assert reader.metadata is not None
    assert reader.metadata.title == "encoder_with_branch.py: torch.compile against eager"
    assert reader.metadata.author == "CompileScope"
    assert reader.metadata.creator is not None
    assert reader.metadata.creator.startswith("CompileScope ")
    assert reader.trailer["/Root"]["/Lang"] == "en"


def test_that_what_is_too_noisy_to_tell_is_called_so(tmp_path: Path) -> None:
    write_pdf(comparison([Config()], speedups=(1.05,), samples=6), tmp_path / "noisy.pdf")

    text = text_of(tmp_path / "noisy.pdf")
    assert "too noisy" in text and "Too noisy to tell: between" in text
    assert "no difference" not in text.partition("Environment and method")[0]


def test_that_every_font_is_embedded(report: Path) -> None:
    for page in pypdf.PdfReader(report).pages:
        for font in page["/Resources"]["/Font"].values():
            descriptor = font.get_object()["/DescendantFonts"][0].get_object()["/FontDescriptor"]
            assert "/FontFile2" in descriptor or "/FontFile3" in descriptor


def test_that_no_page_holds_a_picture(report: Path) -> None:
    assert all(not page.images for page in pypdf.PdfReader(report).pages)


def test_that_the_text_can_be_searched(report: Path) -> None:
    text = text_of(report)

    for words in ("configuration", "Use reduce-overhead", "if hidden.abs().mean() > 0.5:", "Data-dependent branching"):
        assert words in text
    assert "\t" not in text


def test_that_pages_are_numbered_and_of_the_chosen_size(report: Path, strange: Path) -> None:
    pages = pypdf.PdfReader(report).pages

    for number, page in enumerate(pages, start=1):
        assert f"{number} / {len(pages)}" in page.extract_text()
    assert [round(float(side)) for side in pages[0].mediabox[2:]] == [595, 842]
    assert [round(float(side)) for side in pypdf.PdfReader(strange).pages[0].mediabox[2:]] == [612, 792]


def test_that_bookmarks_lead_to_every_section(report: Path) -> None:
    reader = pypdf.PdfReader(report)
    chapters = [entry for entry in reader.outline if not isinstance(entry, list)]
    (parts,) = [entry for entry in reader.outline if isinstance(entry, list)]

    assert [entry.title for entry in chapters] == [
        "1 Summary",
        "2 All configurations",
        "3 Environment and method",
        "4 What was not checked",
    ]
    assert len(parts) == 8
    for entry in (*chapters[1:], *parts):
        number = reader.get_destination_page_number(entry)
        assert number is not None
        assert entry.title.partition(" ")[2].split(" ")[0] in reader.pages[number].extract_text()


def test_that_a_row_of_the_table_leads_to_its_configuration(report: Path) -> None:
    reader = pypdf.PdfReader(report)
    links = [link.get_object() for link in reader.pages[1]["/Annots"]]

    targets = [reader.get_page_number(link["/Dest"][0].get_object()) for link in links]

    assert len(links) == 8
    assert targets == sorted(set(targets))


def test_that_the_head_of_a_long_table_is_repeated(tmp_path: Path) -> None:
    many = comparison([Config(options={"size": i}) for i in range(70)], speedups=(1.2,), samples=8, breaks=0, phases=1)

    write_pdf(many, tmp_path / "many.pdf")

    pages = pypdf.PdfReader(tmp_path / "many.pdf").pages
    assert all("Break-even" in page.extract_text() for page in pages[1:3])


def test_that_long_and_foreign_names_are_whole(strange: Path) -> None:
    text = re.sub(r"\s", "", text_of(strange))

    assert f"{LONG}=True" in text
    assert "größe" in text and "модель" in text
    if QFontDatabase.WritingSystem.Japanese in QFontDatabase.writingSystems():
        assert STRANGE in text
        assert "人工知能" in text
        assert "日本語" in text


def test_that_nothing_stands_outside_the_margins(strange: Path) -> None:
    outside = []

    def visit(text: str, _: list[float], matrix: list[float], *__: object) -> None:
        if text.strip() and not 50 < matrix[4] < 612 - 50:
            outside.append(text)

    for page in pypdf.PdfReader(strange).pages:
        page.extract_text(visitor_text=visit)
    assert outside == []


def test_that_the_same_comparison_gives_the_same_bytes_but_for_the_date(tmp_path: Path) -> None:
    written = []
    for seed in ("1", "2"):
        path = tmp_path / f"{seed}.pdf"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed}
        # neither a display nor a word on the platform: a server has none
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
            environment.pop(name, None)
        subprocess.run([sys.executable, "-c", WRITE_WITHOUT_APPLICATION, str(path)], env=environment, check=True)
        dates = rb"D:\d{14}Z?[+\-\d']*|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
        written.append(re.sub(dates, b"DATE", path.read_bytes()))

    assert written[0] == written[1]


def test_that_a_link_stays_a_link_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "real.pdf", tmp_path / "link.pdf"
    target.write_bytes(b"old")
    link.symlink_to(target)

    write_pdf(comparison(samples=40), link)

    assert link.is_symlink() and target.read_bytes().startswith(b"%PDF")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a file that is no regular one")
def test_that_what_is_no_regular_file_is_written_into_and_not_replaced(tmp_path: Path) -> None:
    pipe, found = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()

    write_pdf(comparison(samples=40), pipe)
    reader.join(30)

    assert pipe.is_fifo() and found[0].startswith(b"%PDF")


def test_that_another_thread_can_write_while_the_window_lives(tmp_path: Path, qapp: QCoreApplication) -> None:
    found = comparison([Config()], samples=20)
    writers = [Thread(target=write_pdf, args=(found, tmp_path / f"{i}.pdf")) for i in range(2)]

    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        qapp.processEvents()

    assert all("Use default" in text_of(tmp_path / f"{i}.pdf") for i in range(2))


def test_that_a_chart_that_cannot_be_drawn_costs_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("compilescope.report.pdf.chart_distribution._histogram", fail)

    write_pdf(comparison([Config()], samples=20), tmp_path / "a.pdf")

    text = " ".join(text_of(tmp_path / "a.pdf").split())
    assert "cannot be drawn here: CompileScope failed (ZeroDivisionError: a fault of ours)" in text
    assert "What was not checked" in text


def test_that_a_first_call_that_took_no_time_is_no_chart(tmp_path: Path) -> None:
    found = comparison([Config()], samples=20)
    for process in found.runs[0].processes:
        calls = {key: replace(call, duration_s=0.0) for key, call in process.first_calls.items()}
        process.first_calls.update(calls)

    write_pdf(found, tmp_path / "a.pdf")

    assert "cannot be drawn" not in text_of(tmp_path / "a.pdf")


def test_that_a_page_size_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="A5"):
        write_pdf(comparison([Config()], samples=8), tmp_path / "a.pdf", "A5")


def test_that_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AppError, match=r"nowhere/a\.pdf"):
        write_pdf(comparison([Config()], samples=8), tmp_path / "nowhere" / "a.pdf")


def test_that_a_comparison_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AppError, match="no runs"):
        write_pdf(Comparison(id="c", created=0.0), tmp_path / "a.pdf")
    assert list(tmp_path.iterdir()) == []


def test_that_memory_and_the_sizes_of_a_sweep_are_drawn_as_well(tmp_path: Path) -> None:
    path = tmp_path / "sweep.pdf"
    found = comparison([Config()], samples=20)
    run = found.runs[0]
    run.workload = replace(run.workload, inputs={"tokens": ((8, 512), (64, 512))})
    for side, seconds in (("eager", 4e-3), ("compiled", 2e-3)):
        run.apply(e.Samples(at=30.0, side=side, shape=1, block=0, clock="cuda_event", seconds=(seconds,) * 8))

    write_pdf(found, path)

    text = text_of(path)
    assert "Median time per call at each size" in text and "tokens 64 × 512" in text
    assert "Peak of the device's memory" in text and "393 MiB" in text
