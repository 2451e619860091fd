"""Hosts: many networks on many devices of this machine, without a server."""
from __future__ import annotations

import concurrent.futures
import dataclasses
import os
from typing import Any, Mapping, Optional, Sequence, Union

from . import _arrays, _core
from ._errors import Fault, UsageError
from ._function import TensorSpec, _dtype


@dataclasses.dataclass(frozen=True)
class Network:
    """A version of a network on a host. `replicas` has the devices of its parts, for each copy of it."""
    name: str
    version: str
    current: bool
    ready: bool
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    replicas: tuple[tuple[str, ...], ...]


def _specs(rows: Sequence[tuple[Any, ...]]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(name, _dtype(kind), shape, text, has_default=preset, _kind=kind)
                 for name, kind, text, shape, preset in rows)


class Host:
    """Networks on devices; requests from any thread, each answered once.

        with aglow.Host("cpu:0-3 cpu:4-7") as host:
            host.add("digits", "digits.onnx", replicas=2)
            scores = host.run("digits", {"image": image})["scores"]
            future = host.submit("digits", {"image": image}, timeout=0.1)

    docs/runtime.md says how devices are written; without any there is one of all cores.
    """

    def __init__(self, devices: str = "", queue: int = 16384):
        self._core = _core.open_host(devices, queue)
        self._specs: dict[tuple[str, str], Network] = {}

    def add(self, name: str, model: Union[str, "os.PathLike[str]"], *, version: str = "1", make_current: bool = True,
            replicas: int = 1, most_replicas: int = 0, queue: int = 1024, batch_rows: int = 1, batch_delay: float = 0.0,
            batch_sizes: Sequence[int] = (), devices: Sequence[str] = (), parts: int = 0, criterion: str = "memory",
            plan: Optional[Mapping[str, str]] = None, dims: Optional[Mapping[str, int]] = None,
            prepare: Optional[Mapping[str, Sequence[int]]] = None, cache: str = "off") -> None:
        """Compiles and loads a model file; it is ready when this returns. Where not all fits, nothing stays.

        Requests are joined row by row up to `batch_rows`; one waits for others at most `batch_delay` seconds, and rows
        are filled up to the next of `batch_sizes`. With `parts`, a `plan` of nodes and devices, or where no device has
        room, it is cut. While requests wait there are more copies, up to `most_replicas`, on devices without one.
        """
        self._core.add(name, os.fspath(model), version, make_current, replicas, most_replicas, queue, batch_rows,
                       round(batch_delay * 1e6), sorted(batch_sizes), list(devices), parts, criterion,
                       dict(plan or {}), dict(dims or {}), {k: list(v) for k, v in (prepare or {}).items()}, cache)
        self._specs.clear()

    def remove(self, name: str, version: str = "") -> None:
        """Takes no more requests for it; those accepted are still answered. Without a version all of them."""
        self._core.remove(name, version)
        self._specs.clear()

    def set_current(self, name: str, version: str) -> None:
        """The version of requests that name none, from now on."""
        self._core.set_current(name, version)
        self._specs.clear()

    def submit(self, network: str, inputs: Mapping[str, Any], *, version: str = "", priority: int = 0,
               timeout: Optional[float] = None) -> concurrent.futures.Future[dict[str, Any]]:
        """The outputs by name, in time. Raises where the host refuses; cancelling the future takes the request back."""
        spec = self._spec(network, version)
        given = {name: _arrays.to_pair(value, self._kind(spec, name)) for name, value in inputs.items()}
        future: concurrent.futures.Future[dict[str, Any]] = concurrent.futures.Future()

        def reply(fault: Optional[BaseException], values: Optional[list[Any]]) -> None:
            if not future.set_running_or_notify_cancel():
                return
            if fault is not None:
                future.set_exception(fault)
            else:
                assert values is not None
                future.set_result({port.name: _result(value) for port, value in zip(spec.outputs, values)})

        number = self._core.submit(network, version, given, priority, timeout or 0.0, reply)
        future.add_done_callback(lambda done: self._core.cancel(number) if done.cancelled() else None)
        return future

    def run(self, network: str, inputs: Mapping[str, Any], *, version: str = "", priority: int = 0,
            timeout: Optional[float] = None) -> dict[str, Any]:
        """The outputs by name."""
        return self.submit(network, inputs, version=version, priority=priority, timeout=timeout).result()

    def networks(self) -> list[Network]:
        """All versions of all networks that are there."""
        return [Network(name, version, current, ready, _specs(inputs), _specs(outputs),
                        tuple(tuple(devices) for devices in replicas))
                for name, version, current, ready, inputs, outputs, replicas in self._core.networks()]

    def statistics(self) -> dict[str, Any]:
        """Counts, queues and latencies of every network; memory, health and use of every device."""
        return self._core.statistics()

    def drain(self) -> None:
        """Refuses what comes from now on, and waits until all that was accepted is answered."""
        self._core.drain()

    def close(self) -> None:
        """Cancels what waits, and waits for what runs."""
        self._core.close()

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _spec(self, network: str, version: str) -> Network:
        found = self._specs.get((network, version))
        if found is None:
            for one in self.networks():
                self._specs[one.name, one.version] = one
                if one.current:
                    self._specs[one.name, ""] = one
            found = self._specs.get((network, version))
        if found is None:
            names = ", ".join(sorted({one.name for one in self.networks()})) or "none"
            raise UsageError([Fault("E105", 1, f"there is no network '{network}' {version}".rstrip(), "",
                                    f"there are {names}")])
        return found

    @staticmethod
    def _kind(network: Network, name: str) -> str:
        for port in network.inputs:
            if port.name == name:
                return port._kind or "any"
        takes = ", ".join(port.name for port in network.inputs)
        raise UsageError([Fault("E102", 1, f"network '{network.name}' has no input '{name}'", "", f"it takes {takes}")])


def _result(value: Any) -> Any:
    if isinstance(value, list):
        return [_result(item) for item in value]
    return None if value is None else _arrays.from_pair(*value)
