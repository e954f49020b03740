"""The tree of exceptions, and the drawing of it."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

from tidemark import errors
from tidemark.errors import CorruptMessageError, OffsetTooSmallError, StoreError


def children_of(kind: type[StoreError]) -> list[type[StoreError]]:
    """Return the direct subclasses, without those that a program defines."""
    return [child for child in kind.__subclasses__() if child.__module__ == errors.__name__]


def leaves_of(kind: type[StoreError]) -> set[type[StoreError]]:
    below = children_of(kind)
    return set().union(*map(leaves_of, below)) if below else {kind}


def test_the_documented_error_tree_matches_the_classes() -> None:
    """Each branch of the docstring's drawing lists exactly the classes that derive from it."""
    drawing = (errors.__doc__ or "").partition("A leaf carries")[0]
    drawn: dict[str, set[str]] = {}
    branch = ""
    for line in drawing.splitlines():
        names = re.findall(r"\w+Error\b", line)
        if re.match(r" {4}[├└]── \w+Error", line):
            branch, names = names[0], names[1:]
            drawn[branch] = set()
        if branch:
            drawn[branch].update(names)
    tree = {kind.__name__: {leaf.__name__ for leaf in leaves_of(kind)} for kind in children_of(StoreError)}
    assert drawn == tree


def test_every_error_class_is_in_the_tree() -> None:
    """Every exception of the module is in the tree and has a docstring."""
    classes = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)}
    assert classes == {StoreError, *children_of(StoreError), *leaves_of(StoreError)}
    assert all(kind.__doc__ for kind in classes)


def test_error_facts_are_attributes() -> None:
    """Keyword arguments become attributes; other names raise AttributeError."""
    error = OffsetTooSmallError("gone", min_offset=5, max_offset=9)
    assert (error.min_offset, error.max_offset, error.message, str(error)) == (5, 9, "gone", "gone")
    with pytest.raises(AttributeError):
        _ = error.path


def test_error_facts_may_have_any_name() -> None:
    """A fact may have the name of a parameter."""
    error = CorruptMessageError("torn", reason="LENGTH", message="other", self=1)
    assert error.facts == {"reason": "LENGTH", "message": "other", "self": 1}
    assert error.message == "torn"


@pytest.mark.parametrize("again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_error_facts_survive_a_copy(again: type) -> None:
    """Errors cross process borders with their facts."""
    error = again(OffsetTooSmallError("gone", min_offset=5))
    assert (type(error), error.message, error.min_offset) == (OffsetTooSmallError, "gone", 5)
