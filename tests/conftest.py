"""What all tests share: profiles of hypothesis, hostile variants of valid documents, and what
the marker ``torch`` means."""

import copy
import json
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

settings.register_profile(
    "fuzz",  # of `make fuzz`
    max_examples=2000,
    deadline=None,
    # Files and servers are made for every example; slow generation is the point here.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def pytest_runtest_setup(item):
    if item.get_closest_marker("torch") and find_spec("torch") is None:
        pytest.skip("torch is not installed (the cpu extra)")


ODD_TEXTS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "",
            " ",
            "\0",
            "\ud800",
            "../../etc/passwd",
            "/proc/self/mem",
            "a" * 5000,
            "9" * 400,
            "N ** 9999999",
            "((((((((((((((((((((N))))))))))))))))))))",
            "__import__('os')",
            "NaN",
            "1e999",
            "main.cpp::run::run",
            "\u202egnp.cpp",
            "torch.py",
        ]
    ),
)
ODD_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from([2**31, 2**63, -1, 10**400, 0]),
        st.floats(allow_nan=True, allow_infinity=True),
        ODD_TEXTS,
    ),
    lambda children: st.one_of(
        st.lists(children, max_size=4), st.dictionaries(ODD_TEXTS, children, max_size=4)
    ),
    max_leaves=8,
)


def _places(value, path=()):
    """Paths to everything inside of a JSON value, itself included."""
    yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield from _places(item, (*path, key))


def _at(value, path):
    for key in path:
        value = value[key]
    return value


@st.composite
def _spoiled(draw, original):
    """The document with one to three things in it replaced, dropped, added or repeated."""
    value = copy.deepcopy(original)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(_places(value))))
        if not path:
            return draw(ODD_VALUES)
        *parent, key = path
        holder = _at(value, parent)
        match draw(st.sampled_from(["replace", "drop", "add", "move"])):
            case "replace":
                holder[key] = draw(ODD_VALUES)
            case "drop":
                del holder[key]
            case "add" if isinstance(holder, dict):
                holder[draw(ODD_TEXTS)] = draw(ODD_VALUES)
            case "add":
                holder.append(copy.deepcopy(holder[key]))
            case "move":
                holder[key] = copy.deepcopy(_at(value, draw(st.sampled_from(list(_places(value))))))
    return value


@st.composite
def _bytes_of(draw, values):
    """The document as bytes, sometimes broken as text too."""
    data = bytearray(json.dumps(draw(values)).encode("utf-8", "surrogatepass"))
    if draw(st.integers(0, 3)) == 0 and data:
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=4))
    return bytes(data)


@pytest.fixture(scope="session")
def spoiled():
    """Strategy: JSON values near a valid one."""
    return _spoiled


@pytest.fixture(scope="session")
def spoiled_bytes():
    """Strategy: bytes of such."""
    return lambda original: _bytes_of(_spoiled(original))
