"""Pages in a real browser. Of models: no script fails, every view opens, what is clicked tells what it is. Of the server: it
shows models, queues and latencies."""
import json
import re
import shutil
import subprocess
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from servers import affine, saved, serving

webdriver = pytest.importorskip("selenium.webdriver")
By = pytest.importorskip("selenium.webdriver.common.by").By

if not (shutil.which("chromium") and shutil.which("chromedriver")):
    pytest.skip("no browser", allow_module_level=True)


def scoped_model(path, blocks, inner, size=4):
    """A chain of blocks, each a scope of `inner` operators with one weight, of size x size, and a way around them."""
    nodes, weights = [], []
    value = "x"
    for block in range(blocks):
        first = value
        weight = f"/net/block.{block}/weight"
        weights.append(numpy_helper.from_array(np.full((size, size), 0.4 / size, np.float32), weight))
        for step in range(inner):
            name = f"/net/block.{block}/part.{step % 3}/op{step}"
            result = f"{name}_out"
            operands = [value, weight] if step == 0 else [value]
            nodes.append(helper.make_node("MatMul" if step == 0 else ("Tanh", "Sigmoid", "Abs")[step % 3], operands, [result], name))
            value = result
        name = f"/net/block.{block}/join"
        nodes.append(helper.make_node("Add", [value, first], [f"{name}_out"], name))
        value = f"{name}_out"
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "scoped </script><b>", [info("x", TensorProto.FLOAT, [2, size])],
                              [info(value, TensorProto.FLOAT, [2, size])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return len(nodes)


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    with webdriver.Chrome(options=options, service=service) as driver:
        yield driver


def complaints(browser):
    return [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def opened(browser, page):
    browser.get("about:blank")
    browser.get(page.as_uri())
    return browser


def tab(browser, name):
    browser.find_element(By.CSS_SELECTOR, f"nav button[data-view={name}]").click()
    return browser.find_element(By.CSS_SELECTOR, f"section.view.{name}")


def written(program, command, folder, *words):
    """The page that a command makes of the model in a folder."""
    done = subprocess.run([program, command, folder / "scoped.onnx", "--html", folder / "scoped.html", *words],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder / "scoped.html"


@pytest.fixture(scope="module")
def page(program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    scoped_model(folder / "scoped.onnx", 6, 9)
    return written(program, "inspect", folder)


@pytest.fixture(scope="module")
def bench_page(program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    scoped_model(folder / "scoped.onnx", 6, 9)
    return written(program, "bench", folder, "--runs", "3")


@pytest.fixture(scope="module")
def integers_page(program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("integers")
    (folder / "data").mkdir()
    for number in range(3):
        np.save(folder / "data" / f"{number}.npy", np.random.default_rng(number).standard_normal((2, 32)).astype(np.float32))
    scoped_model(folder / "scoped.onnx", 6, 9, 32)
    subprocess.run([program, "profile", folder / "scoped.onnx", "--data", folder / "data", "-o", folder / "profile.json"],
                   capture_output=True, check=True, timeout=300)
    return written(program, "quant-report", folder, "--data", folder / "data", "--profile", folder / "profile.json")


@pytest.mark.parametrize("made", ["page", "bench_page", "integers_page"])
def test_needs_nothing_from_elsewhere(request, made):
    text = request.getfixturevalue(made).read_text()
    assert not re.search(r"(src|href)\s*=\s*['\"]?(https?:)?//", text)
    assert sum(len(script) for script in re.findall(r"<script>.*?</script>", text, re.S)) < 200_000


def test_data_cannot_end_the_script(page):
    """Names of a model are data, whatever they hold."""
    data = re.search(r"<script type='application/json' id=data>(.*?)</script>", page.read_text(), re.S)[1]
    assert {"records", "stages", "programs", "run", "peak"} <= json.loads(data).keys()


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("made", ["page", "bench_page"])
def test_every_view_opens(browser, request, made, width):
    browser.set_window_size(width, 900)
    opened(browser, request.getfixturevalue(made))
    assert [button.text for button in browser.find_elements(By.CSS_SELECTOR, "nav button")] == ["Graph", "Stages", "Memory", "Profile"]
    for name in ("stages", "memory", "profile", "graph"):
        section = tab(browser, name)
        assert section.is_displayed() and section.size["height"] > 200
        # Nothing but what scrolls by itself is wider than the window.
        assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        assert "null" not in section.text and "undefined" not in section.text
    # The graph begins below what stands above it.
    bottom, top = browser.execute_script("""return [document.querySelector('.bar').getBoundingClientRect().bottom,
      Math.min(...[...document.querySelectorAll('.node')].map(node => node.getBoundingClientRect().top))]""")
    assert bottom <= top
    assert complaints(browser) == []


@pytest.mark.parametrize("width", [1280, 400])
def test_what_integers_do_is_seen(browser, integers_page, width):
    browser.set_window_size(width, 900)
    opened(browser, integers_page)
    assert "in integers" in browser.find_element(By.CSS_SELECTOR, "h1").text
    assert [heading.text for heading in browser.find_elements(By.CSS_SELECTOR, "h2")][0] == "Layers, each alone in integers"
    drawn = browser.find_elements(By.CSS_SELECTOR, "figure svg path")
    assert drawn and all(shape.is_displayed() for shape in drawn)
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    assert complaints(browser) == []


def test_scopes_fold_and_unfold(browser, page):
    browser.set_window_size(1280, 900)
    opened(browser, page)
    buttons = {button.text: button for button in browser.find_elements(By.CSS_SELECTOR, ".bar button")}
    buttons["fold"].click()
    assert "net" in {label.text for label in browser.find_elements(By.CSS_SELECTOR, ".node.scope text")}
    folded = len(browser.find_elements(By.CSS_SELECTOR, ".node"))
    buttons["unfold"].click()
    assert len(browser.find_elements(By.CSS_SELECTOR, ".node")) > folded
    assert browser.find_elements(By.CSS_SELECTOR, ".node.scope") == []
    assert complaints(browser) == []


def test_a_search_leads_to_a_node_that_tells_what_it_is(browser, page):
    browser.set_window_size(1280, 900)
    opened(browser, page)
    browser.find_element(By.CSS_SELECTOR, ".bar input").send_keys("block.3 matmul")
    hits = browser.find_elements(By.CSS_SELECTOR, ".hits button")
    assert len(hits) == 1 and "block.3" in hits[0].text
    hits[0].click()
    chosen = browser.find_element(By.CSS_SELECTOR, ".node.chosen")
    assert "MatMul" in chosen.text
    details = browser.find_element(By.CSS_SELECTOR, "aside").text
    for word in ("/net/block.3/part.0/op0", "f32[2,4]", "kernel", "time"):
        assert word in details
    browser.execute_script("""
      const inside = box => box.top > 120 && box.bottom < innerHeight - 20 && box.left > 20 && box.right < innerWidth - 420;
      const other = [...document.querySelectorAll('.node:not(.chosen) rect')].find(node => inside(node.getBoundingClientRect()));
      const box = other.getBoundingClientRect();
      other.dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: box.x + 9, clientY: box.y + 9}));""")
    assert browser.find_element(By.CSS_SELECTOR, "aside").text != details
    assert complaints(browser) == []


def test_stages_show_what_they_changed(browser, page):
    opened(browser, page)
    section = tab(browser, "stages")
    steps = section.find_elements(By.CSS_SELECTOR, ".steps button")
    names = [step.text.split("\n")[0] for step in steps]
    assert names[0] == "import" and {"optimize", "lower", "irgen", "memory"} <= set(names)
    steps[names.index("fuse")].click()
    assert section.find_elements(By.CSS_SELECTOR, ".diff .added") and section.find_elements(By.CSS_SELECTOR, ".diff .gone")
    assert complaints(browser) == []


def test_buffers_and_instructions_tell_what_they_are(browser, page):
    browser.set_window_size(1280, 900)
    opened(browser, page)
    section = tab(browser, "memory")
    section.find_element(By.CSS_SELECTOR, "svg.map .box").click()
    details = browser.find_element(By.CSS_SELECTOR, "aside").text
    assert "address" in details and "made by" in details
    section = tab(browser, "profile")
    assert section.find_elements(By.CSS_SELECTOR, "circle.dot")
    section.find_elements(By.CSS_SELECTOR, "tbody")[-1].find_element(By.CSS_SELECTOR, "tr").click()
    browser.find_element(By.XPATH, "//button[text()='show in the graph']").click()
    assert browser.find_element(By.CSS_SELECTOR, "section.view.graph").is_displayed()
    assert complaints(browser) == []


def test_the_server_shows_models_queues_and_latencies(browser, program, tmp_path):
    with serving(program, saved(tmp_path / "models", affine=affine(), second=affine(3))) as one:
        browser.get("about:blank")
        browser.get_log("browser")
        browser.get(f"http://{one.http}/")
        end = time.monotonic() + 60
        cells = []
        while time.monotonic() < end:
            for _ in range(20):
                assert one.infer("affine", {"x": np.ones((1, 3), np.float32)})[0] == 200
            # The page makes its rows anew every second.
            cells = browser.execute_script(
                "return [...document.querySelectorAll('#models tr')].map(row => [...row.cells].map(c => c.textContent))")
            if cells and float(cells[0][1]) > 0 and cells[0][6] != "-":
                break
            time.sleep(0.2)
        assert [row[0] for row in cells] == ["affine / 1", "second / 1"]
        assert float(cells[0][1]) > 0 and 0 < float(cells[0][6]) <= float(cells[0][8]), cells
        points = browser.execute_script("return document.querySelector('#models svg polyline.p99').getAttribute('points')")
        assert re.search(r"[0-9]+,[0-9.]+", points)
        devices = browser.execute_script("return [...document.querySelectorAll('#devices td')].map(c => c.textContent)")
        assert devices[2] == "runs"
        names = browser.execute_script("return performance.getEntriesByType('resource').map(e => new URL(e.name).host)")
        assert set(names) <= {one.http, ""}, "the page loads something from elsewhere"
        assert complaints(browser) == []
