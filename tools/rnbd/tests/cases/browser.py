# SPDX-License-Identifier: GPL-2.0
"""report, as Chromium shows it (Debian: chromium). Runs only if its name is given: run browser"""

import json
import os
import pathlib
import re
import struct
import subprocess
import zlib

from cases.metrics import everything, latency
from cases.report import EVIL, Page, rules
from rig import EXPORTS, Wrong, between, equal

ONLY_IF_NAMED = True
WIDTH, HEIGHT = 1200, 2000

# The page's own policy forbids scripts: this one is put into a copy without that policy.
MEASURE = '''<script>
const found = {wide: document.documentElement.scrollWidth, outside: [], overlap: [], small: 0,
               chips: 0, labels: 0, cells: 0};
const box = e => e.getBoundingClientRect();
// The place of a text: an inner svg, which cuts it
const place = e => {
        const [x, y, w, h] = ['x', 'y', 'width', 'height'].map(n => +e.getAttribute(n));
        return {left: x, right: x + w, top: y, bottom: y + h};
};
const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 &&
        a.bottom <= b.bottom + 1;
const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 &&
        b.top < a.bottom - 1;
for (const drawing of document.querySelectorAll('svg.drawing, svg.heat'))
        for (const e of drawing.querySelectorAll('rect, line, text.label, text.figure, text.axis'))
                if (!inside(box(e), box(drawing)))
                        found.outside.push(e.outerHTML);
for (const kind of ['.chip', '.session', '.host', 'text.label', '.drawing text.name']) {
        for (const drawing of document.querySelectorAll('svg.drawing')) {
                const boxes = [...drawing.querySelectorAll(kind)].map(e =>
                        kind.endsWith('name') ? place(e.ownerSVGElement) : box(e));
                for (let i = 0; i < boxes.length; i++)
                        for (let j = i + 1; j < boxes.length; j++)
                                if (meet(boxes[i], boxes[j]))
                                        found.overlap.push(kind + i + ',' + j);
        }
}
for (const chip of document.querySelectorAll('.chip')) {
        const sessions = [...document.querySelectorAll('.session')];
        if (!sessions.some(e => inside(box(chip), box(e))))
                found.outside.push(chip.outerHTML);
        found.chips++;
}
for (const e of document.querySelectorAll('svg text'))
        found.small += box(e).height < 10;
found.labels = document.querySelectorAll('text.label').length;
found.cells = document.querySelectorAll('svg.heat rect title').length;
const out = document.createElement('pre');
out.id = 'measured';
out.textContent = JSON.stringify(found);
document.body.append(out);
</script>'''


def chromium(host, *words):
    # It looks for no display, no sandbox (which root can't have), no sound and no session bus.
    done = subprocess.run(
        ['chromium', '--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars',
         f'--user-data-dir={host.top}/profile', f'--window-size={WIDTH},{HEIGHT}',
         '--virtual-time-budget=5000', *words],
        capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise Wrong(f'chromium {words}: {done.stderr}')
    return done.stdout


def dom(host, path):
    return chromium(host, '--dump-dom', f'file://{path}')


def measure(host, path):
    text = re.sub(r'<meta http-equiv[^>]*>', '', path.read_text(), count=1)
    copy = host.top / 'copy.html'
    copy.write_text(text.replace('</body>', MEASURE + '</body>'))
    found = re.search(r'<pre id="measured">(.*?)</pre>', dom(host, copy))
    return json.loads(found[1].replace('&gt;', '>').replace('&lt;', '<').replace('&amp;', '&'))


def colours(path):
    """{(red, green, blue): number of pixels} of a PNG with 8 bits a channel"""
    data, at, packed = path.read_bytes(), 8, b''
    while at < len(data):
        size, kind = struct.unpack('>I4s', data[at:at + 8])
        chunk = data[at + 8:at + 8 + size]
        if kind == b'IHDR':
            width, height, depth, model = struct.unpack('>IIBB', chunk[:10])
            equal('depth and kind', (depth, model in (2, 6)), (8, True))
            n = 3 if model == 2 else 4
        elif kind == b'IDAT':
            packed += chunk
        at += size + 12
    lines, before, counts = zlib.decompress(packed), bytearray(width * n), {}
    for y in range(height):
        start = y * (width * n + 1)
        line = unfilter(lines[start], bytearray(lines[start + 1:start + 1 + width * n]), before, n)
        for x in range(0, width * n, n):
            pixel = tuple(line[x:x + 3])
            counts[pixel] = counts.get(pixel, 0) + 1
        before = line
    return counts


def unfilter(kind, line, above, n):
    for i, value in enumerate(line):
        left, up, corner = (line[i - n] if i >= n else 0), above[i], (above[i - n] if i >= n else 0)
        if kind == 1:
            value += left
        elif kind == 2:
            value += up
        elif kind == 3:
            value += (left + up) // 2
        elif kind == 4:
            guess = left + up - corner
            value += min((abs(guess - left), 0, left), (abs(guess - up), 1, up),
                         (abs(guess - corner), 2, corner))[2]
        line[i] = value & 255
    return line


GOOD, BAD = (0x1a, 0x7f, 0x4b), (0xc6, 0x28, 0x28)


def look(host, name, chips):
    """Lets Chromium lay the page out, and checks what it looks like."""
    path = host.top / f'{name}.html'
    host.run(f'report {path}')
    found = measure(host, path)
    equal('wider than the window', found['wide'] <= WIDTH, True)
    equal('outside of their box', found['outside'], [])
    equal('over each other', found['overlap'][:9], [])
    equal('too small to read', found['small'], 0)
    equal('devices', found['chips'], chips)
    picture = host.top / f'{name}.png'
    chromium(host, f'--screenshot={picture}', f'file://{path}')
    if os.environ.get('PICTURES'):
        (pathlib.Path(os.environ['PICTURES']) / picture.name).write_bytes(picture.read_bytes())
    counts = colours(picture)
    between('colours', len(counts), 20, 100000)
    return found, counts


def test_two_devices(host):
    everything(host)
    rules(host)
    host.disk(1, path='vol2', state='closed')
    host.export('sdb', path='vol2')
    host.path(net=1, state='disconnected', io_latency=latency(fast=30, slow=1))
    found, counts = look(host, 'two', 4)
    equal('labels', found['labels'] >= 4, True)
    equal('cells', found['cells'] >= 5, True)
    between('a good path', counts.get(GOOD, 0), 200, 100000)
    between('a bad path', counts.get(BAD, 0), 100, 100000)


def test_two_hundred_devices(host):
    host.client()
    for n in range(10):
        host.session(f's{n}')
        for net in 0, 1:
            host.path(f's{n}', net, io_latency=latency(fast=100 * n + 5, slow=n))
    for n in range(200):
        host.disk(n, session='s0' if n < 100 else f's{n % 9 + 1}', path=f'volume-{n}',
                  state='closed' if n == 77 else 'open')
    found, counts = look(host, 'many', 200)
    equal('labels', found['labels'] >= 20, True)
    between('a closed device', counts.get(BAD, 0), 50, 100000)


def test_two_hundred_volumes_of_a_server(host):
    host.server()
    host.port('rxe0')
    for n in range(200):
        host.export(f'dm-{n}', f'client{n % 40}', path=f'a-volume-with-a-long-name-{n}' * 3)
        host.attributes(f'{EXPORTS}/dm-{n}/stats', disk_latency=latency(fast=100, slow=n),
                        wait_latency=latency(fast=100))
    for n in range(40):
        host.server_path(f'client{n}')
    look(host, 'server', 200)


def test_names_run_no_script(host):
    evil = f'<img src=x onerror="document.title=1">{EVIL}'
    host.pair()
    host.disk(path=evil, state=evil, session=evil)
    host.export(path=evil)
    host.kmsg.write_text(f'3,1,1,-;rnbd_client: {evil}\n')
    path = host.top / 'evil.html'
    host.run(f'report {path}')
    got = Page(dom(host, path))
    equal('elements', {'script', 'img'} & set(got.tags), set())
    equal('title', [text for text in got.text if text.startswith('rnbd report')] != [], True)
