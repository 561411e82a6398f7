"""A real systemd as PID 1 of throw-away namespaces over an overlay of this machine: nothing outside it
changes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import needs
import pytest

DEPLOY = needs.REPOSITORY / "deploy"

# Where the machine under test finds the repository and the interpreter, wherever they lie outside: the unit
# hides /home, /root and /tmp from the service.
SOURCE = Path("/opt/andon-source")
PYTHON_PREFIX = Path("/opt/andon-python")

BOOT_S = 30.0

# The mounts are made inside the new mount namespace, so they vanish with it. $1 is an empty folder of the
# host.
BOOT = """
set -e
mount -t tmpfs -o size=512m tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cd "$1/root"
mkdir -p .$SOURCE .$PYTHON_PREFIX
mount --bind "$REPOSITORY" .$SOURCE
mount --bind "$BASE_PREFIX" .$PYTHON_PREFIX
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys 2>/dev/null || mount --rbind /sys sys
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs tmpfs dev
for device in null zero full random urandom tty; do
  touch dev/$device; mount --bind /dev/$device dev/$device
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ip link set lo up
mount -t cgroup2 cgroup2 sys/fs/cgroup 2>/dev/null || mount -t tmpfs tmpfs sys/fs/cgroup
# Only what the test starts: no unit of the host, and no way to its kernel's settings.
rm -rf etc/systemd/system lib/systemd/system/*.wants lib/systemd/system/*.requires
rm -f etc/fstab
mkdir -p etc/systemd/system
mount --bind proc/sys proc/sys
mount -o remount,ro,bind proc/sys
printf '[Unit]\\nDescription=a machine for one test\\nWants=systemd-journald.service\\n' \
  > etc/systemd/system/site.target
mkdir .old; pivot_root . .old; cd /; umount -l /.old; rmdir /.old
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=andon-test /lib/systemd/systemd \
  --system --unit=site.target --log-target=journal-or-kmsg --show-status=no
"""


@dataclass(slots=True)
class Machine:
    """A booted systemd. `run` runs a command on it as root; `log` is its console: systemd's and the services'
    output.
    """

    process: subprocess.Popen[bytes]
    pid: int

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["nsenter", "-t", str(self.pid), "-a", *command], capture_output=True, text=True, timeout=60
        )
        if check and done.returncode:
            raise AssertionError(f"{' '.join(command)}: {done.stderr}{done.stdout}\n{self.log()[-4000:]}")
        return done

    def show(self, unit: str, name: str) -> str:
        """One property of a unit, as `systemctl show` tells it."""
        return self.run("systemctl", "show", "--value", "-p", name, unit).stdout.strip()

    def log(self) -> str:
        """The journal: what systemd and the services said."""
        return self.run("journalctl", "--no-pager", "--output=cat", check=False).stdout

    def write(self, path: str, text: str) -> None:
        """Write a file on the machine."""
        subprocess.run(
            ["nsenter", "-t", str(self.pid), "-a", "sh", "-c", 'mkdir -p "${1%/*}" && cat > "$1"', "-", path],
            input=text,
            text=True,
            check=True,
            timeout=30,
        )

    def until(self, unit: str, name: str, wanted: str, within_s: float = 30.0) -> None:
        """Wait for a property of a unit; fails with the journal's end when it does not come."""
        deadline = time.monotonic() + within_s
        while (found := self.show(unit, name)) != wanted:
            if time.monotonic() > deadline:
                pytest.fail(f"{unit}: {name} is {found!r}, not {wanted!r}\n{self.log()[-4000:]}")
            time.sleep(0.1)

    def install(self, command: str, settings: str = "") -> None:
        """Install andon's unit, user and folders from deploy/, with a drop-in that replaces the command."""
        for folder in ("sysusers.d", "tmpfiles.d"):
            self.write(f"/etc/{folder}/andon.conf", (DEPLOY / folder / "andon.conf").read_text())
        self.run("systemd-sysusers", "/etc/sysusers.d/andon.conf")
        self.run("systemd-tmpfiles", "--create", "/etc/tmpfiles.d/andon.conf")
        self.write("/etc/systemd/system/andon.service", (DEPLOY / "andon.service").read_text())
        self.write(
            "/etc/systemd/system/andon.service.d/test.conf",
            f"[Service]\nExecStart=\nExecStart={command}\n{environment()}{settings}\n",
        )
        self.run("systemctl", "daemon-reload")


def environment() -> str:
    """The unit lines with which the machine's interpreter finds the repository and the virtual environment's
    packages.
    """
    packages = (
        SOURCE / Path(sys.prefix).relative_to(needs.REPOSITORY) / "lib" / python_name() / "site-packages"
    )
    # A Python outside /usr may have its shared library beside it, found by a path that is not there on the
    # machine.
    library = f"LD_LIBRARY_PATH={PYTHON_PREFIX}/lib"
    return f"Environment=PYTHONPATH={SOURCE}:{packages} PYTHONDONTWRITEBYTECODE=1 {library}\n"


def python_name() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def python() -> str:
    """The interpreter's path on the machine."""
    return str(PYTHON_PREFIX / "bin" / python_name())


@contextmanager
def booted(place: Path) -> Iterator[Machine]:
    """A booted machine; `place` is an empty folder for its console and overlay. Skips or fails as `needs`
    says.
    """
    for program in ("unshare", "nsenter", "ip", "systemctl"):
        needs.program(program)
    if os.geteuid() != 0:
        needs.missing("booting a systemd in namespaces needs root")
    if not Path(sys.prefix).is_relative_to(needs.REPOSITORY):
        pytest.skip("the virtual environment lies outside the repository")
    (place / "overlay").mkdir()
    console = place / "console"
    process = _boot(place / "overlay", console)
    try:
        yield Machine(process, _first_process(process, console))
    finally:
        process.send_signal(signal.SIGKILL)  # --kill-child takes PID 1 along, and with it everything inside
        process.wait()


def _boot(overlay: Path, console: Path) -> subprocess.Popen[bytes]:
    unshare = ["unshare", "--mount", "--pid", "--fork", "--net", "--ipc", "--uts", "--cgroup", "--kill-child"]
    variables = {
        "SOURCE": str(SOURCE),
        "PYTHON_PREFIX": str(PYTHON_PREFIX),
        "REPOSITORY": str(needs.REPOSITORY),
        "BASE_PREFIX": sys.base_prefix,
    }
    with console.open("wb") as output:
        return subprocess.Popen(
            [*unshare, "--propagation", "private", "bash", "-c", BOOT, "boot", str(overlay)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **variables},
        )


def _first_process(unshare: subprocess.Popen[bytes], console: Path) -> int:
    """The pid, seen from outside, of the machine's PID 1, once its systemd is up."""
    children = Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children")
    deadline = time.monotonic() + BOOT_S
    while time.monotonic() < deadline and unshare.poll() is None:
        pids = children.read_text().split()
        if pids and _is_up(pids[0]):
            return int(pids[0])
        time.sleep(0.2)
    needs.missing(
        f"no systemd can be booted in namespaces here: {console.read_text(errors='replace')[-2000:]}"
    )


def _is_up(pid: str) -> bool:
    asked = subprocess.run(
        ["nsenter", "-t", pid, "-a", "systemctl", "is-system-running"],
        capture_output=True,
        text=True,
        timeout=30,
    )
    return asked.stdout.strip() in {"running", "degraded"}
