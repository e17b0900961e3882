# SPDX-License-Identifier: GPL-2.0
"""trace: logs of both hosts, whose clocks differ"""

import os
import random
import shutil
import signal
import subprocess
import threading
import time

from rig import Wrong, between, equal
import schema

PATH = 's1 ip:192.168.100.2@ip:192.168.100.1'
AHEAD = 98765.4321


def raw(at, text, cpu=1, task='x'):
    """A line of tracefs"""
    return f'{task:>16}-{42:<7d} [{cpu:03d}] d.h1.  {at:.6f}: {text}'


class Logs:
    """Both hosts' lines, of requests whose parts are known"""

    def __init__(self, host):
        self.client, self.server = [], []
        self.realtime = None, None
        self.files = [host.top / 'client.log', host.top / 'server.log']

    def request(self, at, slot, parts, write=False, size=4096, session=PATH):
        """Parts in microseconds: queue, there, server's queue, disk, back, completion"""
        submit, post, receive, dispatch, reply, answer, complete = (
            at + sum(parts[:n]) / 1e6 for n in range(7))
        kind = 'write' if write else 'read'
        name = session.split()[0]
        self.client += [(submit, 'clt_submit', f'{name}: slot {slot}: {kind} of {size} bytes on '
                         'queue 1'),
                        (post, 'clt_post', f'{session}: slot {slot} (0)'),
                        (answer, 'clt_answer', f'{session}: slot {slot} (0)'),
                        (complete, 'clt_complete', f'{name}: slot {slot} (0)')]
        self.server += [(receive + AHEAD, 'srv_receive',
                         f'{session}: slot {slot}, connection 2, header at 0'),
                        (dispatch + AHEAD, 'srv_dispatch',
                         f'{session}: slot {slot}, {kind} {size} bytes (0)'),
                        (reply + AHEAD, 'srv_answer',
                         f'{session}: slot {slot}, {kind} {size} bytes (0)')]

    def write(self):
        heads = ['# rnbd: CLOCK_REALTIME is ahead by %.6f s\n' % ahead if ahead else ''
                 for ahead in self.realtime]
        for lines, path, head in zip((self.client, self.server), self.files, heads):
            path.write_text(head + '# tracer: nop\n' +
                            '\n'.join(raw(at, f'rtrs_{event}: {text}')
                                      for at, event, text in sorted(lines)) + '\n')

    def run(self, host, *more, server=True, code=0):
        self.write()
        line = ['trace', 's1', '--client-log', str(self.files[0]), *more]
        if server:
            line += ['--server-log', str(self.files[1])]
        return host.run(line, code)


def some(host, nr=300):
    logs = Logs(host)
    rnd = random.Random(1)
    at = 100.0
    for i in range(nr):
        at += rnd.uniform(200, 3000) / 1e6
        disk = 20000 if i == 77 else rnd.uniform(50, 90)
        logs.request(at, i % 16, [5, rnd.uniform(20, 30), 3, disk, rnd.uniform(20, 30), 4],
                     write=i % 3 == 0)
        if i == 77:
            at += 0.05
    return logs


def part(document, key):
    return next(p for p in document['parts'] if p['part'] == key)


def near(what, value, want, within):
    if value is None or abs(value - want) > within:
        raise Wrong(f'{what}: {value}, expected {want}')


def test_both_logs(host):
    document = some(host).run(host, 'json').json()
    schema.check('trace', document)
    equal('requests', document['requests'], 300)
    equal('matched', document['with_server'], 300)
    near('way there', part(document, 'way_there')['latency_us']['mean'], 25, 3)
    near('way back', part(document, 'way_back')['latency_us']['mean'], 25, 3)
    near('disk', part(document, 'server_disk')['max_us'], 20000, 2)
    slowest = document['slowest'][0]
    near('the slow one', slowest['server_disk'], 20000, 2)
    near('its total', slowest['total'], 20062, 10)
    equal('its slot', slowest['slot'], 77 % 16)


def test_without_the_server(host):
    document = some(host).run(host, 'json', server=False).json()
    schema.check('trace', document)
    equal('matched', document['with_server'], 0)
    equal('disk', part(document, 'server_disk')['latency_us']['p50'], None)
    near('remote', document['slowest'][0]['remote'], 20053, 10)


def test_text_and_slower(host):
    logs = some(host)
    out = logs.run(host).out
    for want in '300 requests, 300 with', 'server: its disk', 'SLOWEST':
        equal(want, want in out, True)
    equal('slower', len(logs.run(host, '--slower', '10000', 'json').json()['slowest']), 1)


def test_lines_that_mean_nothing(host):
    logs = some(host, 20)
    logs.request(200.0, 3, [1, 1, 1, 1, 1, 1], session='s11 a@b')
    logs.write()
    with open(logs.files[0], 'a') as log:
        log.write('\n'.join([
            'CPU:7 [LOST 12 EVENTS]', raw(0.9, 'rtrs_clt_fenced: s1: id 3', cpu=7),
            ': rtrs_clt_post: s1: slot 1 (0)',
            raw(1, 'rtrs_clt_post: s1: slot 99999 (0)'), raw(2, 'rtrs_clt_complete: s1: slot 5 (0)'),
            '               x-42      [001] d..1.  nan: rtrs_clt_', ': rtrs_', 'rtrs_clt_submit',
            'CPU:', 'CPU:1 [LOST', 'CPU:99999999999999999999', '[', '               x-42      [',
            raw(3, 'rtrs_clt_submit: s1: slot 5: write of'), raw(4, 'rtrs_clt_park: s1: slot 5 (0)'),
            raw(4.1, 'rtrs_clt_failover: ' + PATH + ': slot 5 (-103)'),
            raw(5, 'rtrs_clt_complete: s1: slot 5 (0)')]) + '\n')
    document = host.run(['trace', 's1', '--client-log', str(logs.files[0]), 'json']).json()
    equal('requests', document['requests'], 21)
    equal('lost', document['lost_events'], 12)
    odd = next(r for r in document['slowest'] if r['waited_for_path'])
    equal('failed over', odd['failed_over'], True)
    equal('post', odd['client_queue'], None)


def test_many_requests_are_fast_enough(host):
    document = some(host, 20000).run(host, 'json').json()
    equal('matched', document['with_server'], 20000)


def test_logs_with_the_time_of_day(host):
    """Requests come at even times, all alike: only the time of day tells which is which."""
    logs = Logs(host)
    for i in range(2000):
        logs.request(100 + i / 1000, 3, [5, 20, 3, 80, 20, 4])
    logs.realtime = 2e6, 2e6 - AHEAD + 0.0002
    document = logs.run(host, 'json').json()
    equal('matched', document['with_server'], 2000)
    equal('requests', document['requests'], 2000)
    near('way there', part(document, 'way_there')['max_us'], 20, 2)


def busy(host, seed, nr=40):
    """
    One request at a time on hosts that are busy: messages take long and not always the same
    time, and that a request was posted may be told when all is done. Times of day are by
    clocks of whole seconds. Returns the logs, and the disk's time by that of the request.
    """
    logs, began = Logs(host), []
    rnd = random.Random(seed)
    at = 100.0
    for i in range(nr):
        queue, there, waiting, back, done, pause = (
            rnd.uniform(low, high) for low, high in
            ((40, 300), (150, 3000), (20, 500), (150, 3000), (40, 500), (100, 2000)))
        late = rnd.uniform(100, 8000) if rnd.random() < 0.25 else 0
        began.append(at)
        logs.request(at, rnd.choice((3, 3, 3, 4)), [queue + late, there - late, waiting,
                                                    100 + 5 * i, back, done], size=16384)
        at += (queue + there + waiting + 100 + 5 * i + back + done + pause) / 1e6
    logs.realtime = 2e6, 2e6 - AHEAD + rnd.uniform(-0.999, 0.999)
    return logs, began


def nearest(times, time):
    return min(range(len(times)), key=lambda i: abs(times[i] - time))


def test_busy_hosts(host):
    """Each request is joined, and to the right one."""
    for seed in range(20):
        logs, began = busy(host, seed)
        document = logs.run(host, 'json').json()
        equal(f'requests, {seed}', document['requests'], 40)
        equal(f'matched, {seed}', document['with_server'], 40)
        for request in document['slowest']:
            i = nearest(began, request['at'])
            near(f'disk of {request}', request['server_disk'], 100 + 5 * i, 3)


def test_hosts_whose_times_of_day_are_wrong(host):
    logs = some(host)
    for wrong in 1.7, -30:
        logs.realtime = 2e6, 2e6 - AHEAD + wrong
        equal(f'matched, {wrong}', logs.run(host, 'json').json()['with_server'], 300)


def test_logs_that_cannot_be_joined(host):
    logs = some(host)
    logs.server = logs.server[:30]
    logs.client = logs.client[400:]
    done = logs.run(host, code=1)
    equal('says', "the logs can't be joined" in done.err, True)
    logs = some(host)
    logs.realtime = 2e6, 2e6
    done = logs.run(host, code=1)
    equal('says', "the logs can't be joined" in done.err, True)
    logs.server = []
    done = logs.run(host, code=1)
    equal('says', "the logs can't be joined" in done.err, True)


def test_join_of_many_requests_in_one_slot(host):
    logs = Logs(host)
    for i in range(60000):
        logs.request(100 + i / 1000 + (i * 7919 % 1000) / 2e6, 3, [5, 20, 3, 80, 20, 4])
    logs.realtime = 2e6, 2e6 - AHEAD
    logs.write()
    started = os.times()
    document = logs.run(host, 'json').json()
    equal('matched', document['with_server'], 60000)
    spent = os.times()
    if spent.children_user - started.children_user > 20:
        raise Wrong(f'{spent.children_user - started.children_user} s')


def test_logs_of_many_requests_without_the_time_of_day(host):
    """Each may be any other one of its slot: not all pairs are looked at."""
    logs = Logs(host)
    for i in range(60000):
        logs.request(100 + i / 1000 + (i * 7919 % 1000) / 2e6, 3, [5, 20, 3, 80, 20, 4])
    logs.write()
    line = ['trace', 's1', '--client-log', str(logs.files[0]), '--server-log', str(logs.files[1])]
    trace = subprocess.Popen(host.command(line), env=host.environment(), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(trace.pid, 0)
    trace.returncode = os.waitstatus_to_exitcode(status)
    if trace.returncode not in (0, 1):
        raise Wrong(f'exit code {trace.returncode}')
    between('MiB', usage.ru_maxrss >> 10, 1, 250)


def test_live_with_the_time_of_day(host):
    """The client's clocks are this host's; only they tell which request is which."""
    host.client()
    host.session()
    logs = Logs(host)
    for i in range(100):
        logs.request(100 + i / 50, 3, [5, 20, 3, 80, 20, 4])
    ahead = min(time.time() - time.monotonic() for _ in range(100))
    logs.realtime = None, ahead - AHEAD
    logs.write()
    template = host.top / 'tracing/template'
    for group in 'rtrs_clt', 'rtrs_srv':
        (template / 'events' / group).mkdir(parents=True)
        (template / 'events' / group / 'enable').write_text('')
    (host.top / 'tracing/instances').mkdir()
    for name in 'tracing_on', 'trace_clock':
        (template / name).write_text('')
    shutil.copy(logs.files[0], template / 'trace_pipe')
    line = ['trace', 's1', '--server-log', str(logs.files[1]), '--seconds', '0.2', 'json']
    document = host.run(line).json()
    equal('matched', document['with_server'], 100)
    near('way there', part(document, 'way_there')['max_us'], 20, 2)


def test_record_tells_the_time_of_day(host):
    log = host.top / 'log'
    with Kernel(host):
        host.run(f'trace --record {log} --seconds 0.1', timeout=20)
    head = log.read_text().splitlines()[0]
    ahead = float(head.removeprefix('# rnbd: CLOCK_REALTIME is ahead by ').removesuffix(' s'))
    near('ahead', ahead, time.time() - time.monotonic(), 5)


def test_errors(host):
    host.says('trace s1 --client-log /nonexistent', "can't open", code=1)
    host.says('trace', 'trace NAME', code=2)
    host.says('trace s1', 'loaded', code=4)
    host.client()
    host.session()
    host.says('trace s2', "called 's2'", code=3)
    host.says('trace s1', "can't trace in", 'No such file', code=1)
    host.says('trace --record /nonexistent/x', "can't open", code=1)


class Kernel:
    """What writes to trace_pipe, faster than it can be read, until it is told to stop"""

    def __init__(self, host):
        self.tracing = host.top / 'tracing'
        template = self.tracing / 'template'
        for group in 'rtrs_clt', 'rtrs_srv':
            (template / 'events' / group).mkdir(parents=True)
            (template / 'events' / group / 'enable').write_text('')
        (self.tracing / 'instances').mkdir()
        (template / 'tracing_on').write_text('1')
        (template / 'trace_clock').write_text('')
        os.mkfifo(self.tracing / 'pipe')
        (template / 'trace_pipe').symlink_to(self.tracing / 'pipe')
        self.pipe = os.open(self.tracing / 'pipe', os.O_RDWR | os.O_NONBLOCK)
        self.written, self.idle = 0, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def is_on(self):
        for name in 'instances', '.':
            for path in (self.tracing / name).glob('*/tracing_on'):
                try:
                    if path.parent.name != 'template' and path.read_text().startswith('0'):
                        return False
                except FileNotFoundError:
                    # It has just been removed.
                    return self.is_on()
        return True

    def run(self):
        while self.is_on() and not self.idle.is_set():
            try:
                os.write(self.pipe, b''.join(
                    b'  x-1 [000] d..1. %d.000000: rtrs_clt_post: s1 a@b: slot 1 (0)\n' %
                    (self.written + i) for i in range(50)))
                self.written += 50
            except BlockingIOError:
                pass

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.idle.set()
        self.thread.join()
        os.close(self.pipe)

    def ended(self, name):
        return (self.tracing / 'ended' / name).read_text()


def test_live_ends_under_load(host):
    log = host.top / 'log'
    with Kernel(host) as kernel:
        host.run(f'trace --record {log} --seconds 0.3', timeout=20)
        kernel.thread.join(20)
        equal('switched off', kernel.ended('tracing_on')[:1], '0')
        equal('clock', kernel.ended('trace_clock').strip(), 'mono')
        equal('nothing is left', os.listdir(kernel.tracing / 'instances'), [])
        lines = [line for line in log.read_text().splitlines() if 'rtrs_clt_post' in line]
        # What is made up may be on its way when it is switched off.
        between('all lines, to the last', len(lines), kernel.written - 100, kernel.written)


def test_live_ends_by_interrupt_and_without_a_reader(host):
    for number, stdout in (signal.SIGINT, subprocess.DEVNULL), (signal.SIGQUIT, subprocess.PIPE):
        shutil.rmtree(host.top / 'tracing')
        with Kernel(host) as kernel:
            with subprocess.Popen(host.command('trace --record /dev/stdout --seconds 600'),
                                  env=host.environment(), stdout=stdout,
                                  stderr=subprocess.DEVNULL) as trace:
                if trace.stdout:
                    trace.stdout.read(10)
                    trace.stdout.close()
                while kernel.written < 5000:
                    time.sleep(0.01)
                trace.send_signal(number)
                try:
                    trace.wait(20)
                finally:
                    trace.kill()
            equal('nothing is left', os.listdir(kernel.tracing / 'instances'), [])


def read(host, *lines):
    """What the tool makes of the client's log"""
    log = host.top / 'log'
    log.write_text('\n'.join(lines) + '\n')
    return host.run(['trace', 's1', '--client-log', str(log), 'json']).json()


SUBMIT, COMPLETE = 'rtrs_clt_submit: s1: slot %d: write of 512 bytes', 'rtrs_clt_complete: s1: slot %d (0)'


def test_lost_events_end_requests(host):
    """A slot's next request is not the one whose end was lost."""
    document = read(host, raw(1, SUBMIT % 5), 'CPU:1 [LOST 3 EVENTS]', raw(3, COMPLETE % 5),
                    raw(4, SUBMIT % 5), raw(5, COMPLETE % 5))
    equal('requests', document['requests'], 1)
    equal('of them', document['slowest'][0]['total'], 1e6)
    equal('lost', document['lost_events'], 3)
    equal('of unknown number', read(host, 'CPU:1 [LOST EVENTS]')['lost_events'], 1)


def test_lost_events_of_another_cpu(host):
    """What it lost lies between its last event before and its first one after that."""
    lines = [raw(1, SUBMIT % 5), raw(1.1, SUBMIT % 6, cpu=0), raw(1.2, SUBMIT % 7, cpu=0),
             raw(1.3, COMPLETE % 6, cpu=0), raw(1.5, 'rtrs_clt_fenced: s2: id 3'),
             # Here the end of the first one was lost, and the beginning of the next one.
             raw(5, COMPLETE % 5, cpu=0), raw(6, SUBMIT % 8, cpu=0), raw(7, COMPLETE % 8, cpu=0),
             'CPU:1 [LOST 2 EVENTS]']
    document = read(host, *lines, raw(10, 'rtrs_clt_fenced: s2: id 3'),
                    raw(11, COMPLETE % 7, cpu=0), raw(12, SUBMIT % 9, cpu=0), raw(13, COMPLETE % 9))
    equal('requests', sorted(r['slot'] for r in document['slowest']), [6, 9])
    equal('at the end', [r['slot'] for r in read(host, *lines)['slowest']], [6])
    lines.remove('CPU:1 [LOST 2 EVENTS]')
    document = read(host, *lines, 'CPU:2 [LOST 2 EVENTS]', raw(10, 'rtrs_clt_fenced: s2: id 3', cpu=2),
                    raw(12, SUBMIT % 9, cpu=0), raw(13, COMPLETE % 9))
    equal('from the beginning', [r['slot'] for r in document['slowest']], [9])


def test_names_of_tasks_mean_nothing(host):
    names = '[LOST 9', 'CPU:1 [LOST 9 E', '0.5: rtrs_clt_p', ': rtrs_', '[2]', '1: rtrs_srv_x:', 'a b'
    for name in names:
        document = read(host, raw(1, SUBMIT % 5, task=name), raw(2, COMPLETE % 5, task=name))
        equal(f'lost, {name!r}', document['lost_events'], 0)
        equal(f'total, {name!r}', [r['total'] for r in document['slowest']], [1e6])


def in_one_log(host, parts):
    """A hundred requests of these parts, both sides by one clock, are all matched."""
    logs = Logs(host)
    for i in range(100):
        logs.request(100 + i / 100, 3, parts)
    logs.client += [(at - AHEAD, *rest) for at, *rest in logs.server]
    document = logs.run(host, 'json', server=False).json()
    equal('matched', document['with_server'], 100)
    return document


def test_both_sides_in_one_log(host):
    """Their clock is one; the server may have a request before its posting is told."""
    document = in_one_log(host, [300, -200, 3, 80, 20, 300])
    near('way back', part(document, 'way_back')['latency_us']['mean'], 20, 2)


def test_posting_that_is_told_when_all_is_done(host):
    """Or not at all: with one clock the server's part is found without it."""
    document = in_one_log(host, [4000, -3990, 3, 80, 20, 4])
    equal('way there', part(document, 'way_there')['requests'], 0)
    near('disk', part(document, 'server_disk')['max_us'], 80, 2)


def test_request_that_one_log_lacks_on_the_server(host):
    """Another one that is much alike is not taken in its place."""
    logs = Logs(host)
    for i in range(100):
        logs.request(100 + i / 1000, 3, [300, -200, 3, 80, 20, 300])
    logs.client += [(at - AHEAD, *rest) for at, *rest in logs.server
                    if not 100.0498 < at - AHEAD < 100.0508]
    document = logs.run(host, 'json', server=False).json()
    equal('matched', document['with_server'], 99)
    for key in 'way_there', 'way_back':
        equal(key, part(document, key)['requests'] <= 99, True)
    near('way back', part(document, 'way_back')['max_us'], 20, 2)


def test_lines_are_sorted_by_time(host):
    document = read(host, raw(2, COMPLETE % 5), raw(1, SUBMIT % 5),
                    raw(1.7, f'rtrs_clt_post: {PATH}: slot 5 (0)'),
                    raw(1.6, f'rtrs_clt_answer: {PATH}: slot 5 (0)'))
    equal('requests', document['requests'], 1)
    equal('queue', document['slowest'][0]['client_queue'], 7e5)
    equal('less than nothing', document['slowest'][0]['remote'], None)


def test_live(host):
    host.client()
    host.session()
    log = host.top / 'log'
    (host.top / 'tracing/instances').mkdir()
    host.says(f'trace --record {log} --seconds 0.1', "can't trace", code=1)
    equal('nothing is left', os.listdir(host.top / 'tracing/instances'), [])


def test_live_with_errors(host):
    """What can't be read isn't waited for; a trace that can't be stopped has no end."""
    with Kernel(host) as kernel:
        pipe = kernel.tracing / 'template/trace_pipe'
        pipe.unlink()
        pipe.mkdir()
        host.says(f'trace --record {host.top}/log --seconds 50', "can't trace", 'Is a directory',
                  code=1)
        equal('nothing is left', os.listdir(kernel.tracing / 'instances'), [])
        pipe.rmdir()
        pipe.write_text(raw(1, SUBMIT % 5) + '\n')
        (kernel.tracing / 'template/tracing_on').unlink()
        host.says(f'trace --record {host.top}/log --seconds 0.1', "can't stop", 'No such file')


def test_record_that_cannot_be_written_for_a_while(host):
    """An error counts although what came later could be written."""
    os.mkfifo(host.top / 'log')
    with Kernel(host) as kernel:
        with subprocess.Popen(host.command(f'trace --record {host.top}/log --seconds 600'),
                              env=host.environment(), stderr=subprocess.PIPE, text=True) as trace:
            reader = os.open(host.top / 'log', os.O_RDONLY)
            os.read(reader, 100)
            os.close(reader)
            written = kernel.written
            # More than all pipes hold: something was written meanwhile.
            while kernel.written < written + 10000:
                time.sleep(0.01)
            reader = os.open(host.top / 'log', os.O_RDONLY)
            os.read(reader, 100)
            trace.send_signal(signal.SIGINT)
            while os.read(reader, 1 << 20):
                pass
            os.close(reader)
            equal('says', "can't write" in trace.stderr.read(), True)
        equal('code', trace.returncode, 1)
