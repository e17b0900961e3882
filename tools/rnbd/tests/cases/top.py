# SPDX-License-Identifier: GPL-2.0
"""top, in a terminal of 80 columns and without one"""

import contextlib
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

from rig import CLIENT, Wrong, equal


def busy(host):
    host.pair()
    host.session('s2')
    host.path('s2', net=0, state='disconnected')
    host.disk(n=1, session='s2', path='vol2', state='closed')


class Terminal:
    def __init__(self, host, line, columns=80, rows=24):
        self.master, slave = pty.openpty()
        self.before = termios.tcgetattr(self.master)[:4]
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
        self.process = subprocess.Popen(host.command(line), env=host.environment(), stdin=slave,
                                        stdout=slave, stderr=slave, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY,
                                                                       0))
        os.close(slave)
        self.seen = ''

    def expect(self, pattern, seconds=30):
        until = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            ready, _, _ = select.select([self.master], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise Wrong(f'no {pattern!r} in {self.seen[-500:]!r}')
            try:
                self.seen += os.read(self.master, 65536).decode()
            except OSError as e:
                raise Wrong(f'it ended without {pattern!r}: {self.seen!r}') from e

    def press(self, key):
        self.seen = ''
        os.write(self.master, key.encode())

    def await_stop(self):
        until = time.monotonic() + 30
        stat = pathlib.Path(f'/proc/{self.process.pid}/stat')
        while stat.read_text().rsplit(')', 1)[1].split()[0] != 'T':
            if time.monotonic() > until:
                raise Wrong('it did not stop')
            time.sleep(0.01)

    def is_restored(self):
        return termios.tcgetattr(self.master)[:4] == self.before

    def end(self):
        code = self.process.wait(30)
        os.close(self.master)
        return code


def screen_lines(text):
    """Of the last screen that was drawn"""
    text = re.sub(r'\033\[\??[0-9;]*[a-zA-GI-Z]', '', text.split('\033[H')[-1])
    return text.split('\r\n')


def test_in_a_terminal(host):
    busy(host)
    terminal = Terminal(host, 'top --interval 0.3')
    terminal.expect(r'\033\[J')
    lines = screen_lines(terminal.seen)
    for line in lines:
        if len(line) > 80:
            raise Wrong(f'more than 80 columns: {line!r}')
    for want in 'by I/O', 'SESSION, PATHS', 'P99', 's1 (server)', 'CLOSED', 'DOWN', '  192.168.101.1', 'up':
        equal(want, any(want in line for line in lines), True)
    terminal.press('n')
    terminal.expect('by name')
    terminal.press('h')
    terminal.expect('sort by I/O')
    terminal.press('h')
    terminal.expect('DEVICE')
    terminal.press('q')
    terminal.expect(r'\033\[\?1049l')
    equal('code', terminal.end(), 0)


def test_ends_by_interrupt_and_restores_the_terminal(host):
    busy(host)
    terminal = Terminal(host, 'top', columns=40, rows=5)
    terminal.expect(r'\033\[J')
    equal('lines', len(screen_lines(terminal.seen)) <= 5, True)
    terminal.press('\x03')
    terminal.expect(r'\033\[\?25h\033\[\?1049l')
    equal('code', terminal.end(), 0)


def test_narrow(host):
    """No line is longer than the screen; of a long address the end is shown."""
    busy(host)
    host.session('s3')
    folder = host.path('s3', net=2)
    long = f'{CLIENT}/s3/paths/ip:fd00::1@ip:fd00:1111:2222:3333:4444:5555:6666:7788'
    os.rename(host.sys / folder, host.sys / long)
    terminal = Terminal(host, 'top --interval 0.3', columns=40, rows=24)
    terminal.expect(r'\033\[J')
    for line in screen_lines(terminal.seen):
        if len(line) > 40:
            raise Wrong(f'more than 40 columns: {line!r}')
    terminal.press('q')
    terminal.expect(r'\033\[\?1049l')
    equal('code', terminal.end(), 0)
    out = host.run('top --count 1').out
    equal('end of the address', '6666:7788 up' in out, True)


def test_stopped_and_continued(host):
    """The shell has its terminal back meanwhile."""
    busy(host)
    terminal = Terminal(host, 'top --interval 0.3')
    terminal.expect(r'\033\[J')
    equal('raw', terminal.is_restored(), False)
    terminal.seen = ''
    terminal.process.send_signal(signal.SIGTSTP)
    terminal.expect(r'\033\[\?25h\033\[\?1049l')
    terminal.await_stop()
    equal('restored', terminal.is_restored(), True)
    terminal.process.send_signal(signal.SIGCONT)
    terminal.expect(r'\033\[\?1049h\033\[\?25l(.|\n)*\033\[J')
    equal('raw again', terminal.is_restored(), False)
    equal('entered', terminal.seen.count('\033[?1049h'), 1)
    terminal.process.send_signal(signal.SIGQUIT)
    terminal.expect(r'\033\[\?25h\033\[\?1049l')
    equal('code', terminal.process.wait(30), 0)
    equal('restored', terminal.is_restored(), True)
    terminal.end()


def catches(pid, number):
    """Does the process have a handler for that signal?"""
    status = pathlib.Path(f'/proc/{pid}/status').read_text()
    return int(re.search(r'SigCgt:\s*(\w+)', status)[1], 16) >> number - 1 & 1


def test_signals_while_it_reads_are_not_late(host):
    """They don't wait until the screen is refreshed the next time."""
    for number in signal.SIGTSTP, signal.SIGINT:
        shutil.rmtree(host.sys, ignore_errors=True)
        busy(host)
        state = host.sys / 'block/rnbd0/rnbd/state'
        state.unlink()
        os.mkfifo(state)
        terminal = Terminal(host, 'top --interval 600')
        # The first time it reads that; then it begins to draw, and reads it again.
        with open(state, 'wb', buffering=0) as writer:
            writer.write(b'open\n')
            until = time.monotonic() + 30
            while not catches(terminal.process.pid, signal.SIGTSTP):
                if time.monotonic() > until:
                    raise Wrong('it has no handler')
                time.sleep(0.01)
            terminal.process.send_signal(number)
            os.rename(host.sys / 'block/rnbd1/rnbd/state', state)
            # A signal may have ended that already.
            with contextlib.suppress(BrokenPipeError):
                writer.write(b'open\n')
        terminal.expect(r'\033\[\?1049l', seconds=20)
        if number == signal.SIGTSTP:
            terminal.await_stop()
            terminal.process.send_signal(signal.SIGCONT)
            terminal.process.send_signal(signal.SIGINT)
        equal('code', terminal.end(), 0)


def test_without_a_terminal(host):
    busy(host)
    done = host.says('top --count 2 --interval 0.1', 'rnbd top - ', 'rnbd0', '  192.168.100.1')
    equal('escapes', '\033' in done.out, False)
    host.says('top nonsense', 'top', code=2)


def test_order(host):
    busy(host)
    host.disk(n=2, path='vol3')

    def order(out):
        return [line.split()[0] for line in out.splitlines() if re.match(r'rnbd\d', line)]

    equal('idle: by name', order(host.run('client top -c 1').out), ['rnbd0', 'rnbd1', 'rnbd2'])
    with subprocess.Popen(host.command('client top -c 2 -i 1'), env=host.environment(),
                          stdout=subprocess.PIPE, text=True) as top:
        time.sleep(0.6)
        host.attributes('block/rnbd2', stat='900 0 800 50 200 0 1600 150 2 0 0 0 0 0 0 10 20')
        out = top.stdout.read()
    equal('busy first', 'rnbd2' in order(out)[0::3], True)
