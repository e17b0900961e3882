#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Looks into JSON for a test, as often as it asks: to start Python each time takes seconds.

Usage: look.py SCHEMAS	the directory of schema.py

Each line of stdin has tabs between its fields: a file, the name of a definition of the schema,
or nothing, and the keys of a member, none for all of it. Answers with a line: "ok", and the
member; or "no", and why.
"""

import functools
import json
import sys

sys.path[0] = sys.argv[1]
sys.dont_write_bytecode = True


def look(name, definition, *keys):
    with open(name) as file:
        value = json.load(file)
    if definition:
        import schema   # takes long itself
        schema.check(definition, value)
    return functools.reduce(lambda v, k: v[int(k) if k.isdigit() else k], keys, value)


for line in sys.stdin:
    try:
        answer = f"ok {look(*line.rstrip(chr(10)).split(chr(9)))}"
    except Exception as e:  # whatever is wrong with it
        answer = f"no {type(e).__name__}: {e}"
    print(" ".join(answer.split("\n")), flush=True)
