#!/usr/bin/env python3
"""The rivals of bench/serve.py: serve_peers.py fastapi|ray MODEL.onnx PORT serves a model with ONNX Runtime.

What people write: a session, arrays from the bytes of a request, and the bytes of the outputs back.
"""
import json
import pathlib
import sys

import numpy as np
import onnxruntime

KINDS = {"FP32": np.float32, "FP64": np.float64, "INT64": np.int64, "INT32": np.int32, "BOOL": np.bool_, "UINT8": np.uint8}
NAMES = {np.dtype(kind): name for name, kind in KINDS.items()}


class Model:
    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.outputs = [output.name for output in self.session.get_outputs()]

    def answer(self, body, head_size):
        head, at, inputs = json.loads(body[:head_size]), head_size, {}
        for tensor in head["inputs"]:
            size = tensor["parameters"]["binary_data_size"]
            inputs[tensor["name"]] = np.frombuffer(body[at:at + size], KINDS[tensor["datatype"]]).reshape(tensor["shape"])
            at += size
        results = self.session.run(self.outputs, inputs)
        blobs = [result.tobytes() for result in results]
        back = json.dumps({"outputs": [
            {"name": name, "datatype": NAMES[result.dtype], "shape": result.shape,
             "parameters": {"binary_data_size": len(blob)}}
            for name, result, blob in zip(self.outputs, results, blobs)]}).encode()
        return back + b"".join(blobs), len(back)


def application(model):
    import asyncio

    from fastapi import FastAPI, Request, Response
    app = FastAPI()

    @app.get("/v2/health/ready")
    async def ready():
        return {}

    @app.post("/v2/models/{name}/infer")
    async def infer(name: str, request: Request):
        body = await request.body()
        size = int(request.headers["inference-header-content-length"])
        answer, head = await asyncio.to_thread(model.answer, body, size)
        return Response(answer, media_type="application/octet-stream",
                        headers={"inference-header-content-length": str(head)})

    return app


def fastapi(path, port):
    import uvicorn
    uvicorn.run(application(Model(path)), host="127.0.0.1", port=port, log_level="error")


def ray(path, port):
    import asyncio
    import time

    from ray import serve
    from starlette.responses import Response

    @serve.deployment(max_ongoing_requests=64)
    class Served:
        def __init__(self):
            self.model = Model(path)

        async def __call__(self, request):
            if request.url.path.endswith("/ready"):
                return {}
            body, size = await request.body(), int(request.headers["inference-header-content-length"])
            answer, head = await asyncio.to_thread(self.model.answer, body, size)
            return Response(answer, media_type="application/octet-stream",
                            headers={"inference-header-content-length": str(head)})

    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(Served.bind())
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    {"fastapi": fastapi, "ray": ray}[sys.argv[1]](str(pathlib.Path(sys.argv[2]).resolve()), int(sys.argv[3]))
