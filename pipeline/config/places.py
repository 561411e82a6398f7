"""From pydantic's idea of where an error is to the place in the file.

pydantic puts the names of union members into its locations (`sources.line7.mqtt.topics`). Walking the models'
annotations along tells them from keys, whatever the keys are called.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from pipeline.config.document import Path


@dataclass(frozen=True, slots=True)
class Fork:
    """A plain union passed on the way: where, what it allows, and the member this error is about."""

    path: Path
    members: tuple[Any, ...]
    member: Any


@dataclass(frozen=True, slots=True)
class Place:
    """The path in the file, what is expected there, the model around it, and whether the key is meant."""

    path: Path
    expected: Any
    model: type[BaseModel] | None = None
    at_key: bool = False
    fork: Fork | None = None


def locate(location: tuple[str | int, ...], root: type[BaseModel]) -> Place:
    """The place in the file of a pydantic error location."""
    path: Path = ()
    expected, model, fork = bare(root), None, None
    for part in location:
        members = members_of(expected)
        if part == "[key]":
            return Place(path, str, None, True, fork)
        if members:
            member = _member(str(part), members)
            fork = fork if tagged(members) else Fork(path, members, member)
            expected = bare(member)
        else:
            model = expected if is_model(expected) else None
            path, expected = (*path, part), _inside(expected, part)
    return Place(path, expected, model, False, fork)


def bare(annotation: Any) -> Any:
    """Without Annotated, and without None where one other member remains."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        members = [member for member in get_args(annotation) if member is not type(None)]
        if len(members) == 1:
            return bare(members[0])
    return annotation


def members_of(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, less None; empty for anything else."""
    if get_origin(annotation) not in (Union, UnionType):
        return ()
    return tuple(bare(member) for member in get_args(annotation) if member is not type(None))


def is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def tagged(members: tuple[Any, ...]) -> bool:
    """Whether a union is told apart by its members' `type`."""
    return bool(members) and all(is_model(member) and tag_of(member) is not None for member in members)


def tag_of(model: type[BaseModel]) -> str | None:
    """The word that `type` must be for this model."""
    field = model.model_fields.get("type")
    if field is None or get_origin(field.annotation) is not Literal:
        return None
    return str(get_args(field.annotation)[0])


def kind_of(annotation: Any) -> type:
    """The kind of plain data that fits: dict, list, str, bool, float (any number) or object (anything)."""
    annotation = bare(annotation)
    if is_model(annotation) or get_origin(annotation) is dict:
        return dict
    if get_origin(annotation) is list:
        return list
    if isinstance(annotation, type):
        for kind, fits in ((bool, bool), (float, (int, float)), (str, str)):
            if issubclass(annotation, fits):
                return kind
    return object


def fits(annotation: Any, value: Any) -> bool:
    """Whether `value` is of the kind that `annotation` wants, whatever is wrong inside it."""
    kind = kind_of(annotation)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kind)


def _member(label: str, members: tuple[Any, ...]) -> Any:
    """The union member that pydantic calls `label`: a tag, or `list[str]`, `Secret`, `constrained-str`."""
    for member in members:
        if is_model(member):
            if label == tag_of(member) or member.__name__ in label:
                return member
        elif kind_of(member).__name__ in label:
            return member
    return members[0]


def _inside(annotation: Any, part: str | int) -> Any:
    """What is expected under the key or index `part`."""
    if is_model(annotation):
        field = annotation.model_fields.get(part)
        return bare(field.annotation) if field else object
    arguments = get_args(annotation)
    return bare(arguments[-1]) if get_origin(annotation) in (dict, list) else object
