# SPDX-License-Identifier: GPL-2.0
"""Listings, as tables and as JSON"""

import os
import re

from rig import CLIENT, CTL, Wrong, equal
import schema


def test_without_modules(host):
    host.says('list', 'neither rnbd_client nor rnbd_server is loaded', code=4)
    host.says('client list', 'modprobe rnbd_client', code=4)
    host.says('server list', 'modprobe rnbd_server', code=4)


def test_nothing_mapped(host):
    host.client()
    for line, want in [('list', 'no devices\n'), ('session list', 'no sessions\n'),
                       ('path list', 'no paths\n'), ('volume list', 'no volumes\n'),
                       ('dump', 'no devices\nno sessions\nno paths\n'), ('list -H', ''),
                       ('stat', 'no devices, sessions or paths\n'), ('volume list -H', '')]:
        equal(line, host.run(line).out, want)
    equal('json', host.run('list json').json(), {'client': {'devices': []}})
    host.server()
    equal('both', host.run('list').out, 'client:\nno devices\n\nserver:\nno devices\n')


def test_colours(host):
    """Of states only, on a terminal only; they take no room in the table."""
    host.pair()
    host.path(net=1, state='disconnected')
    host.disk(n=1, path='open', state='closed')
    for line, states in [('client list', [('open', 32), ('closed', 31)]),
                         ('client session list', [('degraded', 33)]),
                         ('client path list', [('connected', 32), ('disconnected', 31)])]:
        plain = host.run(line).out
        equal(f'{line} in a pipe', '\033' in plain, False)
        seen = host.on_terminal(line, NO_COLOR='')
        equal(line, re.findall('\033\\[(\\d+)m(\\w+)\033\\[0m', seen),
              [(str(code), state) for state, code in states])
        equal(f'{line} but for colours', re.sub('\033\\[\\d+m', '', seen), plain)
        equal('NO_COLOR', host.on_terminal(line, NO_COLOR='1'), plain)
        equal('TERM', host.on_terminal(line, TERM='dumb'), plain)


def test_devices(host):
    host.client()
    host.session()
    host.path()
    host.disk()
    host.disk(n=10, path='dir/vol2', mode='ro', state='closed', sectors=3)
    out = host.run('list').out.splitlines()
    equal('table', [line.split() for line in out], [
        ['DEVICE', 'SESSION', 'VOLUME', 'SIZE', 'MODE', 'STATE'],
        [f'{host.dev}/rnbd0', 's1', 'vol1', '1G', 'rw', 'open'],
        [f'{host.dev}/rnbd10', 's1', 'dir/vol2', '1.5K', 'ro', 'closed']])
    equal('no headings', host.run('list -H').out.splitlines()[0].split(), out[1].split())
    equal('bytes', host.run('list -b -H').out.split()[3], '1073741824')


def test_sessions_and_paths(host):
    host.pair()
    host.path(net=1, state='disconnected')
    equal('sessions', host.run('client sessions list -H').out.split(),
          ['s1', 'degraded', '1', '2', '1', 'min-inflight'])
    equal('paths', [line.split() for line in host.run('client path list -H').out.splitlines()], [
        ['s1', 'ip:192.168.100.2@ip:192.168.100.1', 'rxe0', '1', '3', '0', 'connected'],
        ['s1', 'ip:192.168.101.2@ip:192.168.101.1', 'rxe1', '1', '3', '0', 'disconnected']])
    host.says('server paths list', 'ip:192.168.100.1@ip:192.168.100.2')
    host.says('list all', 'client:', 'server:', 'sda', 'rnbd0')
    host.says('list nonsense', "not 'nonsense'", code=2)


def test_json_follows_the_schema(host):
    host.pair()
    for line in 'list json', 'json list all', 'dump --json', 'server list -j', 'path list json':
        schema.check('list', host.run(line).json())
    for name in 'rnbd0', 's1', 'rxe0':
        schema.check('object', host.run(f'client show {name} json').json())
    schema.check('object', host.run('server show sda json').json())
    everything = host.run('dump json').json()
    equal('sides', sorted(everything), ['client', 'server'])
    equal('kinds', sorted(everything['server']), ['devices', 'paths', 'sessions'])
    equal('name', everything['client']['devices'][0]['wwid'], 'naa.6001405a')
    equal('failed over', everything['client']['paths'][0]['failed_over'], 1)


def test_driver_without_some_attributes(host):
    host.client()
    host.session()
    for name in 'failover_timeout', 'hb_interval_ms', 'unfenced_delay_ms', 'fencing':
        host.attributes('class/rtrs-client/s1', **{name: None})
    folder = host.path()
    host.attributes(folder + '/stats', hb_latency=None)
    host.attributes(folder, cur_latency=None)
    folder = host.disk()
    host.attributes(folder + '/rnbd', wwid='\n')
    equal('disk without a name', host.run('show rnbd0 json').json()['wwid'], None)
    host.attributes(folder + '/rnbd', wwid=None)
    equal('not known', host.run('show rnbd0 json').json()['wwid'], None)
    everything = host.run('dump json').json()
    schema.check('list', everything)
    equal('timeout', everything['client']['sessions'][0]['failover_timeout'], None)
    equal('heartbeat', everything['client']['paths'][0]['heartbeat_us']['p99'], None)


def test_show(host):
    host.pair()
    host.says('show rnbd0', 'mapping_path            vol1', 'wwid                    naa.6001405a')
    host.says('client show vol1@s1', 'device', 'rnbd0')
    host.says('client show s1', 'failover_timeout        30', 'fencing                 1')
    host.says('client show s1/192.168.101.1', 'hca_name                rxe1')
    host.says('path show s1 rxe1:1', '2 paths', code=3)
    host.says('client path show s1 rxe1:1', 'heartbeat_us.p50')
    host.says('client session show s1', 'mp_policy')
    host.says('client device show rnbd0', 'access_mode')
    host.says('show s1', 'say which one', code=3)
    host.says('show nothing', "called 'nothing'", code=3)
    host.says('show', 'NAME', code=2)


def test_names_from_other_hosts_cannot_write_on_the_terminal(host):
    """Escapes, also in eight bits, and what isn't UTF-8, wherever names are printed"""
    host.client()
    host.server()
    raw = os.fsdecode(b's\x1b[2J\xc2\x9b1m\x7f\xff\xc3')
    host.session(raw)
    host.path(raw, state='disconnected', reconnects='3 0')
    folder = host.disk(session='x', path='x', state='closed')
    for name, value in ('session', os.fsencode(raw)), ('mapping_path', b'\x9b2J\xe2\x82vol\xc3\xa9'):
        (host.sys / folder / 'rnbd' / name).write_bytes(value + b'\n')
    host.export(session=raw, path='\x1b[2Jvol\x9d')
    host.server_path(raw)
    clean = 's?[2J?1m???'
    for line, code in [('list all', 0), ('list all json', 0), ('client stat', 0), ('dump -j', 0),
                       ('stat json', 0), ('stat --prometheus', 0), ('top --count 1', 0),
                       ('health', 2), ('health json', 2), ('client ping rxe0 -c 1', 1),
                       ('client recover -v', 0), ('client show rxe0', 0),
                       (['client', 'show', clean], 0), ('server show sda', 0),
                       ('path disconnect rxe0', 3)]:
        done = host.run(line, code, raw=True)
        for c in done.out + done.err:
            if ord(c) < 32 and c != '\n' or 127 <= ord(c) < 160 or 0xdc80 <= ord(c) <= 0xdcff:
                raise Wrong(f'{line}: {done.out}{done.err!r}')
    equal('name', host.run('client sessions list json').json()['client']['sessions'][0]['name'],
          clean)
    equal('path', host.run('client list json').json()['client']['devices'][0]['mapping_path'],
          '?2J??volé')
    host.run(['client', 'session', 'reconnect', clean])
    equal('written', host.written(f'{CLIENT}/{raw}/paths/ip:192.168.100.2@ip:192.168.100.1/'
                                  'reconnect'), '1')


def test_kernel_log_cannot_write_on_the_terminal(host):
    host.client()
    host.refuse(CTL + '/map_device', 'EIO', 'rnbd_client: \x1b[2J\x9b')
    host.says('map vol1 from s1', 'kernel: rnbd_client: ?[2J?', code=1)


def test_columns_of_names_that_are_no_ascii(host):
    host.client()
    host.disk(path='é' * 8)
    host.disk(n=1, path='e' * 8)
    first, second = host.run('list -H').out.splitlines()
    equal('width', len(first), len(second))


def test_name_of_several_things(host):
    host.client()
    host.session()
    host.path()
    host.session('vol1')
    host.path('vol1', net=1)
    host.disk()
    host.says('show vol1', "'vol1' means several things", 'device', 'session', code=3)
    host.says('device show vol1', 'rnbd0')
    host.says('session show vol1', 'vol1')
    host.session('rxe0')
    host.says('show rxe0', 'several', 'session', 'path', code=3)


def test_second_name_of_an_export(host):
    host.server()
    host.server_path()
    host.export()
    host.export(path='again', name='s1.2')
    devices = host.run('list json').json()['server']['devices']
    equal('sessions', [d['session'] for d in devices], ['s1', 's1'])
