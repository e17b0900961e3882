# SPDX-License-Identifier: GPL-2.0
"""ping and perf, on a file in the place of a disk"""

import signal
import subprocess
import threading
import time

from rig import Wrong, between, equal
import schema


def client(host, size=1 << 20, **session):
    host.client()
    host.session(**session)
    host.path(net=0)
    host.path(net=1, state='disconnected')
    host.disk()
    (host.dev / 'rnbd0').write_bytes(bytes(size))


class Heartbeats:
    """They come, ten each second if not told otherwise; the file is always whole."""

    def __init__(self, host, interval=0.1):
        self.interval = interval
        self.file = (host.sys / 'class/rtrs-client/s1/paths/ip:192.168.100.2@ip:192.168.100.1/stats' /
                     'hb_latency')
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.beat)

    def beat(self):
        nr = 101
        while not self.done.wait(self.interval):
            new = self.file.with_name('new')
            new.write_text(f'0 0 0 0 {nr} 0\n')
            new.replace(self.file)
            nr += 1

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def test_ping_without_heartbeats(host):
    """The last one's time says nothing when no other one comes."""
    client(host, hb_interval_ms=100)
    done = host.says('ping rxe0 -c 3 --interval 0.4', 'seq=1 no heartbeat since',
                     'seq=3 no heartbeat since', '3 sent, 0 answered', code=1)
    equal('times', 'time=' in done.out, False)
    (host.sys / 'class/rtrs-client/s1/paths/ip:192.168.100.2@ip:192.168.100.1/stats' /
     'hb_latency').unlink()
    host.says('ping rxe0 -c 1', 'time=12.3us')


def test_ping_of_paths_whose_heartbeats_are_rare(host):
    """A path isn't asked more often than its heartbeats come, but once in any case."""
    client(host, hb_interval_ms=2000)
    with Heartbeats(host, 0.5):
        targets = {t['type']: t for t in
                   host.run('ping rnbd0 -c 3 --interval 0.1 -j', 1).json()['targets']}
        equal('disk', targets['disk']['sent'], 3)
        document = host.run('ping rxe0 -c 1 --interval 0.1 -j').json()
        schema.check('ping', document)
        equal('path', [(t['sent'], t['answered']) for t in document['targets']], [(1, 1)])
        started = time.monotonic()
        target, = host.run('ping rxe0 -c 30 --interval 0.1 -j').json()['targets']
        between('sent', target['sent'], 2, 2 * (time.monotonic() - started) + 1)


def test_ping_while_statistics_are_reset(host):
    """A counter that begins at 0 again is no heartbeat."""
    client(host, hb_interval_ms=60000)
    stats = 'class/rtrs-client/s1/paths/ip:192.168.100.2@ip:192.168.100.1/stats'
    with subprocess.Popen(host.command('ping rnbd0 -c 300 --interval 0.1'), env=host.environment(),
                          stdout=subprocess.PIPE, text=True) as ping:
        def lines_up_to(words):
            lines = ''
            for line in ping.stdout:
                lines += line
                if words in line:
                    return lines
            raise Wrong(lines)

        lines_up_to('disk rnbd0: seq=2')
        host.attributes(stats, hb_latency='0 0 0 0 0 0')
        got = lines_up_to('disk rnbd0: seq=5')
        host.attributes(stats, hb_latency='0 0 0 0 1 0')
        lines_up_to('path ip:192.168.100.2@ip:192.168.100.1: seq=1 time=')
        host.attributes(stats, hb_latency='0 0 0 0 5 0')
        lines_up_to('path ip:192.168.100.2@ip:192.168.100.1: seq=2 time=')
        host.attributes(stats, hb_latency='0 0 0 0 2 0')
        lines_up_to('path ip:192.168.100.2@ip:192.168.100.1: seq=3 time=')
        ping.send_signal(signal.SIGINT)
        ping.stdout.read()
    equal('heartbeat', '192.168.100.1' in got, False)


def test_ping_session(host):
    client(host)
    with Heartbeats(host):
        done = host.says('ping s1 --count 2 --interval 0.5', 'seq=1 time=12.3us', 'seq=2',
                         'disk rnbd0: seq=2 time=', 'ip:192.168.101.1: seq=1 is disconnected',
                         'min/mean/max 12.3us/12.3us/12.3us', '2 sent, 0 answered', code=1)
    equal('lines', len(done.out.splitlines()), 2 * 3 + 1 + 3)


def test_ping_path_and_device(host):
    client(host)
    with Heartbeats(host):
        out = host.run('ping rxe0 -c 1').out
        equal('disk', 'disk' in out, False)
        document = host.run('ping rnbd0 -c 1 -j', 1).json()
    schema.check('ping', document)
    equal('answered', [t['answered'] for t in document['targets']], [1, 0, 1])
    host.path(net=0, state='connected')
    host.attributes('class/rtrs-client/s1/paths/ip:192.168.100.2@ip:192.168.100.1',
                    cur_latency='0 ns')
    host.attributes('class/rtrs-client/s1', hb_interval_ms=500)
    host.says('ping rxe0 -c 1', 'no heartbeat', code=1)
    host.disk(state='closed')
    host.says('ping rnbd0 -c 1', 'rnbd0 is closed', 'rnbd health', code=1)
    host.says('ping nothing', "called 'nothing'", code=3)
    host.says('ping rxe0 -c 0', 'no value', code=2)


def test_ping_until_interrupted(host):
    client(host)
    with Heartbeats(host), subprocess.Popen(
            host.command('ping rxe0 --interval 0.1'), env=host.environment(),
            stdout=subprocess.PIPE, text=True) as ping:
        for line in ping.stdout:
            if 'seq=3' in line:
                break
        ping.send_signal(signal.SIGINT)
        rest = ping.stdout.read()
    equal('code', ping.returncode, 0)
    equal('summary', 'min/mean/max' in rest, True)


def test_perf(host):
    client(host)
    done = host.says('perf rnbd0 --seconds 0.3 --depth 4', 'random reads of 4096 bytes, 4 at a time',
                     'IOPS', 'P99.9')
    equal('lines', len(done.out.splitlines()), 3)
    document = host.run('perf vol1 -t 0.3 -q 2 -s 64K --sequential json').json()
    schema.check('perf', document)
    equal('size', document['block_size'], 65536)
    if not 0 < document['latency_us']['p50'] <= document['latency_us']['p99_9']:
        raise Wrong(document)
    if document['latency_us']['p50'] > document['max_us'] * 1.2:
        raise Wrong(document)


def test_perf_errors(host):
    client(host, size=1024)
    host.says('perf rnbd0', 'less than 4096', code=1)
    host.disk(n=1, path='vol2')
    host.says('perf rnbd1', "can't open", 'No such file', code=1)
    host.disk(n=1, path='vol2', state='closed')
    host.says('perf rnbd1', 'rnbd1 is closed', 'rnbd health', code=1)
    host.says('perf vol3', "called 'vol3'", code=3)
    for wrong in '--depth 0', '--depth 2000', '--size 1000', '--size 0', '--seconds 0':
        host.says(f'perf rnbd0 {wrong}', 'no value', code=2)
    host.says('list --depth 3', 'options', code=2)
