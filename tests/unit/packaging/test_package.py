"""The package: what is in it, what it needs, and that a wheel built from the repository carries all of it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOTS = ("schemas", "connectors", "pipeline", "migrations")

# The top level is fixed: a newcomer finds his way by it. The lock files are named where they are used.
TOP_LEVEL = {
    *ROOTS, "deploy", "tests", ".ci", "pyproject.toml", "requirements.lock", "Makefile",
    "README.md", "LICENSE", "CHANGELOG.md", ".gitignore",
}  # fmt: skip

PIN = re.compile(r"(?P<name>[a-z0-9._-]+)==(?P<version>[^ ;]+) \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


@pytest.fixture(scope="session")
def tracked(repository: Path) -> list[PurePosixPath]:
    """Every file that is committed or about to be. Skips outside a clone."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=repository, capture_output=True, timeout=30)
    if listed.returncode:
        pytest.skip("not a git clone")
    return [PurePosixPath(name) for name in listed.stdout.decode().split("\0") if name]


@pytest.fixture(scope="module")
def project(repository: Path) -> dict[str, Any]:
    return tomllib.loads((repository / "pyproject.toml").read_text())


def pins(path: Path) -> dict[str, Version]:
    """A lock file's pins, after a look at every line of it: pins with hashes, and nothing else."""
    found: dict[str, Version] = {}
    hashes = 0
    for line in path.read_text().splitlines():
        if pin := PIN.fullmatch(line):
            assert not found or hashes, f"the package before {line} has no hash"
            found[canonicalize_name(pin["name"])] = Version(pin["version"])
            hashes = 0
        else:
            assert HASH.fullmatch(line), f"{path.name}: {line!r} is neither a pin nor a hash"
            hashes += 1
    assert hashes
    return found


@pytest.fixture(scope="module")
def run_lock(repository: Path) -> dict[str, Version]:
    return pins(repository / "requirements.lock")


@pytest.fixture(scope="module")
def test_lock(repository: Path) -> dict[str, Version]:
    return pins(repository / "tests" / "requirements.lock")


def test_the_top_level_is_what_the_design_says(tracked: list[PurePosixPath]) -> None:
    assert {path.parts[0] for path in tracked} <= TOP_LEVEL


def test_every_package_is_listed(tracked: list[PurePosixPath], project: dict[str, Any]) -> None:
    python = [path for path in tracked if path.parts[0] in ROOTS and path.suffix == ".py"]
    folders = {".".join(path.parts[:-1]) for path in python}
    assert set(project["tool"]["setuptools"]["packages"]) == folders
    initial = {".".join(path.parts[:-1]) for path in python if path.name == "__init__.py"}
    assert initial == folders, "a package without __init__.py"


def test_a_wheel_carries_every_file(
    repository: Path, tracked: list[PurePosixPath], project: dict[str, Any], tmp_path: Path
) -> None:
    source = tmp_path / "source"
    for path in tracked:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(repository / path, source / path)
    # Without the network: setuptools is a test dependency.
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", str(tmp_path), str(source)], check=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        (entries,) = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
        assert "License-Expression: Apache-2.0" in archive.read(metadata).decode()
        assert "andon = pipeline.cli:main" in archive.read(entries).decode()
    assert any(name.endswith("/LICENSE") for name in names)
    carried = {name for name in names if ".dist-info/" not in name}
    assert carried == {str(path) for path in tracked if path.parts[0] in ROOTS}


def test_both_locks_hold_nothing_but_pins_with_hashes_and_agree(
    run_lock: dict[str, Version], test_lock: dict[str, Version]
) -> None:
    assert run_lock.items() <= test_lock.items()


def test_the_locks_satisfy_what_is_declared(
    project: dict[str, Any], run_lock: dict[str, Version], test_lock: dict[str, Version]
) -> None:
    declared = project["project"]
    for lock, wanted in (
        (run_lock, declared["dependencies"]),
        (test_lock, declared["optional-dependencies"]["dev"]),
    ):
        for requirement in map(Requirement, wanted):
            name = canonicalize_name(requirement.name)
            assert name in lock, f"{name} is not locked: make lock"
            assert requirement.specifier.contains(lock[name]), f"{requirement} is locked at {lock[name]}"


def test_every_dependency_has_a_lower_bound_and_no_upper(project: dict[str, Any]) -> None:
    """An upper bound of a library keeps its security fixes out; the lock file is what keeps surprises out."""
    declared = project["project"]
    for requirement in map(
        Requirement, [*declared["dependencies"], *declared["optional-dependencies"]["dev"]]
    ):
        assert [spec.operator for spec in requirement.specifier] == [">="], requirement
    assert declared["requires-python"] == ">=3.11"


def test_the_build_needs_what_the_tests_install(project: dict[str, Any]) -> None:
    assert set(project["build-system"]["requires"]) <= set(project["project"]["optional-dependencies"]["dev"])


def test_the_licence_is_the_whole_apache_licence(repository: Path) -> None:
    text = (repository / "LICENSE").read_text()
    assert "Version 2.0, January 2004" in text
    assert "9. Accepting Warranty or Additional Liability." in text


def test_the_changelog_is_kept(repository: Path, project: dict[str, Any]) -> None:
    text = (repository / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## \[(.+?)\]", text, flags=re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", heading) for heading in headings[1:])
    assert set(re.findall(r"^### (\w+)", text, flags=re.MULTILINE)) <= {
        "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security",
    }  # fmt: skip
