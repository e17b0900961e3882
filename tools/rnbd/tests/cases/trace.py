# SPDX-License-Identifier: GPL-2.0
"""trace: logs of both hosts, whose clocks differ"""

import os
import random

from rig import Wrong, equal
import schema

PATH = 's1 ip:192.168.100.2@ip:192.168.100.1'
AHEAD = 98765.4321


class Logs:
    """Both hosts' lines, of requests whose parts are known"""

    def __init__(self, host):
        self.client, self.server = [], []
        self.files = [host.top / 'client.log', host.top / 'server.log']

    def line(self, at, event, text):
        return f'          <idle>-0       [001] d.h1.  {at:.6f}: rtrs_{event}: {text}'

    def request(self, at, slot, parts, write=False, size=4096, session=PATH):
        """Parts in microseconds: queue, there, server's queue, disk, back, completion"""
        times = [at]
        for part in parts:
            times.append(times[-1] + part / 1e6)
        kind = 'write' if write else 'read'
        submit, post, receive, dispatch, reply, answer, complete = times
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
        for lines, path in zip((self.client, self.server), self.files):
            path.write_text('# tracer: nop\n' +
                            '\n'.join(self.line(*event) for event in sorted(lines)) + '\n')

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
        log.write('CPU:1 [LOST 12 EVENTS]\n: rtrs_clt_post: s1: slot 1 (0)\n'
                  ' x-1 [0] 1.0: rtrs_clt_post: s1: slot 99999 (0)\n'
                  ' x-1 [0] 2.0: rtrs_clt_complete: s1: slot 5 (0)\n'
                  ' x-1 [0] nan: rtrs_clt_\n: rtrs_\nrtrs_clt_submit\n'
                  ' x-1 [0] 3.0: rtrs_clt_submit: s1: slot 5: write of\n'
                  ' x-1 [0] 4.0: rtrs_clt_park: s1: slot 5 (0)\n'
                  ' x-1 [0] 4.1: rtrs_clt_failover: ' + PATH + ': slot 5 (-103)\n'
                  ' x-1 [0] 5.0: rtrs_clt_complete: s1: slot 5 (0)\n')
    document = host.run(['trace', 's1', '--client-log', str(logs.files[0]), 'json']).json()
    equal('requests', document['requests'], 21)
    equal('lost', document['lost_events'], 12)
    odd = next(r for r in document['slowest'] if r['waited_for_path'])
    equal('failed over', odd['failed_over'], True)
    equal('post', odd['client_queue'], None)


def test_many_requests_are_fast_enough(host):
    document = some(host, 20000).run(host, 'json').json()
    equal('matched', document['with_server'], 20000)


def test_errors(host):
    host.says('trace s1 --client-log /nonexistent', "can't open", code=1)
    host.says('trace', 'trace NAME', code=2)
    host.says('trace s1', 'loaded', code=4)
    host.client()
    host.session()
    host.says('trace s2', "called 's2'", code=3)
    host.says('trace s1', "can't trace in", 'No such file', code=1)
    host.says('trace --record /nonexistent/x', "can't open", code=1)


def test_live(host):
    host.client()
    host.session()
    log = host.top / 'log'
    (host.top / 'tracing/instances').mkdir()
    host.says(f'trace --record {log} --seconds 0.1', "can't trace", code=1)
    equal('nothing is left', os.listdir(host.top / 'tracing/instances'), [])
