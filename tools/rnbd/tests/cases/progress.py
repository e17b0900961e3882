# SPDX-License-Identifier: GPL-2.0
"""What a command waits for, shown on a terminal only"""

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading

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


def test_of_map_on_a_dumb_terminal(host):
    fifo = waiting_map(host)
    threading.Timer(1.5, fifo.read_text).start()
    equal('said', host.on_terminal('map vol1 from s1', TERM='dumb'), f'{host.dev}/rnbd0\n')


def in_shell(host, script, columns):
    """What a shell with jobs prints on a terminal that wide"""
    pid, master = pty.fork()
    if not pid:
        os.execvpe('bash', ['bash', '-c', f'sleep 0.2; set -m; {script}', 'bash',
                            *map(str, host.command('map vol1 from s1'))],
                   {**host.environment(), 'TERM': 'xterm'})
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    seen = b''
    with contextlib.suppress(OSError):
        while True:
            seen += os.read(master, 65536)
    os.close(master)
    os.waitpid(pid, 0)
    return seen.decode()


def test_of_map_in_jobs(host):
    """One in the background shows nothing; the line is as narrow as the terminal."""
    for script, columns, want in ('"$@" & wait', 80, None), ('"$@"', 25, '\rmap v: 1 s\r'), \
            ('"$@"', 80, '\rmap vol1 from s1: 1 s\r'):
        (host.sys / CTL / 'map_device').unlink(missing_ok=True)
        if not (host.sys / CTL).exists():
            fifo = waiting_map(host)
        else:
            os.mkfifo(fifo)
        threading.Timer(3, fifo.read_text).start()
        out = in_shell(host, script, columns)
        equal(f'{script}: {out}', (want or '\rmap') in out, want is not None)
