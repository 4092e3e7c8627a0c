"""What users may import: written down once, in the API reference, and nothing else.

The reference is the lines ``::: NAME`` of ``docs``: each has a module with what it exports, or one
name. A module is public if no part of its path begins with an underscore.
"""

import ast
import dataclasses
import importlib
import inspect
import pickle
import pickletools
import pkgutil
import re
import subprocess
import sys
import types
import typing
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest

import eventproc
from eventproc._base.public_names import public_name
from eventproc.errors import ConfigurationError, EventProcError
from eventproc.models._dead_letter import describe_error
from eventproc.placements import ByLoad, Even, Ordinal, Published, Ring, Weighted
from eventproc.testing import HandlerTestHarness

PACKAGES = ("eventproc", "checkpointstores", "spark_integration")
NAMESPACES = {"checkpointstores", "eventproc.sources"}
"""They export nothing: each of their modules needs another extra."""

DEFINITION = re.compile(
    r"^(?:(?:async )?def|class) (\w+)|^(\w+)(?:: [^=\n]+)? = (?!TypeVar)", re.MULTILINE
)
NOT_BUILT_BY_USERS = {"spark_integration.Fleet"}
"""Their constructors take private values."""


def has_private_part(path: str) -> bool:
    return any(part.startswith("_") for part in path.split("."))


@cache
def modules() -> dict[str, types.ModuleType]:
    """Return the modules that users may import, by their names."""
    names = {
        found.name
        for package in map(importlib.import_module, PACKAGES)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    }
    public = [name for name in (*PACKAGES, *sorted(names)) if not has_private_part(name)]
    return {name: importlib.import_module(name) for name in public}


@cache
def exported() -> dict[str, typing.Any]:
    """Return everything that users may name, by the paths that they import it from."""
    return {
        f"{name}.{thing}": getattr(module, thing)
        for name, module in modules().items()
        for thing in getattr(module, "__all__", ())
    }


def is_ours(thing: object) -> bool:
    module = getattr(thing, "__module__", None) or ""
    return module.partition(".")[0] in PACKAGES


def test_the_reference_has_every_module_and_each_name_once(root):
    """A name of ``eventproc`` is in the reference itself, or belongs to a module that is."""
    pages = [*(root / "docs").rglob("*.md")]
    listed = [
        name
        for page in pages
        for name in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)
    ]
    whole = {name for name in listed if name in modules()}
    covered = {id(thing) for path, thing in exported().items() if path.rpartition(".")[0] in whole}
    alone = [path for path in exported() if path.startswith("eventproc.") and path.count(".") == 1]

    assert whole == modules().keys() - NAMESPACES - {"eventproc"}
    assert {name for name in listed if name not in whole} - set(exported()) == set()
    assert [path for path in alone if (path in listed) == (id(exported()[path]) in covered)] == [
        "eventproc.__version__"
    ]


@pytest.mark.long
def test_the_built_reference_has_every_name_and_what_it_inherits(root):
    """MkDocs leaves out what has no docstring, and warns of links that lead nowhere."""
    subprocess.run(["make", "docs"], cwd=root, check=True)
    _, content = (root / "build" / "site" / "objects.inv").read_bytes().split(b"zlib.\n", 1)
    built = {line.split(" ")[0] for line in zlib.decompress(content).decode().splitlines()}
    inherited = {
        f"eventproc.{cls}.{name}"
        for cls in ("EventProcessor", "ResourceProcessor")
        for name in ("run", "serve", "start", "stop", "finished")
    }

    assert exported().keys() - built == {"eventproc.__version__"}
    assert inherited - built == set()


def test_a_public_module_exports_what_it_defines():
    """A class, function or constant of a public module is in ``__all__``, or begins with ``_``."""
    not_exported = [
        f"{name}.{thing}"
        for name, module in modules().items()
        for match in DEFINITION.finditer(Path(str(module.__file__)).read_text("utf-8"))
        for thing in [match[1] or match[2]]
        if not thing.startswith("_") and thing not in module.__all__
    ]

    assert not_exported == []
    assert {n for n, m in modules().items() if not getattr(m, "__all__", ())} == NAMESPACES
    assert [
        name
        for name, module in modules().items()
        for exports in [getattr(module, "__all__", ())]
        if len(exports) != len(set(exports))
    ] == []


def test_every_exported_class_and_function_has_a_docstring():
    """Each has one of its own: the reference leaves out what has none."""
    undocumented = [
        path
        for path, thing in exported().items()
        if inspect.isclass(thing) or inspect.isroutine(thing)
        if not vars(thing).get("__doc__", thing.__doc__ if inspect.isroutine(thing) else None)
    ]

    assert undocumented == []


def test_what_is_exported_says_that_it_comes_from_a_public_module():
    """Messages, pickles and stored words have this name, so a class may move to another module."""
    wrong = [
        f"{path}: {thing.__module__}"
        for path, thing in exported().items()
        if isinstance(thing, type | types.FunctionType) and is_ours(thing)
        if getattr(modules().get(thing.__module__), thing.__name__, None) is not thing
    ]

    assert wrong == []


def test_pages_and_examples_import_public_modules_only(root):
    """Readers copy these lines."""
    files = [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "examples").rglob("*.py")]
    private = [
        f"{file.relative_to(root)}: {line}"
        for file in files
        for line in re.findall(r"^ *(?:from|import) (\S+)", file.read_text("utf-8"), re.MULTILINE)
        if line.partition(".")[0] in PACKAGES and has_private_part(line)
    ]

    assert private == []


def test_a_program_uses_every_name(root):
    """Type checkers read it, so a name whose type a user could not use is noticed."""
    tree = ast.parse((root / "tests" / "typing" / "uses_everything.py").read_text("utf-8"))
    path_by_name: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            path_by_name |= {each.asname or each.name: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            path_by_name |= {each.name: f"{node.module}.{each.name}" for each in node.names}
    used = {
        ".".join([path_by_name.get(first, first), *rest])
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
        for first, *rest in [ast.unparse(node).split(".")]
    }
    things = {id(thing) for path, thing in exported().items() if path in used}

    assert [path for path, thing in exported().items() if id(thing) not in things] == []


# --- annotations ---------------------------------------------------------------------------------


def mentioned(annotation: object) -> Iterator[type]:
    """Yield the classes in an annotation."""
    if inspect.isclass(annotation) and not isinstance(annotation, types.GenericAlias):
        yield annotation
    for part in (typing.get_origin(annotation), *typing.get_args(annotation)):
        for each in part if isinstance(part, list) else [part]:
            if each is not None:
                yield from mentioned(each)


def hints(thing: typing.Any) -> dict[str, typing.Any]:
    """Return the annotations of a class or function, without those of optional packages."""
    names = {"pa": _Anything(), **dict.fromkeys(("DataFrame", "SparkSession", "Value"), object)}
    module = sys.modules[getattr(thing, "__wrapped__", thing).__module__]
    return typing.get_type_hints(thing, {**names, **vars(module)}, include_extras=False)


class _Anything:
    def __getattr__(self, name: str) -> type:
        return object


def signatures(path: str) -> Iterator[tuple[str, object]]:
    """Yield each parameter, result and field of an exported thing, with its annotation."""
    thing = exported()[path]
    if isinstance(thing, types.FunctionType):
        yield from ((f"{path}({name})", each) for name, each in hints(thing).items())
    if not inspect.isclass(thing) or not is_ours(thing):
        return
    if dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            yield f"{path}.{field.name}", hints(thing)[field.name]
    for name in dir(thing):
        member = inspect.getattr_static(thing, name)
        member = getattr(member, "fget", None) or getattr(member, "__func__", member)
        is_used = not name.startswith("_") or (
            name == "__init__" and path not in NOT_BUILT_BY_USERS and name in vars(thing)
        )
        if is_used and isinstance(member, types.FunctionType) and is_ours(member):
            for parameter, each in hints(member).items():
                if not parameter.startswith("_"):
                    yield f"{path}.{name}({parameter})", each


def test_signatures_mention_only_what_users_can_import():
    """Whoever implements a port, or passes a value on, can name its type.

    Any object that fits is a value of a ``Protocol``, so nobody has to name one.
    """
    public = set(map(id, exported().values()))
    private = {
        f"{where}: {cls.__module__}.{cls.__qualname__}"
        for path in exported()
        for where, annotation in signatures(path)
        for cls in mentioned(annotation)
        if is_ours(cls) and id(cls) not in public and not getattr(cls, "_is_protocol", False)
    }

    assert private == set()


# --- stored names --------------------------------------------------------------------------------


def test_a_placement_is_stored_by_its_public_name():
    """Members compare these words, and show them; a placement of a user's has its module."""
    placements = [Even(), Ring(), Ordinal(), Weighted(), Published(ByLoad())]

    assert [placement.name.partition(":")[0] for placement in placements] == [
        *("Even", "Ring", "Ordinal", "Weighted", "Published")
    ]
    assert all(not has_private_part(placement.name) for placement in placements)


def values() -> Iterator[object]:
    """Yield every class and function, and an object of each class that can be built of nothing."""
    for thing in exported().values():
        if is_ours(thing):
            yield thing
        if dataclasses.is_dataclass(thing) and inspect.isclass(thing):
            with suppress(TypeError, ConfigurationError):  # It needs arguments, or is not pickled.
                value = thing()
                pickle.dumps(value)
                yield value
        if inspect.isclass(thing) and issubclass(thing, EventProcError):
            with suppress(TypeError, ValueError):
                yield thing("why")


def test_pickles_carry_public_names_only():
    """Spark sends these between machines; a pickle may be older than the code that reads it."""
    private = [
        (value, text)
        for value in values()
        for _, text, _ in pickletools.genops(pickle.dumps(value))
        if isinstance(text, str) and text.startswith(PACKAGES) and has_private_part(text)
    ]

    assert private == []


def test_what_is_pickled_is_read_again():
    """A class or function is the same object, and a value is equal; an error has its text."""
    for value in values():
        read = pickle.loads(pickle.dumps(value))
        if inspect.isclass(value) or inspect.isroutine(value):
            assert read is value
        elif isinstance(value, Exception):
            assert (type(read), str(read)) == (type(value), str(value))
        else:
            assert read == value


@pytest.mark.parametrize(
    "module", ["eventproc._delivery.partition_pump", "eventproc._group.pumps.new"]
)
def test_a_dead_letter_names_no_private_module(module):
    """Error classes may move; the stored word stays the same."""
    moved = type("HiddenError", (Exception,), {"__module__": module})

    assert public_name(moved) == "eventproc.HiddenError"
    assert describe_error(moved("why"))[0] == "eventproc.HiddenError"


def test_every_package_is_typed(root):
    """Each package has a ``py.typed`` file, without which type checkers ignore its annotations."""
    for package in PACKAGES:
        marker = root / package / "py.typed"

        assert marker.exists()


def test_the_package_has_the_version_of_its_distribution():
    """``eventproc.__version__`` is the version that was installed."""
    assert eventproc.__version__ == version("eventproc")


def test_the_page_on_testing_names_what_the_harness_has(root):
    """Each name in its tables of methods is one of ``HandlerTestHarness``."""
    page = (root / "docs" / "testing.md").read_text("utf-8")
    methods = re.search(r"^\| what happens \|.*?\n\n", page, re.MULTILINE | re.DOTALL)
    results = re.search(r"^\| to inspect \|.*?\n\n", page, re.MULTILINE | re.DOTALL)
    assert methods is not None
    assert results is not None
    called = re.findall(r"`(?:with harness\.)?([a-z_]+)\(", methods[0] + results[0])
    read = re.findall(r"`([a-z_]+)`", " ".join(re.findall(r"^\|[^|]*", results[0], re.MULTILINE)))

    assert len(called) > 15
    assert [name for name in called + read if not hasattr(HandlerTestHarness, name)] == []
