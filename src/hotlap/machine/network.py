"""Bytes that went through the network interfaces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hotlap.machine.readfile import ROOT, read


@dataclass(frozen=True)
class Traffic:
    """Cumulative bytes of one interface, or of several summed."""

    received_bytes: int
    sent_bytes: int


def parse_net_dev(text: str) -> dict[str, Traffic]:
    """Parse ``/proc/net/dev`` by interface, without the loopback."""
    found: dict[str, Traffic] = {}
    for line in text.splitlines():
        name, separator, rest = line.rpartition(":")
        words = rest.split()
        if not separator or len(words) < 9 or name.strip() == "lo":
            continue
        found[name.strip()] = Traffic(int(words[0]), int(words[8]))
    return found


def read_interfaces(root: Path = ROOT) -> dict[str, Traffic] | None:
    """Read the traffic by interface; None without ``/proc/net/dev``.

    RDMA traffic (InfiniBand verbs, RoCE) does not pass here, so it is not in these counters.
    """
    text = read(root / "proc/net/dev")
    return None if text is None else parse_net_dev(text)


def read_traffic(root: Path = ROOT) -> Traffic | None:
    """Return the traffic of the machine, each byte once; None without ``/proc/net/dev``.

    Bridges, bonds and container pairs repeat what a real interface carries. So interfaces with a
    device behind them are summed; in a container, which sees none with one, all are.
    """
    interfaces = read_interfaces(root)
    if interfaces is None:
        return None
    real = [
        traffic
        for name, traffic in interfaces.items()
        if (root / "sys/class/net" / name / "device").exists()
    ]
    counted = real or list(interfaces.values())
    return Traffic(
        sum(traffic.received_bytes for traffic in counted),
        sum(traffic.sent_bytes for traffic in counted),
    )
