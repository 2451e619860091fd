"""Models behind Ray Serve: copies on many hosts, as many as the load asks for, or a model's parts on one each.

    from ray import serve
    import aglow.ray

    serve.run(aglow.ray.models({"digits": "digits.onnx"}, replicas=2))
    serve.run(aglow.ray.parts("digits-cut.graph"), name="cut", route_prefix="/cut")    # of aglow partition -o

An application answers the Open Inference Protocol over HTTP (`/v2/models/NAME/infer` and what belongs to it), and other
deployments through its handle: `await aglow.ray.infer(handle, "digits", {"image": image})`, which asks another copy where
the one that had the request dies.
"""
from __future__ import annotations

import asyncio
import json
import os
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np
import ray.exceptions
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

import aglow

__all__ = ["Models", "Part", "Parts", "infer", "models", "parts"]

_DATATYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_), "FP16": np.dtype("f2"), "FP32": np.dtype("f4"), "FP64": np.dtype("f8"),
    **{f"INT{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)}}
_NAMES = {kind: name for name, kind in _DATATYPES.items()}
_JSON_SIZE = "inference-header-content-length"
Inputs = Mapping[str, Any]
Path = Union[str, "os.PathLike[str]"]
Ports = tuple[Sequence[aglow.TensorSpec], Sequence[aglow.TensorSpec]]  # inputs and outputs


def _decode(body: bytes, json_size: Optional[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays by name, and the request without them. ValueError for what breaks the protocol."""
    at = len(body) if json_size is None else int(json_size)
    request = json.loads(body[:at])
    arrays = {}
    for tensor in request.pop("inputs"):
        kind = _DATATYPES.get(tensor["datatype"])
        if kind is None:
            raise ValueError(f"there is no datatype {tensor['datatype']!r}")
        size = tensor.get("parameters", {}).get("binary_data_size")
        if size is None:
            array = np.array(tensor["data"], kind)
        else:
            array, at = np.frombuffer(body[at:at + size], kind), at + size
        arrays[tensor["name"]] = array.reshape(tensor["shape"])
    return arrays, request


def _encode(model: str, outputs: Inputs, request: Mapping[str, Any]) -> Response:
    wanted = {out["name"]: out.get("parameters", {}) for out in request.get("outputs") or ()}
    plain = bool(request.get("parameters", {}).get("binary_data_output", False))
    tensors, blobs = [], []
    for name in wanted or outputs:
        array = np.ascontiguousarray(outputs[name])
        tensor = {"name": name, "datatype": _NAMES[array.dtype], "shape": list(np.shape(outputs[name]))}
        if wanted.get(name, {}).get("binary_data", plain):
            blobs.append(array.tobytes())
            tensor["parameters"] = {"binary_data_size": len(blobs[-1])}
        else:
            tensor["data"] = array.ravel().tolist()
        tensors.append(tensor)
    answer = {"model_name": model, "model_version": "1", "outputs": tensors}
    if "id" in request:
        answer["id"] = request["id"]
    if not blobs:
        return JSONResponse(answer)
    head = json.dumps(answer).encode()
    return Response(head + b"".join(blobs), media_type="application/octet-stream", headers={_JSON_SIZE: str(len(head))})


class _Protocol:
    """The protocol over what a deployment has: `specs`, and `infer`."""

    def specs(self) -> Mapping[str, Ports]:
        """The inputs and outputs of each model."""
        raise NotImplementedError

    async def infer(self, model: str, inputs: Inputs) -> dict[str, Any]:
        raise NotImplementedError

    async def __call__(self, request: Request) -> Response:
        path = request.scope["path"][len(request.scope.get("root_path", "")):].strip("/").split("/")
        if path[:2] == ["v2", "health"]:
            return JSONResponse({})
        if path == ["v2"]:
            return JSONResponse({"name": "aglow", "version": aglow.__version__, "extensions": ["binary_tensor_data"]})
        if len(path) < 3 or path[:2] != ["v2", "models"] or path[2] not in self.specs():
            return JSONResponse({"error": f"there is nothing at {request.scope['path']!r}"}, 404)
        name, what = path[2], path[3:]
        if what == ["ready"]:
            return JSONResponse({})
        if not what:
            return JSONResponse(self._metadata(name))
        if what != ["infer"]:
            return JSONResponse({"error": f"there is nothing at {request.scope['path']!r}"}, 404)
        try:
            inputs, rest = _decode(await request.body(), request.headers.get(_JSON_SIZE))
            return _encode(name, await self.infer(name, inputs), rest)
        except (aglow.UsageError, ValueError, KeyError, TypeError) as fault:
            return JSONResponse({"error": str(fault)}, 400)
        except aglow.ResourceError as fault:
            return JSONResponse({"error": str(fault)}, 503, headers={"retry-after": "1"})

    def _metadata(self, name: str) -> dict[str, Any]:
        inputs, outputs = ([{"name": spec.name, "datatype": _NAMES.get(np.dtype(spec.dtype), str(spec.dtype)),
                             "shape": [size if isinstance(size, int) else -1 for size in spec.shape or ()]}
                            for spec in specs] for specs in self.specs()[name])
        return {"name": name, "versions": ["1"], "platform": "aglow", "inputs": inputs, "outputs": outputs}


@serve.deployment
class Models(_Protocol):
    """A copy of some models. Runs go side by side; Ray bounds how many wait."""

    def __init__(self, files: Mapping[str, str], options: Mapping[str, Any]):
        self._models = {name: aglow.compile(file, **options) for name, file in files.items()}

    def specs(self) -> Mapping[str, Ports]:
        return {name: (model.inputs, model.outputs) for name, model in self._models.items()}

    async def infer(self, model: str, inputs: Inputs) -> dict[str, Any]:
        # The interpreter's lock is free while a model runs.
        return await asyncio.to_thread(self._models[model].run, dict(inputs))


@serve.deployment
class Part:
    """One function of a module that was cut: it takes and gives values by the names that parts share."""

    def __init__(self, file: str, function: str, options: Mapping[str, Any]):
        self._function = aglow.compile(file, **options)[function]

    async def run(self, values: Inputs) -> dict[str, Any]:
        return await asyncio.to_thread(self._function.run, dict(values))


@serve.deployment
class Parts(_Protocol):
    """A model whose parts are deployments of their own: a part runs as soon as what it reads is there."""

    def __init__(self, name: str, ports: Mapping[str, Ports], **handles: Any):
        self._name, self._ports, self._handles = name, dict(ports), handles
        made = {port.name for _, outputs in ports.values() for port in outputs}
        read = {port.name for inputs, _ in ports.values() for port in inputs}
        self._inputs = [port for inputs, _ in ports.values() for port in inputs if port.name not in made]
        self._outputs = [port for _, outputs in ports.values() for port in outputs if port.name not in read]

    def specs(self) -> Mapping[str, Ports]:
        return {self._name: (self._inputs, self._outputs)}

    async def infer(self, model: str, inputs: Inputs) -> dict[str, Any]:
        del model
        loop = asyncio.get_running_loop()
        values = {port.name: loop.create_future() for ports in self._ports.values() for port in (*ports[0], *ports[1])}
        for name in {port.name for port in self._inputs} - set(inputs):
            raise ValueError(f"input {name!r} is missing")
        for name, value in inputs.items():
            values[name].set_result(value)

        async def part(name: str) -> None:
            reads, gives = self._ports[name]
            given = {port.name: await values[port.name] for port in reads}
            made = await self._handles[name].run.remote(given)
            for port in gives:
                values[port.name].set_result(made[port.name])

        tasks = [asyncio.ensure_future(part(name)) for name in self._ports]
        try:
            await asyncio.gather(*tasks)
        finally:  # where one fails, others wait for what never comes
            for task in tasks:
                task.cancel()
        return {port.name: values[port.name].result() for port in self._outputs}


def _scaled(deployment: Any, replicas: int, autoscaling: Optional[Mapping[str, Any]], **more: Any) -> Any:
    count = {"autoscaling_config": dict(autoscaling)} if autoscaling else {"num_replicas": replicas}
    return deployment.options(**count, **more)


async def infer(handle: Any, model: str, inputs: Inputs, attempts: int = 5) -> dict[str, Any]:
    """The outputs by name. A run changes nothing, so what a copy had when it died is run again on another."""
    for attempt in range(1, attempts + 1):
        try:
            outputs: dict[str, Any] = await handle.infer.remote(model, inputs)
            return outputs
        except ray.exceptions.RayActorError:
            if attempt == attempts:
                raise
            await asyncio.sleep(0.1 * attempt)
    raise AssertionError("attempts are at least 1")


def models(files: Mapping[str, Path], *, replicas: int = 1, autoscaling: Optional[Mapping[str, Any]] = None,
           ongoing: int = 16, queued: int = 1024, actor: Optional[Mapping[str, Any]] = None,
           **options: Any) -> serve.Application:
    """An application of these models by name; every copy has all of them.

    `autoscaling` is Ray's (min_replicas, max_replicas, …) and goes before `replicas`. A copy has at most `ongoing`
    requests under way, and `queued` wait; more are refused. `actor` are Ray's options of actors (num_cpus, resources),
    `options` those of aglow.compile.
    """
    paths = {name: os.path.abspath(file) for name, file in files.items()}
    deployment = _scaled(Models, replicas, autoscaling, max_ongoing_requests=ongoing, max_queued_requests=queued,
                         ray_actor_options=dict(actor or {}))
    return deployment.bind(paths, options)


def parts(file: Path, *, name: Optional[str] = None, replicas: int = 1, ongoing: int = 16,
          actor: Optional[Mapping[str, Any]] = None, **options: Any) -> serve.Application:
    """An application of one model that `aglow partition -o FILE.graph` has cut: each part on actors of its own."""
    path = os.path.abspath(file)
    model = aglow.compile(path, **options)
    ports = {function: (model[function].inputs, model[function].outputs) for function in model.functions}
    handles = {function: _scaled(Part, replicas, None, name=f"part-{function}", max_ongoing_requests=ongoing,
                                 ray_actor_options=dict(actor or {})).bind(path, function, options)
               for function in model.functions}
    stem = name or os.path.splitext(os.path.basename(path))[0]
    return _scaled(Parts, 1, None, max_ongoing_requests=ongoing * max(1, len(handles))).bind(stem, ports, **handles)
