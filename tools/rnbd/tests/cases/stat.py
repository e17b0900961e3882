# SPDX-License-Identifier: GPL-2.0
"""stat: rates, latencies, JSON, Prometheus"""

import json
import re
import shutil
import subprocess
import time

import rig
from rig import Wrong, between, equal
import schema

LATENCY = '''usecs 1 2 4 8 16 inf
read 0 0 {r} 0 0 0
write 0 0 0 {w} 0 1
sum {rs} {ws}'''


def rows(document):
    return {(r['type'], r['side'], r['name']): r for r in document['rates']}


def asleep(pid):
    """It waits for the end of the interval: three looks in a row find it sleeping."""
    seen = 0
    while seen < 3:
        time.sleep(0.02)
        with open(f'/proc/{pid}/stat', encoding='utf-8') as f:
            state = f.read().rpartition(')')[2].split()[0]
        seen = seen + 1 if state == 'S' else 0
        if state == 'Z':
            break


def changing(host, line, change):
    """Run it, and change attributes while it measures."""
    with subprocess.Popen(host.command(line), env=host.environment(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tool:
        asleep(tool.pid)
        change()
        out, err = tool.communicate(timeout=60)
    equal(f'{line}: {err}', tool.returncode, 0)
    return rig.Result(subprocess.CompletedProcess(line, 0, out, err))


def test_rates(host):
    host.client()
    host.session()
    path = host.path(net=0, io_latency=LATENCY.format(r=10, w=10, rs=30, ws=60))
    host.path(net=1, io_latency=LATENCY.format(r=10, w=10, rs=30, ws=60))
    disk = host.disk()

    def change():
        host.attributes(path + '/stats', rdma='1010 4136960 520 2211840 7 1',
                        io_latency=LATENCY.format(r=1010, w=10, rs=3030, ws=60))
        host.attributes(disk, stat='1100 0 8800 2050 200 0 1600 150 2 0 0 0 0 0 0 10 20')

    document = changing(host, 'stat json', change).json()
    schema.check('stat', document)
    seconds = document['seconds']
    got = rows(document)
    row = got['path', 'client', 'ip:192.168.100.2@ip:192.168.100.1']
    between('reads', row['reads_s'] * seconds, 998, 1002)
    between('written', row['written_bytes_s'] * seconds, 2046000, 2050000)
    equal('in flight', row['in_flight'], 7)
    between('mean', row['read_latency_us']['mean'], 2.9, 3.1)
    between('p50', row['read_latency_us']['p50'], 2.9, 3.1)
    between('p99', row['read_latency_us']['p99'], 3.9, 4)
    equal('no writes', row['write_latency_us']['p50'], None)
    equal('idle', got['path', 'client', 'ip:192.168.101.2@ip:192.168.101.1']['reads_s'], 0)
    between('session', got['session', 'client', 's1']['reads_s'] * seconds, 998, 1002)
    equal('session in flight', got['session', 'client', 's1']['in_flight'], 10)
    between('device mean', got['device', 'client', 'rnbd0']['latency_us']['mean'], 1999, 2001)
    equal('device percentiles', got['device', 'client', 'rnbd0']['latency_us']['p99'], None)


def test_table(host):
    host.pair()
    out = host.run('stat').out.splitlines()
    equal('headings', out[0].split()[:4], ['TYPE', 'NAME', 'R/s', 'W/s'])
    equal('rows', sorted(line.split()[0] for line in out[1:]),
          ['device'] + ['path'] * 4 + ['session'] * 2)
    equal('without histograms', out[1].split()[-5:], ['-', '-', '-', '0', '0'])


def test_devices_of_the_server(host):
    host.server()
    folder = host.export().rsplit('/sessions/', 1)[0]
    equal('without histograms', host.run('stat json').json()['rates'], [])
    wait = LATENCY.format(r=0, w=10, rs=0, ws=60)
    host.attributes(folder + '/stats', disk_latency=LATENCY.format(r=10, w=10, rs=30, ws=60),
                    wait_latency=wait)

    def change():
        host.attributes(folder + '/stats', wait_latency=wait.replace('10', '110'),
                        disk_latency=LATENCY.format(r=510, w=10, rs=1530, ws=60))

    document = changing(host, 'stat json', change).json()
    schema.check('stat', document)
    row = document['rates'][0]
    between('reads', row['reads_s'] * document['seconds'], 499, 501)
    between('disk', row['latency_us']['p50'], 2.9, 3.1)
    between('wait', row['wait_latency_us']['p50'], 5.9, 6.1)


def test_of_one_thing(host):
    host.pair()
    for name, types in [('rnbd0', ['device']), ('s1', ['device', 'path', 'path', 'session']),
                        ('rxe1', ['path'])]:
        out = host.run(f'client stat {name} -H').out.splitlines()
        equal(name, sorted(line.split()[0] for line in out), types)
    host.says('stat nothing', "called 'nothing'", code=3)


def test_watch(host):
    host.pair()
    started = time.monotonic()
    out = host.run('stat --watch 0.2 --count 3 json').out.splitlines()
    between('seconds', time.monotonic() - started, 0.6, 30)
    equal('documents', len(out), 3)
    for line in out:
        schema.check('stat', json.loads(line))
    for wrong in '0', '-1', 'x', 'nan', '1e9':
        host.says(f'stat --watch={wrong}', 'no value', code=2)


def test_counters_that_were_reset(host):
    host.client()
    host.session()
    path = host.path()
    document = changing(host, 'stat json',
                        lambda: host.attributes(path + '/stats', rdma='5 5 5 5 0 0')).json()
    row = rows(document)['path', 'client', 'ip:192.168.100.2@ip:192.168.100.1']
    between('reads', row['reads_s'] * document['seconds'], 4.9, 5.1)


def test_paths_that_come_and_go(host):
    """A session did what its paths did meanwhile."""
    host.client()
    host.session()
    first = host.path(net=0, rdma='1000 1000 1000 1000 0 0',
                      io_latency=LATENCY.format(r=1000, w=1000, rs=3000, ws=6000))
    second = host.path(net=1, rdma='500 500 500 500 0 0',
                       io_latency=LATENCY.format(r=500, w=500, rs=1500, ws=3000))

    def change():
        shutil.rmtree(host.sys / first)
        host.attributes(second + '/stats', rdma='510 510 510 510 0 0',
                        io_latency=LATENCY.format(r=510, w=500, rs=1530, ws=3000))

    document = changing(host, 'stat json', change).json()
    row = rows(document)['session', 'client', 's1']
    between('reads', row['reads_s'] * document['seconds'], 9.9, 10.1)
    between('mean', row['read_latency_us']['mean'], 2.9, 3.1)
    equal('writes', row['write_latency_us']['mean'], None)


def test_times_of_disks_wrap(host):
    """The block layer prints milliseconds as 32 bits."""
    host.client()
    host.session()
    disk = host.disk()
    host.attributes(disk, stat=f'100 0 800 {2**32 - 500} 200 0 1600 {2**32 - 7} 2 0 0 0 0 0 0 10 20')

    def change():
        host.attributes(disk, stat='1100 0 8800 1500 200 0 1600 {} 2 0 0 0 0 0 0 10 20'
                        .format(2**32 - 7))

    row = changing(host, 'stat json', change).json()['rates'][0]
    between('mean', row['latency_us']['mean'], 1999, 2001)


def test_histograms_that_make_no_sense(host):
    host.client()
    host.session()
    good = LATENCY.format(r=1, w=1, rs=3, ws=6)
    for bad in ('', 'read 1 2 3', good.replace('read 0', 'read'), good.replace('usecs 1', 'usecs'),
                good.replace('write', 'wrote'), 'usecs ' + '1 ' * 200 + '\nread 1\nwrite 1', '\xff'):
        host.path(io_latency=bad)
        document = host.run('stat rxe0 json').json()
        equal(bad, document['rates'][0]['latency_us'],
              {'mean': None, 'p50': None, 'p99': None, 'p99_9': None})


LINE = re.compile(r'[a-z_]+(\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)*\})? [0-9.e+-]+$')


def test_prometheus(host):
    host.pair()
    host.path(io_latency=LATENCY.format(r=10, w=10, rs=30, ws=60))
    host.disk(n=1, path='a"b\\c')
    out = host.run('stat --prometheus').out.splitlines()
    seen = []
    for line in out:
        if line.startswith('# TYPE'):
            equal('metrics of one name stand together', line.split()[2] in seen, False)
            seen.append(line.split()[2])
        elif not line.startswith('#') and not LINE.match(line):
            raise Wrong(f'no line of Prometheus: {line}')
    labels = 'session="s1",path="ip:192.168.100.2@ip:192.168.100.1"'
    for want in (f'rnbd_path_up{{side="client",{labels}}} 1',
                 f'rnbd_path_read_bytes_total{{side="client",{labels}}} 40960',
                 f'rnbd_path_latency_seconds_bucket{{side="client",{labels},operation="read",'
                 'le="4e-06"} 10',
                 f'rnbd_path_latency_seconds_bucket{{side="client",{labels},operation="write",'
                 'le="+Inf"} 11',
                 'rnbd_device_open{device="rnbd1",session="s1",mapping_path="a\\"b\\\\c"} 1'):
        equal(want, want in out, True)
    equal('what wraps', 'request_seconds' in '\n'.join(out), False)
    host.says('stat s1 --prometheus', 'everything', code=2)
