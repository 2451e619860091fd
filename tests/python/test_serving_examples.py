"""The examples of serving on many hosts: the YAML has the fields of KServe's schema, the image words that there are.

test_serve_kserve.py reads the YAML by all of KServe's classes, where these are installed.
"""
import pathlib
import re
import shutil
import subprocess

import pytest
import yaml
from conftest import ROOT

EXAMPLES = ROOT / "examples" / "serving"
# Of KServe's schema (serving.kserve.io), what concerns a model and a runtime: fields, and what they hold. What a schema
# does not name KServe would drop in silence.
CONTAINER = {"name": str, "image": str, "args": [str], "command": [str], "env": [{"name": str, "value": str}],
             "ports": [{"name": str, "containerPort": int, "protocol": str}],
             "resources": {"requests": {str: str}, "limits": {str: str}},
             "readinessProbe": {"httpGet": {"path": str, "port": int}, "periodSeconds": int},
             "livenessProbe": {"httpGet": {"path": str, "port": int}, "periodSeconds": int},
             "securityContext": {"allowPrivilegeEscalation": bool, "runAsNonRoot": bool, "runAsUser": int,
                                 "capabilities": {"drop": [str]}}}
KINDS = {
    "InferenceService": {
        "apiVersion": "serving.kserve.io/v1beta1", "kind": str, "metadata": {"name": str},
        "spec": {"predictor": {
            "minReplicas": int, "maxReplicas": int, "scaleMetric": str, "scaleTarget": int,
            "model": {**CONTAINER, "modelFormat": {"name": str, "version": str}, "protocolVersion": str, "runtime": str,
                      "storageUri": str}}}},
    "ClusterServingRuntime": {
        "apiVersion": "serving.kserve.io/v1alpha1", "kind": str, "metadata": {"name": str},
        "spec": {"supportedModelFormats": [{"name": str, "version": str, "autoSelect": bool, "priority": int}],
                 "protocolVersions": [str], "containers": [CONTAINER]}},
}


def misfits(value, form, where):
    """Where a value leaves its form."""
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return [f"{where} is no object"]
        known = {key: form.get(key, form.get(str)) for key in value}
        return [fault for key, item in value.items()
                for fault in ([f"{where} has no {key}"] if known[key] is None else misfits(item, known[key], f"{where}.{key}"))]
    if isinstance(form, list):
        if not isinstance(value, list):
            return [f"{where} is no list"]
        return [fault for item in value for fault in misfits(item, form[0], where)]
    fits = value == form if isinstance(form, str) else type(value) is form
    return [] if fits else [f"{where} is {value!r}"]


def test_yaml_has_the_fields_of_kserve():
    documents = {document["kind"]: document
                 for document in yaml.safe_load_all((EXAMPLES / "inferenceservice.yaml").read_text())}
    assert list(documents) == list(KINDS)
    for kind, document in documents.items():
        assert not misfits(document, KINDS[kind], kind)
    service, runtime = documents.values()
    assert service["spec"]["predictor"]["model"]["runtime"] == runtime["metadata"]["name"]
    assert misfits({"spec": {"predictor": {"minReplicas": "1", "modle": {}}}}, KINDS["InferenceService"], "x") == [
        "x.spec.predictor.minReplicas is '1'", "x.spec.predictor has no modle"]


def test_the_image_runs_a_command_that_there_is(aglow):
    """The words of the image and of the runtime are options of the server, and its ports those of the runtime."""
    docker, runtime = ((EXAMPLES / name).read_text() for name in ("Dockerfile", "inferenceservice.yaml"))
    words = re.findall(r'"(--[a-z-]+)"', docker) + re.findall(r"(--[a-z][a-z-]+)(?=, \")", runtime)
    told = aglow("serve", "--help").out
    assert len(words) >= 5 and not [word for word in words if word not in told]
    assert re.search(r'"--http-port", "8080"', docker) and "containerPort: 8080" in runtime


def asked(*words):
    """What dpkg-query says; once for all, since each call reads the whole of its lists."""
    return subprocess.run(["dpkg-query", *words], capture_output=True, text=True).stdout


def packages_behind(names):
    """These packages of the system, and all that they need."""
    needs = {}
    for line in asked("-W", "-f", "${Package}\t${Depends},${Pre-Depends}\n").splitlines():
        name, _, others = line.partition("\t")
        needs[name] = [word.split()[0].split(":")[0] for word in re.split("[,|]", others) if word.strip()]
    known, left = set(), list(names)
    while left:
        name = left.pop()
        if name not in known:
            known.add(name)
            left += needs.get(name, [])
    return known


def test_the_image_has_every_library(program):
    """What the programs are linked with belongs to a package of the image, or to one that those need."""
    release = pathlib.Path("/etc/os-release").read_text()
    if not shutil.which("dpkg-query") or "bookworm" not in release:
        pytest.skip("the image is of Debian 12")
    last = (EXAMPLES / "Dockerfile").read_text().rpartition("FROM ")[2]
    named = re.search(r"--no-install-recommends (.*?)&&", last, re.S)[1].replace("\\", " ").split()
    there = packages_behind(named)
    libraries = set()
    for file in (program, program.parent / "aglow-serve", program.parent / "aglow_llvm.so"):
        if file.exists():
            libraries.update(re.findall(r"=> (/\S+)", subprocess.run(["ldd", file], capture_output=True, text=True).stdout))
    # Packages may still say /lib for /usr/lib.
    real = {str(pathlib.Path(path).resolve()).removeprefix("/usr") for path in libraries if str(ROOT) not in path}
    assert len(real) >= 10
    owners = {}
    for line in asked("-S", *real, *("/usr" + path for path in real)).splitlines():
        packages, _, path = line.rpartition(": ")
        owners[path.removeprefix("/usr")] = packages.split(":")[0]
    missing = {owners.get(path, path) for path in real if "libasan" not in path and "libubsan" not in path} - there
    assert not missing, f"examples/serving/Dockerfile lacks {missing}"
