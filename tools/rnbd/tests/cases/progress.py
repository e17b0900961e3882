# SPDX-License-Identifier: GPL-2.0
"""What a command waits for, shown on a terminal only"""

import os
import subprocess

from cases.load import client
from cases.top import Terminal
from rig import CTL, equal


def waiting_map(host):
    """A write to map_device ends when somebody reads this."""
    host.client()
    host.session()
    host.disk()
    fifo = host.sys / CTL / 'map_device'
    fifo.unlink()
    os.mkfifo(fifo)
    return fifo


def test_of_map(host):
    fifo = waiting_map(host)
    terminal = Terminal(host, 'map vol1 from s1')
    terminal.expect('\rmap vol1 from s1: 1 s\rmap vol1 from s1: 2 s')
    fifo.read_text()
    terminal.expect('2 s\r\033\\[K' + f'{host.dev}/rnbd0')
    equal('code', terminal.end(), 0)


def test_of_map_in_a_pipe(host):
    fifo = waiting_map(host)
    process = subprocess.Popen(host.command('map vol1 from s1'), env=host.environment(),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        process.wait(1.5)
    except subprocess.TimeoutExpired:
        fifo.read_text()
    equal('said', process.communicate(timeout=60), (f'{host.dev}/rnbd0\n', ''))


def test_of_perf(host):
    client(host)
    seen = host.on_terminal('perf rnbd0 --seconds 1.5')
    equal('shown', f'\r{host.dev}/rnbd0: 1 of 2 s\r\033[K' in seen, True)
    equal('quick', '\r' in host.on_terminal('perf rnbd0 --seconds 0.2'), False)
