"""Runs many cases side by side and reports on them: progress, tables, JSON, JUnit."""
import collections
import concurrent.futures
import dataclasses
import json
import re
import sys
from xml.etree import ElementTree

from harness import case


def run_all(names, run, jobs):
    """{name: Verdict} of run(name) for all names, in their order."""
    verdicts = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(run, name): name for name in names}
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            verdicts[futures[future]] = future.result()
            if sys.stdout.isatty():
                print(f"\r{done}/{len(names)}", end="\n" if done == len(names) else "", flush=True)
            elif done % 500 == 0:
                print(f"{done}/{len(names)}", flush=True)
    return {name: verdicts[name] for name in names}


def table(verdicts, group_of, title):
    """Lines with the number of verdicts of each kind, for the groups in which not all cases pass."""
    groups = collections.defaultdict(collections.Counter)
    for name, verdict in verdicts.items():
        groups[group_of(name)][verdict.kind] += 1
    yield f"{title:34}" + "".join(f"{kind:>12}" for kind in case.VERDICTS)
    for group, counts in sorted(groups.items()):
        if counts.total() > counts[case.PASS]:
            yield f"{group:34}" + "".join(f"{counts[kind] or '':>12}" for kind in case.VERDICTS)
    whole = sum(counts.total() == counts[case.PASS] for counts in groups.values())
    yield f"{whole} of {len(groups)} pass completely"


def reasons(verdicts, limit=25):
    """The most frequent details, names and numbers left out."""
    counts = collections.Counter()
    for verdict in verdicts.values():
        if verdict.kind != case.PASS:
            words = re.sub(r"\S*/\S+?:|'[^']*'|\b\d[\d.e+-]*|\([\d, ]*\)", "_", verdict.detail)
            counts[f"{verdict.kind}: {words[:140]}"] += 1
    return [f"{count:6}  {reason}" for reason, count in counts.most_common(limit)]


def totals(verdicts):
    counts = collections.Counter(verdict.kind for verdict in verdicts.values())
    return ", ".join(f"{counts[kind]} {kind}" for kind in case.VERDICTS if counts[kind])


def write_json(path, verdicts, **more):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**more, "cases": {name: dataclasses.asdict(v) for name, v in verdicts.items()}}, file, indent=1)


def write_junit(path, suite, verdicts, failed):
    """`failed` maps names to reasons; cases that neither pass nor fail are skipped."""
    root = ElementTree.Element("testsuite", name=suite, tests=str(len(verdicts)), failures=str(len(failed)))
    for name, verdict in verdicts.items():
        entry = ElementTree.SubElement(root, "testcase", classname=suite, name=name, time=str(verdict.seconds))
        # XML has no way to write control characters.
        text = re.sub(r"[^\t\n\x20-\ud7ff]", "?", failed.get(name, verdict.detail))
        if name in failed:
            ElementTree.SubElement(entry, "failure", message=text)
        elif verdict.kind != case.PASS:
            ElementTree.SubElement(entry, "skipped", message=f"{verdict.kind}: {text}")
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def show(name, verdict):
    """One line of a model's verdict."""
    print(f"{name:28}{verdict.kind:13}{verdict.seconds:8.2f} s  {verdict.detail[:160]}", flush=True)


def finish(verdicts, suite, junit):
    """The totals of models, and a file of them where one is wanted; the exit code."""
    failed = {name: f"{verdict.kind}: {verdict.detail}" for name, verdict in verdicts.items()
              if verdict.kind not in (case.PASS, case.UNSUPPORTED)}
    if junit:
        write_junit(junit, suite, verdicts, failed)
    print(f"{len(verdicts)} models: {totals(verdicts)}")
    return 1 if failed else 0
