"""The counter in Python: python counter.py [counter.graph]."""
import pathlib
import sys

import aglow

model = aglow.compile(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("counter.graph"))
add, reset = model["add"], model["reset"]
add(2)
print(f"add gives {add(2):g}")
print(f"count is {model.state['count']:g}")
model.state["count"] = 40
print(f"add gives {add(2):g}")
reset()
print(f"count is {model.state['count']:g}")
