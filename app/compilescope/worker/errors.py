"""Failures as a person reads them: what happened, where in the script, and what to do."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from compilescope.domain.errors import AppError
from compilescope.domain.events import RunError
from compilescope.worker.graph_lines import Origin, caught_by, origin_of

LONGEST_MESSAGE = 2000
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_OWN = str(Path(__file__).resolve().parent) + os.sep
# where the script's own functions are called, and fail by what they were given or gave
_BORDERS = ("steps.py", "loader.py", "entries.py")
_CALL = re.compile(r"[\w.<>]+\(\) (missing|takes|got)")
_OF_THE_MODEL = re.compile(
    r"[/\\]torch[/\\](nn[/\\]|optim|autograd|_tensor\.py|_dynamo|_inductor|_functorch|_higher|fx)"
)
_LIBRARY = re.compile(r"[/\\](site-packages|dist-packages|lib[/\\]python3)[/\\.]|^<")

_GRAD_MODE = (
    "Gradients or inference mode are the matter here, and perhaps not the script: inference is called under "
    "torch.inference_mode() unless --grad-mode (Gradients in the window) says otherwise. Try {mode}."
)
# the first pattern found in "Type: message" gives the hint
_HINTS: tuple[tuple[str, str], ...] = (
    (
        r"does not require grad and does not have a grad_fn",
        _GRAD_MODE.format(mode="--grad-mode enable_grad")
        + " In training, the loss must come from parameters that require gradients.",
    ),
    (r"Inference tensors cannot be saved for backward", _GRAD_MODE.format(mode="--grad-mode no_grad, or enable_grad")),
    (
        r"Guard failed on the same frame it was created|dispatch key set mismatch",
        _GRAD_MODE.format(mode="--grad-mode no_grad"),
    ),
    (
        r"TypeError: (?:\w+\.)?__init__\(\) missing",
        "Where the model's constructor takes arguments, the script gives them by get_init_inputs().",
    ),
    (
        r"EOFError: EOF when reading a line",
        "The script asks at the keyboard, and here nobody answers. Let it take the value from sys.argv (--arg).",
    ),
    (
        r"ModuleNotFoundError: No module named '([^']+)'",
        "Install {0} into the chosen interpreter, or choose the interpreter that the script is meant for.",
    ),
    (
        r"OutOfMemoryError|can't allocate memory|CUDA out of memory|DefaultCPUAllocator|MemoryError",
        "There is not enough memory. Use smaller inputs or a smaller batch, or a device with more memory.",
    ),
    (
        r"Expected all tensors to be on the same device|found at least two devices|Input type .* weight type",
        "A tensor was made on another device: give `device=` where forward makes tensors, or register it as a buffer.",
    ),
    (
        r"No working C\+\+ compiler|InvalidCxxCompiler|Compiler: cl is not found",
        "Inductor builds C++ code for the CPU. Install a C++ compiler (g++ or clang), or use the backend aot_eager.",
    ),
    (
        r"CppCompileError",
        "The C++ compiler could not build Inductor's code; its own message is in the log. "
        "A cache folder with a space in its path causes this too.",
    ),
    (r"Python\.h: No such file", "Install the Python headers (package python3-dev)."),
    (
        r"ConstraintViolationError|Constraints violated",
        "The script marks a dimension as dynamic which the model fixes. Drop the mark, or use maybe_mark_dynamic.",
    ),
    (
        r"FailOnRecompileLimitHit|RecompileLimitExceeded",
        "A guard fails on every call. With fullgraph off the function would run eager from here on; "
        "the recompiles say which value changes.",
    ),
    (
        r"InternalTorchDynamoError",
        "This is an error within torch.compile itself. Exclude the code at this line with torch.compiler.disable, "
        "or try another version of torch.",
    ),
    (r"Unexpected optimization option", "torch._inductor.list_options() names those of this torch."),
    (r"Unrecognized mode", "torch._inductor.list_mode_options() names those of this torch."),
    (r"InvalidBackend", "`compilescope doctor` lists the backends of this torch."),
    (
        r"InductorError|BackendCompilerFailed|LoweringException",
        "The backend failed, not the script. The backend aot_eager tells whether Inductor is the cause.",
    ),
    (
        r"CUDA error|no kernel image is available|CUDA driver version",
        "The CUDA device or its driver refused the work; the log tells more.",
    ),
)

# the same for what only the compiler means by these names
_COMPILER_HINTS: tuple[tuple[str, str], ...] = (
    (
        r"RecursionError|maximum recursion depth",
        "The code is nested too deeply for the compiler. Try sys.setrecursionlimit(10000) at the top of the script.",
    ),
    *_HINTS,
    (
        r"Unsupported|UserError|found no compiled frames",
        "fullgraph=True admits no graph break. Change this line, or turn fullgraph off.",
    ),
)

# where no pattern fits: whose error it is
_STAGE_HINTS = {
    "load": "The script raises this itself. Correct it first; torch.compile has no part in it.",
    "eager": "The model raises this without torch.compile too. Correct it first.",
    "compile": "The model runs without torch.compile, and fails with it; the traceback and the log tell more.",
}


class WorkerError(AppError):
    """A failure that the worker itself found; `type` stands for the exception's class."""

    def __init__(self, message: str, *, hint: str = "", type: str = "ScriptError", line: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.type = type
        self.line = line


def describe(error: BaseException, stage: str, script: str | None) -> RunError:
    """What an exception means to the user."""
    if isinstance(error, WorkerError):
        return RunError(
            stage=stage, type=error.type, message=error.message, hint=error.hint, file=script, line=error.line
        )
    if isinstance(error, SystemExit):
        return _exit(error, stage, script)
    if _is_own_fault(error, stage):
        return RunError(
            stage=stage,
            type="InternalError",
            message=f"CompileScope failed ({type(error).__name__}: {_message(error)}).",
            hint="Please report it, with the log.",
            traceback=_traceback(error),
        )
    origin = origin_of(error) if stage == "compile" and not _told_places(error) else None
    ran = origin is not None and origin.ran
    file, line = _place(error, script, origin.lines if origin else ())
    message = "The script raised KeyboardInterrupt." if isinstance(error, KeyboardInterrupt) else _message(error)
    return RunError(
        stage=stage,
        type=type(error).__name__,
        message=f"The compiled code raised this as it ran: {message}" if ran else message,
        hint=_hint(error, stage) or (_origin_hint(origin) if origin else "") or _STAGE_HINTS.get(stage, ""),
        traceback=_traceback(error),
        file=file,
        line=line,
        ran=ran,
    )


def _origin_hint(origin: Origin) -> str:
    """What an error of the compiler or of its code means for the script."""
    if not origin.ran:
        return (
            "torch itself fails here as it compiles, not the script: the model runs without torch.compile. Exclude "
            "the code at this line with torch.compiler.disable, or try another version of torch."
        )
    caught = caught_by(origin.lines)
    if caught is None:
        return "Eager does not raise it for the same inputs: compare what the compiled code gets here with eager."
    return (
        f"Eager catches this error in the script's own try (line {caught[1]} of {Path(caught[0]).name}); the compiled "
        "graph raises it outside of that. Keep that try out of the graph with torch.compiler.disable, or ask for the "
        "operation's status instead of its exception."
    )


def _exit(error: SystemExit, stage: str, script: str | None) -> RunError:
    file, line = _place(error, script)
    if error.code == 2 and "argparse" in "".join(traceback.format_tb(error.__traceback__)):
        message = f"The script wants arguments: {_argparse_complaint(error)}"
        hint = "Pass them with --arg, once a word."
    else:
        code = error.code if isinstance(error.code, int) else 1 if error.code else 0
        said = f": {error.code}" if isinstance(error.code, str) else "."
        message = f"The script ended itself with status {code}{said}"
        hint = 'Put what the script does when it is run under `if __name__ == "__main__":`.'
        if stage != "load":
            hint = "The model calls sys.exit as it works; let it raise an exception instead."
    return RunError(
        stage=stage,
        type="SystemExit",
        message=message,
        hint=hint,
        traceback=_traceback(error),
        file=file,
        line=line,
    )


def _is_own_fault(error: BaseException, stage: str) -> bool:
    """Whether this program raised the error itself, neither in the script's code nor in what was handed to torch."""
    if isinstance(error, (SyntaxError, KeyboardInterrupt)) or _hint(error, stage):
        return False
    if isinstance(error, TypeError) and _CALL.match(str(error)):
        return False
    files = [file for part in _chain(error) for file, _ in _frames(part.__traceback__)]
    if not all(map(_is_foreign, files)) or _told_places(error):
        return False
    files = [file for file, _ in _frames(error.__traceback__)]
    own = [index for index, file in enumerate(files) if file.startswith(_OWN)]
    if not own or files[own[-1]].endswith(_BORDERS):
        return False
    return not any(_OF_THE_MODEL.search(file) for file in files[own[-1] :])


def _argparse_complaint(error: SystemExit) -> str:
    """argparse prints its message and keeps it in its own frame."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename.endswith("argparse.py") and frame.f_code.co_name == "error":
            return str(frame.f_locals.get("message", "")).strip() + "."
    return "see its usage in the log."


def _message(error: BaseException) -> str:
    """The first paragraph; the compiler's own preambles say nothing."""
    text = str(error).strip()
    if isinstance(error, SyntaxError):
        return f"{error.msg} (line {error.lineno})"
    inner = getattr(error, "inner_exception", None)
    if isinstance(inner, BaseException) and str(inner).strip():
        text = f"{type(inner).__name__}: {inner}".strip()
    # a list of several hundred names hides the sentence before it
    text = re.sub(r", known options are \[.*", ".", text, flags=re.DOTALL)
    paragraph = text.split("\n\n")[0].strip() or type(error).__name__
    return paragraph[:LONGEST_MESSAGE]


def _hint(error: BaseException, stage: str) -> str:
    hints = _HINTS if stage in ("load", "eager") else _COMPILER_HINTS
    chain = "\n".join(f"{type(part).__name__}: {part}" for part in _chain(error))
    for pattern, hint in hints:
        if match := re.search(pattern, chain):
            return hint.format(*(group.partition(".")[0] for group in match.groups()))
    return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = getattr(current, "inner_exception", None) or current.__cause__ or current.__context__


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception as failure:  # a script's exception may fail to print itself
        return f"{type(error).__name__} (its traceback cannot be shown: {type(failure).__name__})"


def _place(
    error: BaseException, script: str | None, compiled: tuple[tuple[str, int], ...] = ()
) -> tuple[str | None, int | None]:
    """The innermost line of the script's own folder, else the innermost outside libraries and this program."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno
    places = [*_frames(error.__traceback__), *_told_places(error), *compiled]
    home = str(Path(script).resolve().parent) + os.sep if script else None
    own = [place for place in places if home and str(Path(place[0]).resolve()).startswith(home)]
    own = [place for place in own if not _is_foreign(place[0])]
    chosen = own or [place for place in places if not _is_foreign(place[0])]
    return chosen[-1] if chosen else (script, None)


def _frames(trace: TracebackType | None) -> list[tuple[str, int]]:
    return [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]


def _told_places(error: BaseException) -> list[tuple[str, int]]:
    """Dynamo names the user's lines in its message, since they are in no frame of the traceback."""
    text = "\n".join(str(part) for part in _chain(error))
    marker = text.find("from user code:")
    if marker < 0:
        return []
    return [(match["file"], int(match["line"])) for match in _FRAME.finditer(text, marker)]


def _is_foreign(file: str) -> bool:
    return bool(_LIBRARY.search(file)) or file.startswith(_OWN)
