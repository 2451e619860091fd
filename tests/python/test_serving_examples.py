"""The examples of serving on many hosts: the YAML for KServe fits KServe's own schema, where that is at hand.

AGLOW_KSERVE_CRDS names the folder config/crd/full of a checkout of KServe.
"""
import os
import pathlib
import re

import pytest
from conftest import ROOT

EXAMPLES = ROOT / "examples" / "serving"
CRDS = {"InferenceService": "inferenceservices", "ClusterServingRuntime": "clusterservingruntimes"}


def closed(schema):
    """The schema, without room for fields that it does not name: what KServe would drop in silence is a fault here."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema and \
            not schema.get("x-kubernetes-preserve-unknown-fields"):
        inner["additionalProperties"] = False
    return inner


def test_yaml_fits_the_schemas_of_kserve():
    yaml, jsonschema = pytest.importorskip("yaml"), pytest.importorskip("jsonschema")
    folder = os.environ.get("AGLOW_KSERVE_CRDS")
    if not folder:
        pytest.skip("AGLOW_KSERVE_CRDS is not set")
    documents = list(yaml.safe_load_all((EXAMPLES / "inferenceservice.yaml").read_text()))
    assert [document["kind"] for document in documents] == list(CRDS)
    for document in documents:
        crd = yaml.safe_load((pathlib.Path(folder) / f"serving.kserve.io_{CRDS[document['kind']]}.yaml").read_text())
        version = document["apiVersion"].partition("/")[2]
        schema = next(v["schema"]["openAPIV3Schema"] for v in crd["spec"]["versions"] if v["name"] == version)
        schema["properties"]["metadata"] = {"type": "object", "additionalProperties": True}
        jsonschema.Draft7Validator(closed(schema)).validate(document)


def test_the_image_runs_a_command_that_there_is(aglow):
    """The words of the image and of the runtime are options of the server."""
    docker = (EXAMPLES / "Dockerfile").read_text()
    words = re.findall(r'"(--[a-z-]+)"', docker) + re.findall(r"(--[a-z][a-z-]+)(?=, \")", (EXAMPLES / "inferenceservice.yaml").read_text())
    told = aglow("serve", "--help").out
    assert len(words) >= 5 and not [word for word in words if word not in told]
