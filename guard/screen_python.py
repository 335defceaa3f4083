"""The screen for Python: does it parse, is the entry there, does it try what cannot work."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping

from kernelarc.guard.schema.status import EvaluationStatus
from kernelarc.guard.screen_finding import (
    NO_FILES,
    NO_NETWORK,
    NO_PROGRAMS,
    Entry,
    ScreenFinding,
)

_COMPILE_ERROR, _POLICY = EvaluationStatus.COMPILE_ERROR, EvaluationStatus.POLICY

_NO_INSPECTION = (
    "there is nothing to find: inputs are new in every call, and expected results are in another "
    "process"
)

_FORBIDDEN_MODULES = {
    "subprocess": NO_PROGRAMS,
    "multiprocessing": NO_PROGRAMS,
    "torch.multiprocessing": NO_PROGRAMS,
    "pty": NO_PROGRAMS,
    "socket": NO_NETWORK,
    "urllib.request": NO_NETWORK,
    "http.client": NO_NETWORK,
    "requests": NO_NETWORK,
    "ctypes": "native code is submitted as language 'cpp', which is compiled and called for you",
    "__main__": _NO_INSPECTION,
}
_FORBIDDEN_CALLS = {
    **dict.fromkeys(
        ("os.fork", "os.forkpty", "os.system", "os.popen", "os.posix_spawn", "os.posix_spawnp"),
        NO_PROGRAMS,
    ),
    **{
        f"os.{kind}{suffix}": NO_PROGRAMS
        for kind in ("exec", "spawn")
        for suffix in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")
    },
    "os._exit": "a process that ends before the judge says so counts as a crash",
    "os.kill": "there is no process to signal but one's own",
    **dict.fromkeys(
        (
            *("gc.get_objects", "gc.get_referrers", "gc.get_referents"),
            *("inspect.stack", "inspect.trace", "inspect.currentframe", "inspect.getouterframes"),
            *("sys._getframe", "sys._current_frames"),
            *("sys.modules.items", "sys.modules.values", "sys.modules.keys"),
        ),
        _NO_INSPECTION,
    ),
    **dict.fromkeys(
        ("torch.utils.cpp_extension.load", "torch.utils.cpp_extension.load_inline"),
        NO_PROGRAMS + ", so no compiler either; submit C++ as language 'cpp'",
    ),
}
_NOTED_MODULES = {
    "threading": "threads may help inside one call, but none may go on working after it",
    "concurrent.futures": "threads may help inside one call, but none may go on working after it",
}
_NOTED_CALLS = {
    "torch.compile": "torch.compile needs a compiler, which a runner on this device cannot start",
}
_OPENING_CALLS = ("open", "io.open", "os.open")
_READABLE_FACTS = ("/proc/cpuinfo", "/proc/meminfo", "/proc/self/", "/sys/devices/", "/dev/null")


def screen_python(path: str, text: str, entry: Entry, device: str) -> Iterator[ScreenFinding]:
    """Look at one Python file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # The author's; they are no business of this process.
            tree = ast.parse(text, path)
    except SyntaxError as error:
        shown = f": {error.text.strip()}" if error.text else ""
        yield ScreenFinding(_COMPILE_ERROR, path, error.lineno, f"{error.msg}{shown}")
        return
    except (RecursionError, MemoryError, ValueError):
        yield ScreenFinding(
            _COMPILE_ERROR, path, None, "Python cannot parse this file: it is nested too deeply"
        )
        return
    nodes = list(_nodes_that_run(tree))
    names = _imported_names(nodes)
    for node in nodes:
        yield from _screen_node(path, node, names, device)
    if path == entry.file:
        yield from _screen_python_entry(path, tree, entry)


def _nodes_that_run(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes but those that only run when the file is a program."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and _asks_for_main(node.test):
            waiting.extend(node.orelse)
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))


def _asks_for_main(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and isinstance(test.ops[0], ast.Eq)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value == "__main__"
    )


def _imported_names(nodes: list[ast.AST]) -> dict[str, str]:
    """What each imported name stands for: ``{"o": "os", "f": "os.fork", ...}``."""
    names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _dotted(node: ast.expr, names: Mapping[str, str]) -> str | None:
    """The full name of an imported thing or a built-in; ``None`` for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    if parts and node.id not in names:
        return None
    return ".".join([names.get(node.id, node.id), *reversed(parts)])


def _screen_node(
    path: str, node: ast.AST, names: Mapping[str, str], device: str
) -> Iterator[ScreenFinding]:
    for table, status in ((_FORBIDDEN_MODULES, _POLICY), (_NOTED_MODULES, None)):
        for module in sorted({_listed(imported, table) for imported in _imports(node)} - {""}):
            message = f"import of {module}: {table[module]}"
            yield ScreenFinding(status, path, getattr(node, "lineno", None), message)
    if isinstance(node, ast.Call) and (name := _dotted(node.func, names)):
        if reason := _FORBIDDEN_CALLS.get(name):
            yield ScreenFinding(_POLICY, path, node.lineno, f"{name}(): {reason}")
        if device == "cpu" and (reason := _NOTED_CALLS.get(name)):
            yield ScreenFinding(None, path, node.lineno, reason)
        if name in _OPENING_CALLS:
            yield from _screen_opening(path, node)


def _listed(module: str, table: Mapping[str, str]) -> str:
    """The entry for a module or one of its parents; empty when there is none."""
    while module and module not in table:
        module = module.rpartition(".")[0]
    return module


def _screen_opening(path: str, node: ast.Call) -> Iterator[ScreenFinding]:
    first = node.args[0] if node.args else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return
    target = first.value
    if target.startswith("/") and not target.startswith(_READABLE_FACTS):
        yield ScreenFinding(
            _POLICY,
            path,
            node.lineno,
            f"open({target!r}): {NO_FILES}",
        )


def _screen_python_entry(path: str, tree: ast.Module, entry: Entry) -> Iterator[ScreenFinding]:
    defined = list(_definitions(tree, entry.function))
    functions = [n for n in defined if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    if not defined and not _binds_names_freely(tree):
        yield ScreenFinding(
            _COMPILE_ERROR,
            path,
            None,
            f"no function {entry.function!r} in this file. Expected:\n{entry.signature}",
        )
    if len(defined) != 1 or not functions or functions[0].decorator_list:
        return  # Bound by other means or changed by a decorator: only running it will tell.
    function = functions[0]
    if isinstance(function, ast.AsyncFunctionDef):
        message = f"{entry.function!r} is async; it is called like an ordinary function"
        yield ScreenFinding(_COMPILE_ERROR, path, function.lineno, message)
    elif problem := _misfit(function.args, entry.parameters):
        yield ScreenFinding(
            _COMPILE_ERROR,
            path,
            function.lineno,
            f"{entry.function!r} {problem}. Expected:\n{entry.signature}",
        )


def _definitions(tree: ast.Module, name: str) -> Iterator[ast.AST]:
    """Everything at module level, also inside ``if`` and ``try``, that binds a name."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name == name:
                yield node
            continue
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            yield node
        if isinstance(node, ast.alias) and (node.asname or node.name) == name:
            yield node
        if not isinstance(node, ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def _binds_names_freely(tree: ast.Module) -> bool:
    """Whether names may appear that the text does not show."""
    free = {"exec", "globals", "setattr", "locals", "vars"}
    return any(
        (isinstance(node, ast.alias) and node.name == "*")
        or (isinstance(node, ast.Name) and node.id in free)
        for node in ast.walk(tree)
    )


def _misfit(arguments: ast.arguments, given: int) -> str | None:
    """Why a call with ``given`` positional arguments fails; ``None`` when it does not."""
    positional = len(arguments.posonlyargs) + len(arguments.args)
    required = positional - len(arguments.defaults)
    keywords = [
        argument.arg
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    if keywords:
        return f"requires keyword arguments {keywords}, and all are given by position"
    if given < required or (given > positional and arguments.vararg is None):
        takes = str(positional) if required == positional else f"{required} to {positional}"
        return f"takes {takes} parameters and is called with {given}"
    return None
