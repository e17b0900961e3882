#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The pictures of README.md and of the manuals, made of data that are in the tree.

Usage: pictures.py draw	draw the pictures whose data or drawing have changed, and write
			Documentation/states.rst
       pictures.py check	print which pictures are older than their data, and which files and
			functions README.md and Documentation/architecture.rst name in vain
       pictures.py record	take the data from test-results/, where `make bench` and `make demo`
			left them, and draw

Data and pictures are in Documentation/pictures. A picture begins with a hash of its data and of the
function that draws it. Only drawing needs more than Python: Debian's graphviz and
python3-matplotlib.
"""

import glob
import hashlib
import html
import inspect
import json
import os
import re
import statistics
import subprocess
import sys

import states

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = ROOT + "/Documentation/pictures"
RESULTS = ROOT + "/test-results"
MARK = "<!-- tools/testing/pictures.py: {} -->"

DRIVERS = {"ours-Y": "this driver", "intree-Y": "in-tree RNBD", "nvme": "NVMe over RDMA"}
COLOURS = {"ours-Y": "#2166ac", "intree-Y": "#9ecae1", "nvme": "#bdbdbd"}
PANELS = [["512-randread-32", "512-randwrite-32", "4k-randread-1", "4k-randwrite-1",
           "4k-randread-32", "4k-randwrite-32"], ["64k-randread-32", "64k-randwrite-32"]]
# The clock of `make bench` advances two nanoseconds for each instruction.
INSTRUCTIONS_PER_SECOND = 500e6


def read(path):
    with open(path) as f:
        return f.read()


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def plots():
    """matplotlib, such that it draws the same picture from the same data each time"""
    # pylint: disable=import-outside-toplevel,import-error
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({
        "svg.hashsalt": "rnbd", "svg.fonttype": "none", "font.size": 9, "axes.spines.top": False,
        "axes.spines.right": False, "axes.titlesize": 9})
    from matplotlib import pyplot
    return pyplot


def svg(pyplot, figure):
    path = FOLDER + "/.plot.svg"
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    text = read(path)
    os.remove(path)
    return text


def cell_name(name):
    """For the axis: 4k-randread-32 becomes 4 KiB read, depth 32"""
    size, rw, depth = name.split("-")
    unit = " KiB" if size.endswith("k") else " B"
    return f"{size.rstrip('k')}{unit} {rw.replace('rand', '')}\ndepth {depth}"


def draw_cost(text):
    """Instructions for one I/O, next to the alternatives"""
    data = json.loads(text)
    pyplot = plots()
    figure, panels = pyplot.subplots(
        1, 2, figsize=(9, 3.3), gridspec_kw={"width_ratios": [6, 2.2]}, layout="constrained")
    for axes, cells in zip(panels, PANELS):
        for n, (what, name) in enumerate(DRIVERS.items()):
            cost = [INSTRUCTIONS_PER_SECOND / data["iops"][what][c] / 1000 for c in cells]
            bars = axes.bar([x + (n - 1) * 0.27 for x in range(len(cells))], cost, 0.27,
                            label=name, color=COLOURS[what])
            axes.bar_label(bars, fmt="%.0f", fontsize=7, padding=1)
        axes.set_xticks(range(len(cells)), [cell_name(c) for c in cells], fontsize=8)
        axes.tick_params(axis="x", length=0)
    panels[0].set_ylabel("thousand instructions")
    panels[0].legend(frameon=False, loc="upper right", fontsize=8)
    figure.suptitle("Instructions for one I/O at both ends, with the kernel and soft-RoCE: fewer is "
                    f"better (drivers of commit {data['commit']})", fontsize=9)
    return svg(pyplot, figure)


def draw_cable(text):
    """I/O per second while a cable is pulled and plugged in again"""
    data = json.loads(text)
    # The program takes a while to start, and is being stopped in the end.
    first = next(n for n, (_, rate) in enumerate(data["iops"]) if rate > data["rate"] / 2)
    start = data["iops"][first][0]
    rates = [(second - start, rate) for second, rate in data["iops"][first:-2]]
    at = {event: second - start for second, event in data["events"]}
    pulled, lost, back, connected = (at[event] for event in (
        "cable pulled", "path lost", "cable back", "path connected"))
    end = rates[-1][0]
    pyplot = plots()
    figure, axes = pyplot.subplots(figsize=(9, 2.6), layout="constrained")
    axes.step([s for s, _ in rates], [n for _, n in rates], where="post",
              color=COLOURS["ours-Y"], linewidth=1.5)
    top = max(n for _, n in rates) * 1.3
    axes.set_ylim(0, top)
    axes.set_xlim(0, end)
    axes.axvspan(pulled, lost, color="#fddbc7", linewidth=0)
    axes.axvspan(lost, connected, color="#f0f0f0", linewidth=0)
    for since, what in ((0, "two paths"), (pulled, "not noticed yet:\nrequests wait"),
                        (lost, "one path: what had no answer\nis sent again, and the\n"
                         "program catches up"), (connected, "two paths")):
        axes.text(since + end / 150, top * 0.97, what, fontsize=8, va="top")
    for second, what in (pulled, "cable pulled"), (back, "cable plugged in"):
        axes.axvline(second, color="#b2182b", linewidth=1)
        axes.text(second, top * 0.45, f" {what}", fontsize=8, color="#b2182b")
    axes.set_xlabel("seconds")
    axes.set_ylabel("I/O per second")
    figure.suptitle(f"A program that reads or writes 4 KiB {data['rate']} times a second gets no "
                    f"errors; its slowest request takes {data['slowest']} s (drivers of commit "
                    f"{data['commit']})", fontsize=9)
    return svg(pyplot, figure)


def draw_top(text):
    """A screen of `rnbd top`; its headings are in reverse video"""
    width, height, left, above = 8.4, 19, 12, 44      # of a character, and the window's edges
    rows, reverse = [], False
    lines = text.rstrip("\n").split("\n")
    for n, line in enumerate(lines):
        code = re.match(r"\033\[(\d*)m", line)
        if code:
            reverse = code[1] == "7"
        plain = re.sub(r"\033\[\d*m", "", line)
        y = above + n * height
        if reverse:
            rows.append(f'<rect x="{left - 4}" y="{y - 14}" width="{80 * width + 8}" '
                        f'height="{height}" fill="#d9d9d9"/>')
        # Each word has its place, so that columns are straight with any font.
        words = "".join(f'<tspan x="{left + m.start() * width:.1f}">{html.escape(m[0])}</tspan>'
                        for m in re.finditer(r"\S+", plain))
        rows.append(f'<text y="{y}" fill="{"#0c0c0c" if reverse else "#d9d9d9"}">{words}</text>')
    size = f"{80 * width + 2 * left:.0f}", above + len(lines) * height
    dots = "".join(f'<circle cx="{left + 6 + 18 * n}" cy="14" r="5" fill="{colour}"/>'
                   for n, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" '
        f'width="{size[0]}" height="{size[1]}" font-family="monospace" font-size="14">',
        f'<rect width="{size[0]}" height="{size[1]}" rx="8" fill="#0c0c0c"/>', dots, *rows,
        "</svg>", ""])


def draw_machine(text):
    return subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True,
                          check=True).stdout


def pictures():
    """Of each: its name, what it is drawn from, and the function that draws it"""
    for name, source, draw in (("cost", "bench.json", draw_cost),
                               ("cable", "cable.json", draw_cable),
                               ("top", "top.txt", draw_top)):
        path = f"{FOLDER}/{source}"
        if os.path.exists(path):
            yield name, read(path), draw
    for machine in states.machines(ROOT):
        yield machine.name, "\n".join(machine.dot()) + "\n", draw_machine


def mark(text, draw):
    given = text + inspect.getsource(draw)
    return MARK.format(hashlib.sha256(given.encode()).hexdigest())


def is_current(name, text, draw):
    path = f"{FOLDER}/{name}.svg"
    return os.path.exists(path) and mark(text, draw) in read(path)


def draw_all():
    for name, text, draw in pictures():
        if is_current(name, text, draw):
            continue
        image = draw(text)
        # After the XML declaration, if there is one
        start = image.index("?>") + 2 if image.startswith("<?xml") else 0
        image = f"{image[:start]}\n{mark(text, draw)}\n{image[start:].lstrip()}".lstrip()
        image = "".join(line.rstrip() + "\n" for line in image.splitlines())
        write(f"{FOLDER}/{name}.svg", image)
        print(f"drawn: Documentation/pictures/{name}.svg")
    write(ROOT + "/Documentation/states.rst", states.page(ROOT))


def broken_links():
    """Files of this tree to which README.md refers, and that do not exist"""
    for path in sorted(set(re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(ROOT + "/README.md")))):
        if not os.path.exists(f"{ROOT}/{path}"):
            yield f"README.md refers to {path}, which does not exist"


def wrong_names():
    """Functions and files that architecture.rst names, and that the drivers do not have"""
    text = read(ROOT + "/Documentation/architecture.rst")
    paths = glob.glob(ROOT + "/drivers/**/*.[ch]", recursive=True) + \
        glob.glob(ROOT + "/include/rdma/*.h")
    known = {name for path in paths for name in re.findall(r"\b(\w+)\(", read(path))}
    for name in sorted(set(re.findall(r"``(r(?:trs|nbd)_\w+)\(\)``", text)) - known):
        yield f"Documentation/architecture.rst names {name}(), which the drivers do not have"
    for name in sorted(set(re.findall(r"``([\w./-]+\.[ch])``", text))):
        if not os.path.exists(f"{ROOT}/{name}") and \
           not any(path.endswith("/" + name) for path in paths):
            yield f"Documentation/architecture.rst names {name}, which the drivers do not have"


def stale_pictures():
    known = set()
    for name, text, draw in pictures():
        known.add(name + ".svg")
        if not is_current(name, text, draw):
            yield f"Documentation/pictures/{name}.svg is older than its data; run make pictures"
    for path in glob.glob(FOLDER + "/*.svg"):
        if os.path.basename(path) not in known:
            yield f"Documentation/pictures/{os.path.basename(path)} has no data"
    if read(ROOT + "/Documentation/states.rst") != states.page(ROOT):
        yield "Documentation/states.rst is older than the drivers' tables; run make pictures"


def check():
    yield from stale_pictures()
    yield from broken_links()
    yield from wrong_names()


def record_bench():
    """The medians of the cells that are drawn"""
    bench = json.loads(read(RESULTS + "/bench.json"))
    if bench["clock"] != "instructions":
        sys.exit("bench.json is by wall time; run make bench without CLOCK=")
    found = {(what, cell): values for what, cell, values in bench["speed"]}
    wanted = [c for cells in PANELS for c in cells]
    missing = [f"{what} {c}" for what in DRIVERS for c in wanted if (what, c) not in found]
    if missing:
        sys.exit(f"bench.json lacks {', '.join(missing)}")
    iops = {what: {c: statistics.median(v[1] for v in found[what, c]) for c in wanted}
            for what in DRIVERS}
    data = {"commit": bench["commit"], "clock": bench["clock"], "qemu": bench["qemu"],
            "iops": iops}
    write(FOLDER + "/bench.json", json.dumps(data, indent=1) + "\n")


def record():
    if not os.path.isdir(RESULTS):
        sys.exit("there are no test-results/; run make bench and make demo first")
    if os.path.exists(RESULTS + "/bench.json"):
        record_bench()
    for source in "cable.json", "top.txt":
        if os.path.exists(f"{RESULTS}/{source}"):
            write(f"{FOLDER}/{source}", read(f"{RESULTS}/{source}"))
    draw_all()


def main():
    what = sys.argv[1:]
    if what == ["draw"]:
        draw_all()
    elif what == ["record"]:
        record()
    elif what == ["check"]:
        found = list(check())
        print("".join(line + "\n" for line in found), end="")
        return bool(found)
    else:
        print(__doc__.strip())
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
