"""`aglow serve` with kserve's own client over HTTP and gRPC, and the example's YAML as kserve's own classes read it.

kserve brings pandas and kubernetes along, so it has a place of its own:
./dev test --all installs it (tools/kserve_requirements.txt).
"""
import asyncio
import re

import numpy as np
import pytest
from conftest import ROOT
from servers import affine, saved, serving

kserve = pytest.importorskip("kserve", reason="kserve is not installed")

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
Y = X * 2 + np.array([1, 2, 3], np.float32)


@pytest.fixture(scope="module")
def server(program, tmp_path_factory):
    with serving(program, saved(tmp_path_factory.mktemp("models"), affine=affine())) as one:
        yield one


def request(binary):
    tensor = kserve.InferInput("x", list(X.shape), "FP32")
    tensor.set_data_from_numpy(X, binary_data=binary)
    return kserve.InferRequest(model_name="affine", infer_inputs=[tensor])


@pytest.mark.parametrize("binary", [False, True])
def test_over_http(server, binary):
    async def talk():
        client = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2"))
        url = f"http://{server.http}"
        assert await client.is_server_live(url) and await client.is_server_ready(url)
        assert await client.is_model_ready(url, "affine")
        answer = await client.infer(url, request(binary), model_name="affine")
        with pytest.raises(Exception, match="404|nothing"):
            await client.infer(url, request(binary), model_name="nothing")
        await client.close()
        return answer
    answer = asyncio.run(talk())
    assert np.array_equal(answer.outputs[0].as_numpy(), Y)


@pytest.mark.parametrize("binary", [False, True])
def test_over_grpc(server, binary):
    async def talk():
        async with kserve.InferenceGRPCClient(server.grpc) as client:
            assert await client.is_server_live() and await client.is_server_ready()
            assert await client.is_model_ready("affine")
            return await client.infer(request(binary))
    assert np.array_equal(asyncio.run(talk()).outputs[0].as_numpy(), Y)


def check(value, kind, where):
    """A value of YAML against a type as kserve's and kubernetes' classes name them: every field is known."""
    import kubernetes.client
    if inner := re.fullmatch(r"[lL]ist\[(.*)\]", kind):
        assert isinstance(value, list), where
        for number, item in enumerate(value):
            check(item, inner[1], f"{where}[{number}]")
    elif inner := re.fullmatch(r"[dD]ict[(\[]\w+, (.*)[)\]]", kind):
        assert isinstance(value, dict), where
        for key, item in value.items():
            check(item, inner[1], f"{where}.{key}")
    elif kind in ("str", "int", "bool", "float"):
        assert type(value).__name__ == kind, f"{where} is no {kind}"
    elif kind not in ("object", "ResourceQuantity"):
        model = getattr(kserve, kind, None) or getattr(kserve.models, kind, None) or getattr(kubernetes.client, kind)
        assert isinstance(value, dict), where
        names = {json: name for name, json in model.attribute_map.items()}
        for key, item in value.items():
            assert key in names, f"{where}: {kind} has no {key}"
            check(item, model.openapi_types[names[key]], f"{where}.{key}")


def test_the_example_is_what_kserve_reads():
    yaml = pytest.importorskip("yaml")
    documents = list(yaml.safe_load_all((ROOT / "examples" / "serving" / "inferenceservice.yaml").read_text()))
    kinds = {"InferenceService": "V1beta1InferenceService", "ClusterServingRuntime": "V1alpha1ClusterServingRuntime"}
    assert [document["kind"] for document in documents] == list(kinds)
    for document in documents:
        kind = kinds[document["kind"]]
        assert kind.lower().startswith(document["apiVersion"].partition("/")[2])
        check(document, kind, document["kind"])
    broken = dict(documents[0], spec={"predictor": {"modle": {}}})
    with pytest.raises(AssertionError, match="has no modle"):
        check(broken, kinds["InferenceService"], "InferenceService")
