# SPDX-License-Identifier: GPL-2.0
"""The state machines of the drivers, as their tables in C say.

A table is `static const u8 NAME[NR_STATES][NR_EVENTS]`: a row for each state, the next state for
each event, plus one or not. Events without an entry change nothing. Comments of the two enums, in
the form of kernel-doc, say what states and events mean.
"""

import glob
import os
import re

TABLE = re.compile(r"\n\tstatic const u8 \w+\[(\w+)\]\[(\w+)\] = \{\n(.*?)\n\t\};", re.DOTALL)
ROW = re.compile(r"\[(\w+)\] = \{(.*?)\}", re.DOTALL)
CELL = re.compile(r"\[(\w+)\]\s*= (\w+)(?: \+ 1)?,")
ENUM = re.compile(r"/\*\*\n \* enum (\w+) - (.*?)\*/\s*enum \1 \{(.*?)\};", re.DOTALL)


class Wrong(Exception):
    """The source is not what is understood here."""


def sentence(text):
    return re.sub(r"\s+", " ", re.sub(r"\n \*", " ", text)).strip()


class Enum:
    """An enum with comments; counter is its last member, the number of the others."""

    def __init__(self, name, comment, body):
        self.name = name
        self.members = re.findall(r"\b([A-Z][A-Z0-9_]+)\b(?=\s*[,=\n])", body + "\n")
        self.counter = self.members.pop()
        title, *texts = re.split(r"\n \* @(?=[A-Z])", comment)
        self.title = sentence(title).split(";")[0]
        self.meaning = dict(sentence(t).split(": ", 1) for t in texts)
        prefix = os.path.commonprefix(self.members)
        self.prefix = prefix[:prefix.rfind("_") + 1]

    def short(self, member):
        return member[len(self.prefix):]


class Machine:
    """A table, and the enums of its states and events."""

    def __init__(self, path, states, events, rows):
        self.path, self.states, self.events = path, states, events
        self.name = states.name.replace("_", "-")
        # By state and event; an event that leads to the same state changes nothing.
        self.moves = {(state, event): to for state, cells in ROW.findall(rows)
                      for event, to in CELL.findall(cells) if to != state}
        used = {x for (state, _), to in self.moves.items() for x in (state, to)}
        if not self.moves or not used <= set(states.members) or \
           not {event for _, event in self.moves} <= set(events.members):
            raise Wrong(f"{path}: the table of {states.name} is not understood")

    def dot(self):
        """The diagram's source, for Graphviz"""
        yield f"digraph \"{self.name}\" {{"
        yield "\tgraph [rankdir=TB, nodesep=0.7, ranksep=0.5, bgcolor=white];"
        yield "\tnode [shape=box, style=rounded, fontname=\"DejaVu Sans\", fontsize=11];"
        yield "\tedge [fontname=\"DejaVu Sans\", fontsize=9, color=\"#555555\"];"
        for state in self.states.members:
            yield f"\t\"{self.states.short(state)}\";"
        arrows = {}
        for (state, event), to in self.moves.items():
            arrows.setdefault((state, to), []).append(self.events.short(event))
        for (state, to), events in arrows.items():
            text = "\\n".join(events)
            yield (f"\t\"{self.states.short(state)}\" -> \"{self.states.short(to)}\" "
                   f"[label=\"{text}\"];")
        yield "}"

    def page(self):
        """Its part of Documentation/states.rst"""
        title = self.path.replace("drivers/", "")
        yield title
        yield "=" * len(title)
        yield ""
        yield f"{self.states.title[0].upper()}{self.states.title[1:]}."
        yield ""
        yield f".. image:: pictures/{self.name}.svg"
        yield f"   :alt: {self.states.title}"
        yield ""
        for enum, heading in (self.states, "States"), (self.events, "Events"):
            yield f"{heading}, with the prefix ``{enum.prefix}``:"
            yield ""
            for member in enum.members:
                yield f"``{enum.short(member)}``"
                yield f"    {self.text(enum, member)}"
            yield ""

    def text(self, enum, member):
        """What it means, with names of constants as code"""
        text = enum.meaning.get(member)
        if not text:
            raise Wrong(f"enum {enum.name}: @{member} has no comment")
        text = re.sub(r"\b([a-z]+_[a-z_]+|[A-Z]+_[A-Z_]+)\b(\(\))?", r"``\g<0>``", text)
        return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def enums(folder):
    """The enums of a module, by their counters"""
    found = {}
    for path in sorted(glob.glob(folder + "/*.[ch]")):
        with open(path) as f:
            for match in ENUM.findall(f.read()):
                enum = Enum(*match)
                found[enum.counter] = enum
    return found


def machines(root):
    """All tables of the drivers"""
    for path in sorted(glob.glob(root + "/drivers/**/*.c", recursive=True)):
        with open(path) as f:
            tables = TABLE.findall(f.read())
        known = enums(os.path.dirname(path)) if tables else {}
        for states, events, rows in tables:
            if states in known and events in known:
                yield Machine(os.path.relpath(path, root), known[states], known[events], rows)
            elif "STATES" in states:
                raise Wrong(f"{path}: {states} or {events} ends no enum with a comment")


HEAD = """.. SPDX-License-Identifier: GPL-2.0
.. Made by tools/testing/pictures.py from the tables in the drivers. Do not edit.

==============
State machines
==============

This page is generated from the drivers' tables and from the comments of their enums. Each machine
is moved by one function, under one lock. Events that a state does not show change nothing in it.
Documentation/architecture.rst says where events come from.

"""


def page(root):
    """Documentation/states.rst"""
    return HEAD + "\n".join(line for machine in machines(root) for line in machine.page())
