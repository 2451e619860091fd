"""Models behind Ray Serve: ray_serve.py MODEL.onnx... serves them at http://127.0.0.1:8000 on all nodes of a cluster.

Copies come and go with the load, from one to eight. Clients of Triton and KServe ask as they ask `aglow serve`:

    curl localhost:8000/v2/models/NAME/infer -d '{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}'
"""
import pathlib
import sys
import time

import ray
from ray import serve

import aglow.ray


def main() -> None:
    files = {pathlib.Path(file).stem: file for file in sys.argv[1:]}
    if not files:
        sys.exit(__doc__)
    ray.init()  # the cluster that RAY_ADDRESS names, or a new one on this machine
    serve.start(http_options={"host": "127.0.0.1", "port": 8000})
    scaling = {"min_replicas": 1, "max_replicas": 8, "target_ongoing_requests": 4}
    serve.run(aglow.ray.models(files, autoscaling=scaling, actor={"num_cpus": 1}, threads=1))
    print("serving", ", ".join(files))
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
