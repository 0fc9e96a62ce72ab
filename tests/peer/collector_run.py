# SPDX-License-Identifier: Apache-2.0
"""Code that the scenarios of all frameworks share: how one is run from the command line."""
import json
import os
import sys


def main(scenarios, debugger_type):
    """usage: SCENARIO FOLDER [JSON]; debugger_type() imports what is to be tested."""
    name, folder = sys.argv[1:3]
    run, settings = scenarios[name]
    config = {"task": "statistics", "dump_path": os.path.join(folder, "dump"), "statistics": {}, **settings}
    if len(sys.argv) > 3:
        config.update(json.loads(sys.argv[3]))
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "config.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    import msprobe
    debugger = debugger_type()(config_path=path)
    with open(os.path.join(folder, "package"), "w", encoding="utf-8") as file:
        file.write(msprobe.__file__)
    losses = run(debugger)
    with open(os.path.join(folder, "losses.json"), "w", encoding="utf-8") as file:
        json.dump(losses, file)
