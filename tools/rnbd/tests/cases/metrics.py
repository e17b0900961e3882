# SPDX-License-Identifier: GPL-2.0
"""metrics: what Prometheus gets of both ends"""

import os
import re
import shutil
import stat
import subprocess

from rig import EXPORTS, HERE, SERVER, Skip, Wrong, equal

MEMORY = 'devices/rtrs_server/stats'
SERIES = re.compile(r'(?P<name>\w+)(\{(?P<labels>.*)\})? (?P<value>\S+)$')


def latency(fast=0, slow=0):
    """Of reads, in 2 us, and in 4 s"""
    return (f'usecs 2 3 4 4194304 inf\nread {fast} 0 0 {slow} 0\nwrite 0 0 0 0 0\n'
            f'sum {fast * 2 + slow * 4000000} 0')


def everything(host):
    """A client and a server that have each metric, and no problem"""
    host.pair()
    for net in 0, 1:
        host.path(net=net, io_latency=latency(fast=10))
    host.disk(server_sectors=2097152)
    host.attributes('kernel/config/rnbd', listen=1, policy='listed')
    host.attributes(MEMORY, memory_used=1 << 20, memory_waits=7)
    host.attributes(f'{EXPORTS}/sda/stats', disk_latency=latency(fast=5),
                    wait_latency=latency(fast=5))


def series(host, *command):
    """{'name{labels}': (value, type)}, with each series once"""
    found, kinds = {}, {}
    for line in host.run(' '.join(command) or 'metrics').out.splitlines():
        if line.startswith('# TYPE'):
            name, kind = line.split()[2:]
            equal(f'{name} begins once', name in kinds, False)
            kinds[name] = kind
        if line.startswith('#'):
            continue
        match = SERIES.match(line)
        if not match:
            raise Wrong(f'no line of Prometheus: {line}')
        key = line.rpartition(' ')[0]
        equal(f'{key} occurs once', key in found, False)
        name = match['name']
        kind = kinds.get(name) or kinds[re.sub('_(bucket|count|sum)$', '', name)]
        found[key] = float(match['value']), kind
    return found


def promtool(*words, text=None):
    if not shutil.which('promtool'):
        raise Skip('promtool (Debian: prometheus)')
    done = subprocess.run(['promtool', *map(str, words)], input=text, capture_output=True,
                          text=True)
    if done.returncode:
        raise Wrong(f'promtool {words[0]} {words[1]}: {done.stdout}{done.stderr}')
    return done.stdout + done.stderr


def test_metrics_of_both_ends(host):
    everything(host)
    for side in 'client', 'server':
        host.attributes(f'module/rnbd_{side}', version='1.0')
    host.attributes('module/rnbd_server/parameters', listen='Y')
    got = series(host)
    for want, value in {
            'rnbd_driver_info{side="server",driver="rnbd_server 1.0"}': 1,
            'rnbd_health_status': 0,
            'rnbd_session_paths_connected{side="client",session="s1"}': 2,
            'rnbd_session_devices{side="server",session="s1"}': 1,
            'rnbd_session_failover_timeout_seconds{side="client",session="s1"}': 30,
            'rnbd_device_server_size_bytes{device="rnbd0",session="s1",mapping_path="vol1"}': 1 << 30,
            'rnbd_path_round_trip_seconds_count{side="client",session="s1",'
            'path="ip:192.168.100.2@ip:192.168.100.1"}': 100,
            'rnbd_server_volume_open{disk="sda",session="s1",mapping_path="vol1",'
            'access_mode="rw"}': 1,
            'rnbd_server_memory_used_bytes': 1 << 20,
            'rnbd_server_memory_limit_bytes': 1 << 30,
            'rnbd_server_memory_waits_total': 7,
            'rnbd_server_listening': 1,
            'rnbd_server_disk_latency_seconds_count{disk="sda",operation="read"}': 5,
            'rnbd_server_wait_latency_seconds_bucket{disk="sda",operation="read",le="4e-06"}': 5,
            'rnbd_server_wait_latency_seconds_sum{disk="sda",operation="read"}': 1e-5}.items():
        equal(want, got.get(want, (None,))[0], value)
    equal('only powers of two', 'le="3e-06"' in str(got), False)
    equal('counters that only the client has', [
        key for key in got if re.match('rnbd_path_(failed_over|reconnects|failed_reconnects)', key)
        and 'side="client"' not in key], [])
    equal('the same metrics', series(host, 'stat --prometheus'), got)
    equal('no problem', [key for key in got if 'health_problem' in key], [])
    host.path(net=1, state='disconnected', io_latency=latency())
    got = series(host)
    equal('problem', [key for key in got if 'health_problem' in key],
          ['rnbd_health_problem{level="warning",reason="path_disconnected",side="client",'
           'subject="s1/ip:192.168.101.2@ip:192.168.101.1"}'])
    equal('status', got['rnbd_health_status'][0], 1)


def test_metrics_are_in_the_manual(host):
    everything(host)
    host.path(net=1, state='disconnected', io_latency=latency())
    manual = (HERE.parent.parent.parent / 'Documentation/monitoring.rst').read_text()
    for name in {re.sub('_(bucket|count|sum)$', '', re.match(r'\w+', key)[0])
                 for key in series(host)}:
        equal(f'{name} is described', f'``{name}``' in manual, True)


def test_a_disk_of_several_sessions_counts_once(host):
    everything(host)
    host.export(session='s2', path='other')
    got = series(host)
    equal('volumes', sum(key.startswith('rnbd_server_volume_open') for key in got), 2)


def test_names_that_look_alike(host):
    """Clients choose them. A series that occurs twice would have node_exporter drop the file."""
    host.server()
    for name in b'a\xfe', b'a\xff', b'a"\\b':
        folder = os.fsencode(host.sys / SERVER) + b'/' + name + b'/paths'
        os.makedirs(folder)
    got = series(host)
    equal('sessions', [key for key in got if key.startswith('rnbd_session_paths{')],
          [r'rnbd_session_paths{side="server",session="a\"\\b"}',
           'rnbd_session_paths{side="server",session="a?"}'])


def test_metrics_into_a_file(host):
    everything(host)
    path = host.top / 'rnbd.prom'
    path.write_text('old\n')
    path.chmod(0o600)
    host.run(f'metrics {path}')
    equal('file', path.read_text(), host.run('metrics').out)
    equal('mode', stat.S_IMODE(path.stat().st_mode), 0o644)
    equal('made durable', (host.top / 'synced').exists(), False)
    equal('others', sorted(p.name for p in host.top.iterdir() if 'prom' in p.name), ['rnbd.prom'])
    host.says('metrics /dev/null', 'not a regular file', code=1)
    host.says(f'metrics {host.top}/nowhere/rnbd.prom', 'No such file', code=1)
    # What an unloaded module counted must not stay.
    for folder in 'class', 'block':
        shutil.rmtree(host.sys / folder)
    host.run(f'metrics {path}')
    equal('no module', [line for line in path.read_text().splitlines() if line[0] != '#'],
          ['rnbd_health_status 3', 'rnbd_health_problem{level="unknown",reason="no_module",'
           'subject="this host"} 1'])


def test_metrics_follow_the_conventions_of_prometheus(host):
    everything(host)
    host.path(net=1, state='disconnected', io_latency=latency())
    equal('promtool', promtool('check', 'metrics', text=host.run('metrics').out), '')
