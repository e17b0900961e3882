# SPDX-License-Identifier: GPL-2.0
"""A made-up host for the tool: files in the shape of sysfs, and steps to check what it says."""

import contextlib
import errno
import json
import os
import pathlib
import pty
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

CLIENT = 'class/rtrs-client'
SERVER = 'class/rtrs-server'
CTL = 'class/rnbd-client/ctl'
EXPORTS = 'class/rnbd-server/ctl/devices'


class Wrong(Exception):
    """What a test found"""


class Skip(Exception):
    """What a test lacks on this machine"""


def between(what, value, low, high):
    if not low <= value <= high:
        raise Wrong(f'{what}: {value}, expected {low} to {high}')


def equal(what, got, want):
    if got != want:
        raise Wrong(f'{what}: {got!r}\nexpected: {want!r}')


class Build:
    """The tool with sanitizers, and what has writes refused."""

    def __init__(self, work):
        self.work = pathlib.Path(work)
        self.tool = self.work / 'rnbd'
        self.refuse = self.work / 'refuse.so'
        flags = '-O1 -g -Werror'
        if self.compiles('-fsanitize=address,undefined'):
            flags += ' -fsanitize=address,undefined -fno-sanitize-recover=undefined'
        self.run('make', '-s', '-C', HERE.parent, f'OUT={self.work}', f'CFLAGS={flags}',
                 f'{self.tool}')
        self.run(os.environ.get('CC', 'cc'), '-D_GNU_SOURCE', '-Wall', '-Werror', '-shared',
                 '-fPIC', '-o', self.refuse, HERE / 'refuse.c', '-ldl')

    def run(self, *command):
        subprocess.run([str(c) for c in command], check=True)

    def compiles(self, flags):
        return not subprocess.run(
            [os.environ.get('CC', 'cc'), '-x', 'c', *flags.split(), '-o', self.work / 'try', '-'],
            input='int main(void) { return 0; }', text=True, capture_output=True).returncode


class Result:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    def json(self):
        return json.loads(self.out)


class Host:
    def __init__(self, build):
        self.build = build

    def __enter__(self):
        self.top = pathlib.Path(tempfile.mkdtemp(dir=self.build.work))
        for name in 'sys', 'dev', 'tracing', 'bin':
            (self.top / name).mkdir()
        self.sys = self.top / 'sys'
        self.dev = self.top / 'dev'
        self.kmsg = self.top / 'kmsg'
        self.volumes = self.top / 'volumes'
        self.server_conf = self.top / 'server.conf'
        # This driver's modules are installed.
        self.program('modinfo', 'echo "listen:x (bool)"; echo "slot_size:x (uint)"\n')
        self.kmsg.write_text('6,1,1,-;rnbd_client: an old line\n')
        self.name('client1')
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.top)

    # ---- making up ----

    def attributes(self, folder, **values):
        """Attributes of that name; a value of None takes one away."""
        folder = self.sys / folder
        folder.mkdir(parents=True, exist_ok=True)
        for name, value in values.items():
            path = folder / name
            if value is None:
                path.unlink()
            else:
                path.write_text(f'{value}\n' if value != '' else '')

    def client(self):
        self.attributes(CTL, map_device='')
        (self.sys / CTL / 'devices').mkdir()
        (self.sys / CLIENT).mkdir(parents=True)
        self.port('rxe0')
        self.port('rxe1')

    def server(self):
        (self.sys / EXPORTS).mkdir(parents=True)
        (self.sys / SERVER).mkdir(parents=True)
        self.attributes('module/rtrs_server/parameters', max_memory=1024, slot_size=4096)
        self.attributes('devices/rtrs_server/stats', memory_used=0, memory_waits=0)

    def port(self, hca, state='4: ACTIVE'):
        self.attributes(f'class/infiniband/{hca}/ports/1', state=state)

    def session(self, name='s1', **more):
        values = dict(add_path='', mp_policy='min-inflight (MI: 1)', max_reconnect_attempts=-1,
                      reconnect_delay_ms=1000, reconnect_delay_max_ms=30000,
                      hb_interval_ms=5000, hb_max_missed=5, failover_timeout=30,
                      unfenced_delay_ms=5000, fencing=1)
        values.update(more)
        self.attributes(f'{CLIENT}/{name}', **values)
        (self.sys / CLIENT / name / 'paths').mkdir()

    def path(self, session='s1', net=0, state='connected', **stats):
        """Returns its directory below sysfs."""
        src, dst = f'ip:192.168.{100 + net}.2', f'ip:192.168.{100 + net}.1'
        folder = f'{CLIENT}/{session}/paths/{src}@{dst}'
        self.attributes(folder, state=state, src_addr=src, dst_addr=dst, hca_name=f'rxe{net}',
                        hca_port=1, cur_latency='12345 ns', last_error=0, reconnect='', disconnect='',
                        remove_path='')
        values = dict(rdma='10 40960 20 163840 3 1', reconnects='0 0', reset_all='',
                      hb_latency=' '.join(['0'] * 4 + ['100'] + ['0'] * 19))
        values.update(stats)
        self.attributes(folder + '/stats', **values)
        return folder

    def disk(self, n=0, session='s1', path='vol1', mode='rw', state='open', sectors=2097152,
             server_sectors=None):
        folder = f'block/rnbd{n}'
        self.attributes(folder, size=sectors, ro=int(mode == 'ro'),
                        stat='100 0 800 50 200 0 1600 150 2 0 0 0 0 0 0 10 20')
        self.attributes(folder + '/rnbd', session=session, mapping_path=path, access_mode=mode,
                        state=state, unmap_device='', remap_device='', resize='',
                        wwid='naa.6001405a',
                        uuid='6f1d6e0a-6f5f-4d6c-8e0a-1b2c3d4e5f60')
        # Older modules do not have it.
        if server_sectors is not None:
            self.attributes(folder + '/rnbd', server_sectors=server_sectors)
        return folder

    def export(self, disk='sda', session='s1', path='vol1', mode='rw', name=None):
        folder = f'{EXPORTS}/{disk}/sessions/{name or session}'
        self.attributes(f'{EXPORTS}/{disk}/block_dev', size=4096)
        self.attributes(folder, mapping_path=path, access_mode=mode, read_only=int(mode == 'ro'),
                        force_close='')
        return folder

    def server_path(self, session='s1', net=0):
        src, dst = f'ip:192.168.{100 + net}.1', f'ip:192.168.{100 + net}.2'
        folder = f'{SERVER}/{session}/paths/{src}@{dst}'
        self.attributes(folder, src_addr=src, dst_addr=dst, hca_name=f'rxe{net}', hca_port=1,
                        disconnect='')
        self.attributes(folder + '/stats', rdma='20 163840 10 40960 0', reset_all='')
        return folder

    def pair(self):
        """A client with a session of two paths and a disk, and its server, on one host"""
        self.client()
        self.session()
        self.path(net=0)
        self.path(net=1)
        self.disk()
        self.server()
        self.server_path(net=0)
        self.server_path(net=1)
        self.export()

    def refuse(self, attribute, error, log=''):
        """Writes to the attribute fail; the kernel's log gets the lines."""
        records = ''.join(f'3,2,2,-;{line}\n' for line in log.splitlines())
        (self.sys / (attribute + '.refuse')).write_text(f'{getattr(errno, error)}\n{records}')

    def lists(self, text):
        """Servers list these volumes: lines as /dev/rnbd-discover has them."""
        (self.dev / 'rnbd-discover').write_text('')
        (self.dev / 'rnbd-discover.answer').write_text(text)

    def program(self, name, script):
        """One that the tool runs"""
        path = self.top / 'bin' / name
        path.write_text('#!/bin/sh\n' + script)
        path.chmod(0o755)

    def name(self, name):
        """The host's name"""
        (self.top / 'hostname').write_text(f'{name}\n')

    # ---- running ----

    def environment(self):
        return {**os.environ, 'RNBD_SYSFS': str(self.sys), 'RNBD_DEV': str(self.dev),
                'RNBD_KMSG': str(self.kmsg), 'RNBD_TRACEFS': str(self.top / 'tracing'),
                'RNBD_VOLUMES': str(self.volumes), 'RNBD_SERVER_CONF': str(self.server_conf),
                'RNBD_LOCK': str(self.top / 'lock'), 'RNBD_HOSTNAME': str(self.top / 'hostname'),
                'PATH': f'{self.top}/bin:{os.environ["PATH"]}',
                'RNBD_SYNCED': str(self.top / 'synced'), 'RNBD_HOSTS': str(self.top / 'hosts'),
                'LD_PRELOAD': str(self.build.refuse), 'LC_ALL': 'C',
                'ASAN_OPTIONS': 'verify_asan_link_order=0'}

    def command(self, line):
        """A line as one types it, or a list of words"""
        return [self.build.tool, *(line.split() if isinstance(line, str) else line)]

    def run(self, line, code=0, timeout=60, raw=False):
        """@raw: what isn't UTF-8 may come; os.fsencode() has the bytes."""
        done = subprocess.run(self.command(line), env=self.environment(), capture_output=True,
                              encoding='utf-8', errors='surrogateescape' if raw else 'strict',
                              timeout=timeout)
        if done.returncode != code:
            raise Wrong(f'rnbd {line}: exit code {done.returncode}, expected {code}\n'
                        f'{done.stdout}{done.stderr}')
        return Result(done)

    def on_terminal(self, line, **environment):
        """What it prints on a terminal, which has no other input or output"""
        master, slave = pty.openpty()
        process = subprocess.Popen(self.command(line), stdin=subprocess.DEVNULL, stdout=slave,
                                   stderr=slave, env={**self.environment(), 'TERM': 'xterm',
                                                      **environment})
        os.close(slave)
        seen = b''
        # At the end, reading fails with EIO.
        with contextlib.suppress(OSError):
            while True:
                seen += os.read(master, 65536)
        os.close(master)
        process.wait()
        return seen.decode().replace('\r\n', '\n')

    def says(self, line, *words, code=0):
        """It ends so, and says all of that, on stdout or stderr."""
        done = self.run(line, code)
        for word in words:
            if word not in done.out + done.err:
                raise Wrong(f'rnbd {line} says nothing of {word!r}:\n{done.out}{done.err}')
        return done

    def refuses(self, line, cases, code=2):
        """Pairs of words, which take the place of {} in the line, and of what is said of them"""
        for words, why in cases:
            self.says(line.format(words), why, code=code)

    def written(self, attribute):
        return (self.sys / attribute).read_text().rstrip('\n')
