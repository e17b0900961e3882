# SPDX-License-Identifier: GPL-2.0
"""health: each thing that can be wrong, and the exit codes of monitoring plugins"""

import shutil
import subprocess

from rig import CLIENT, equal
import schema


def wrong(host, level, *words):
    """Exactly one thing is, and these words are said of it."""
    code = {'WARNING': 1, 'CRITICAL': 2}[level]
    done = host.says('health', f'rnbd {level}: ', f'\n{level}: ', *words, code=code)
    equal('lines: ' + done.out, len(done.out.splitlines()), 2)
    document = host.run('health json', code).json()
    schema.check('health', document)
    equal('code', document['code'], code)


def test_nothing_wrong(host):
    host.pair()
    for side in 'client', 'server':
        host.attributes(f'module/rnbd_{side}', version='1.0')
    host.attributes('module/rnbd_server/parameters', listen='Y')
    done = host.run('health')
    equal('says', done.out,
          'rnbd OK: 2 sessions, 2 devices; rnbd_client 1.0; rnbd_server 1.0\n')
    document = host.run('health json').json()
    schema.check('health', document)
    equal('drivers', document['drivers'], ['rnbd_client 1.0', 'rnbd_server 1.0'])
    equal('client', host.run('client health').out,
          'rnbd OK: 1 sessions, 1 devices; rnbd_client 1.0\n')


def test_the_own_driver_of_the_kernel(host):
    host.pair()
    host.attributes('module/rtrs_client', refcnt=0)
    wrong(host, 'WARNING', 'rnbd_client of the kernel', "rnbd_client: the kernel's own", 'dkms')
    host.attributes('module/rtrs_client', version='1.0')
    host.attributes('module/rnbd_server/parameters', port_nr=1234)
    wrong(host, 'CRITICAL', 'rnbd_server of the kernel', "rnbd_server: the kernel's own", 'dkms',
          'exports everything')
    host.attributes('module/rnbd_server/parameters', listen='Y')
    host.says('health', 'rnbd OK')


def test_no_module(host):
    host.says('health', 'UNKNOWN', 'modprobe', code=3)


def test_errors_are_unknown(host):
    host.pair()
    host.says('health nonsense', 'health', code=3)
    host.says('health --watch 1', 'options', code=3)
    host.says('server health --nonsense', 'nonsense', code=3)
    host.says('health --max-reconnects x', 'no value', code=3)
    equal('code', subprocess.run(host.command('health'), env=host.environment(),
                                 stdout=open('/dev/full', 'w'), stderr=subprocess.DEVNULL).returncode, 3)
    for before in '--max-reconnects 3', f'--sysfs {host.sys}', '-v --max-reconnects=3 client':
        host.says(f'{before} health --nonsense', 'nonsense', code=3)
        host.says(f'{before} health nonsense', 'health', code=3)
    host.says('--max-reconnects health list --nonsense', 'no value', code=2)
    host.says('list --nonsense health', 'nonsense', code=2)
    host.says('--sysfs health list nonsense', "not 'nonsense'", code=2)


def test_path_down(host):
    host.pair()
    host.path(net=1, state='disconnected')
    wrong(host, 'WARNING', 's1/ip:192.168.101.2', 'disconnected', 'rnbd recover')


def test_mtu_differs(host):
    host.pair()
    folder = host.path(net=1, state='disconnected')
    host.attributes(folder, last_error=-90)
    wrong(host, 'WARNING', 's1/ip:192.168.101.2', 'full-size packets are lost', 'the same MTU')


def test_session_down(host):
    host.pair()
    for net in 0, 1:
        host.path(net=net, state='disconnected')
    host.attributes(CLIENT + '/s1', fencing=0)
    wrong(host, 'CRITICAL', 's1', 'none of its 2 paths', 'rnbd recover')


def test_device_closed(host):
    host.pair()
    host.disk(state='closed')
    wrong(host, 'CRITICAL', 'rnbd0', 'rnbd remap')


def test_reconnects(host):
    host.pair()
    host.path(reconnects='3 7')
    wrong(host, 'WARNING', 'again 3 times', 'rnbd path reset')
    host.says('health --max-reconnects 3', 'rnbd OK')


def test_rdma_device_gone(host):
    host.pair()
    shutil.rmtree(host.sys / 'class/infiniband/rxe1')
    host.says('client health', 'WARNING: s1/', 'rxe1 is gone', code=1)
    shutil.rmtree(host.sys / 'class/infiniband/rxe0')
    host.says('health', 'CRITICAL: this host', 'no RDMA device', 'rdma link add', code=2)


def test_port_down(host):
    host.pair()
    shutil.rmtree(host.sys / 'class/rtrs-server/s1')
    host.port('rxe1', '1: DOWN')
    wrong(host, 'WARNING', 'rxe1:1', '1: DOWN')


def test_fencing(host):
    host.pair()
    host.attributes(CLIENT + '/s1', fencing=0)
    wrong(host, 'WARNING', 's1', 'cannot fence', 'one path')
    host.attributes(CLIENT + '/s1', fencing=1)
    host.says('health', 'rnbd OK')
    host.attributes('kernel/debug/rtrs_client', fencing='Y')
    host.says('health', 'rnbd OK')
    host.attributes('kernel/debug/rtrs_client', fencing='N')
    wrong(host, 'WARNING', 'rtrs_client', 'fencing is switched off')


def test_clocks(host):
    for values, words in [
            (dict(failover_timeout=5), None),
            (dict(failover_timeout=5, fencing=0), ['unfenced_delay_ms', '5 s']),
            (dict(failover_timeout=0), None), (dict(failover_timeout=-1), None),
            (dict(failover_timeout=6, reconnect_delay_ms=6000), ['reconnect_delay_ms']),
            (dict(max_reconnect_attempts=0), ['max_reconnect_attempts', 'not connected again']),
            (dict(hb_interval_ms=50), ['one lost packet', '250 ms']),
            (dict(hb_interval_ms=20000), ['100 s']),
            (dict(hb_interval_ms=200, hb_max_missed=3), None)]:
        shutil.rmtree(host.sys, ignore_errors=True)
        host.pair()
        host.attributes(CLIENT + '/s1', **values)
        if 'fencing' in values:
            shutil.rmtree(host.sys / CLIENT / 's1/paths/ip:192.168.101.2@ip:192.168.101.1')
        if words:
            wrong(host, 'WARNING', *words)
        else:
            host.says('health', 'rnbd OK')


def test_memory_of_the_server(host):
    host.server()
    host.port('rxe0')
    host.attributes('devices/rtrs_server/stats', memory_used=1000 << 20)
    wrong(host, 'WARNING', '1000 of 1024 MiB', 'max_memory')
    host.attributes('devices/rtrs_server/stats', memory_used=1)
    host.attributes('module/rtrs_server/parameters', max_memory=0)
    host.says('health', 'rnbd OK')


def test_memory_of_an_older_server(host):
    host.server()
    host.port('rxe0')
    shutil.rmtree(host.sys / 'devices', ignore_errors=True)
    host.attributes('module/rtrs_server/parameters', memory_used=1000 << 20, max_memory=1024)
    wrong(host, 'WARNING', '1000 of 1024 MiB', 'max_memory')


def test_reasons_for_programs(host):
    host.pair()
    host.path(net=1, state='disconnected')
    host.disk(state='closed')
    host.port('rxe0', '1: DOWN')
    got = {(f['side'], f['reason'], f['subject'])
           for f in host.run('health json', code=2).json()['findings']}
    equal('findings', got, {
        ('client', 'path_disconnected', 's1/ip:192.168.101.2@ip:192.168.101.1'),
        ('client', 'port_not_active', 's1/ip:192.168.100.2@ip:192.168.100.1'),
        ('server', 'port_not_active', 's1/ip:192.168.100.1@ip:192.168.100.2'),
        ('client', 'device_closed', 'rnbd0')})


def test_the_worst_counts(host):
    host.pair()
    host.path(net=1, state='disconnected')
    host.disk(state='closed')
    host.says('health', 'rnbd CRITICAL: 1 critical, 1 warnings', code=2)
