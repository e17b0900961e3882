# SPDX-License-Identifier: GPL-2.0
"""discover, map --all"""


from rig import CTL, equal

MAP = CTL + '/map_device'
DISCOVER = '../dev/rnbd-discover'
UUID = '6f1d6e0a-6f5f-4d6c-8e0a-1b2c3d4e5f60'
LIST = f'''data 131072 ro,rw {UUID}
logs 0 ro -
odd 8 - {UUID} more words
'''


def asked(host):
    """The line that was written, without what it has by default"""
    return host.written(DISCOVER)


def test_discover(host):
    host.client()
    host.lists(LIST)
    out = host.run('discover 10.0.0.1').out
    equal('written', asked(host), 'sessname=client1_10-0-0-1 path=ip:10.0.0.1')
    equal('table', [line.split() for line in out.splitlines()],
          [['VOLUME', 'SIZE', 'MODES', 'UUID'], ['data', '64M', 'ro,rw', UUID],
           ['logs', '-', 'ro', '-'], ['odd', '4K', '-', UUID]])
    host.lists(LIST)
    equal('JSON', host.run('discover 10.0.0.1 json').json(), [
        {'name': 'data', 'size': 64 << 20, 'modes': ['ro', 'rw'], 'uuid': UUID},
        {'name': 'logs', 'size': None, 'modes': ['ro'], 'uuid': None},
        {'name': 'odd', 'size': 4096, 'modes': [], 'uuid': UUID}])


def test_discover_nothing(host):
    host.client()
    host.lists('')
    equal('text', host.run('discover 10.0.0.1').out, 'no volumes\n')
    host.lists('')
    equal('JSON', host.run('discover 10.0.0.1 --json').json(), [])


def test_discover_what_no_kernel_says(host):
    host.client()
    host.lists('\n \nx\nx 1\nx 1 ro\nx y ro z\nb\x1b[2J 1 r\x1bw \x1b\n')
    for line in 'discover 10.0.0.1', 'discover 10.0.0.1 --json':
        out = host.run(line).out
        equal('escapes', '\x1b' in out, False)


def test_discover_words(host):
    host.client()
    for words, want in [
            ('10.0.0.1,10.0.1.1 session=s9', 'path=ip:10.0.0.1 path=ip:10.0.1.1'),
            ('10.0.0.1 from 10.0.0.2 session=s9', 'path=ip:10.0.0.2,ip:10.0.0.1'),
            ('10.0.0.1,10.0.1.1 from 10.0.0.2,10.0.1.2 session=s9',
             'path=ip:10.0.0.2,ip:10.0.0.1 path=ip:10.0.1.2,ip:10.0.1.1'),
            ('10.0.0.1,10.0.1.1 from 10.0.0.2 session=s9',
             'path=ip:10.0.0.2,ip:10.0.0.1 path=ip:10.0.0.2,ip:10.0.1.1'),
            ('fd00::1 session=s9 dest_port=1235 key=rnbd:k nr_queues=2 queue_depth=8',
             'dest_port=1235 key=rnbd:k nr_queues=2 queue_depth=8 path=ip:fd00::1')]:
        host.lists(LIST)
        host.run(f'discover {words}')
        got = asked(host).split()
        equal(words, sorted(got), sorted(['sessname=s9'] + want.split()))
    for words, why in [
            ('10.0.0.1 from 10.0.0.2,10.0.0.3', 'from: one address'),
            ('10.0.0.1 ro', 'no option'), ('10.0.0.1 access_mode=ro', 'takes no such option'),
            ('10.0.0.1 failover_timeout=1', 'takes no such option'),
            ('10.0.0.1 nr_queues=0', 'not a number'), ('10.0.0.1 session=a/b', "can't be the name"),
            ('10.0.0.1 session=', "can't be the name"), ('10.0.0.1,', 'is no path'),
            ('10.0.0', 'is no path')]:
        host.lists(LIST)
        host.says(f'discover {words}', why, code=2)
        equal('written', asked(host), '')
    host.says('discover', 'SERVER', code=2)
    host.says('discover 10.0.0.1 --all', 'options', code=2)


def test_discover_of_names(host):
    host.client()
    (host.top / 'hosts').write_text('storage1 10.0.0.1\n')
    host.lists(LIST)
    host.run('discover storage1')
    equal('written', asked(host), 'sessname=client1_storage1 path=ip:10.0.0.1')
    host.says('discover storage2', 'does not resolve', code=3)


def test_discover_in_an_open_session(host):
    """By its name, or by an address of its server; a session that is named is not chosen."""
    host.client()
    host.session()
    host.path()
    host.lists(LIST)
    host.run('discover s1')
    equal('by its name', asked(host), 'sessname=s1')
    host.lists(LIST)
    host.run('discover 192.168.100.1')
    equal('by its address', asked(host), 'sessname=s1')
    host.lists(LIST)
    host.run('discover 192.168.100.1 session=s2')
    equal('named', asked(host), 'sessname=s2 path=ip:192.168.100.1')
    for other in '192.168.100.11', '192.168.100.2', '2.168.100.1':
        host.lists(LIST)
        host.run(f'discover {other}')
        equal(other, asked(host), f"sessname=client1_{other.replace('.', '-')} path=ip:{other}")


def test_discover_refused(host):
    host.says('client discover 10.0.0.1', 'modprobe rnbd_client', code=4)
    host.client()
    host.says('discover 10.0.0.1', "can't list volumes", code=1)
    host.lists('')
    for error, why in ('EOPNOTSUPP', "server can't list its volumes"), ('EKEYREJECTED', 'requires a key'), \
            ('ECONNREFUSED', 'nothing listens there'):
        host.refuse(DISCOVER, error, 'rnbd_client: s1: this is why')
        host.says('discover 10.0.0.1', error, why, 'kernel: rnbd_client: s1: this is why', code=1)


def test_map_all(host):
    host.client()
    host.session('s9')
    for n, name in enumerate(('data', 'logs', 'odd')):
        host.disk(n=n, session='s9', path=name)
    host.lists(LIST)
    done = host.run('map --all 10.0.0.1 session=s9 failover_timeout=300 -v')
    equal('disks', done.out.splitlines(), [f'{host.dev}/rnbd{n} {name}'
                                           for n, name in enumerate(('data', 'logs', 'odd'))])
    lines = [line.split("'")[1] for line in done.err.splitlines() if 'map_device' in line]
    equal('written', lines, [
        f'sessname=s9 device_path={name} access_mode={mode} path=ip:10.0.0.1 failover_timeout=300'
        for name, mode in (('data', 'rw'), ('logs', 'ro'), ('odd', 'rw'))])
    equal('asked', asked(host), 'sessname=s9 path=ip:10.0.0.1')
    host.lists(LIST)
    host.attributes(CTL, map_device='')
    equal('JSON', [x['name'] for x in host.run('map --all s9 ro --json').json()],
          ['rnbd0', 'rnbd1', 'rnbd2'])
    equal('mode', host.written(MAP), 'sessname=s9 device_path=odd access_mode=ro')


def test_map_all_with_failures(host):
    """The others are mapped, and the exit code tells."""
    host.client()
    host.session('s9')
    host.disk(n=0, session='s9', path='data')
    host.lists(LIST)
    host.says('map --all s9', f'{host.dev}/rnbd0 data', "no device is called 'logs'",
              "no device is called 'odd'", code=3)
    host.lists(LIST)
    host.refuse(MAP, 'EACCES')
    done = host.says('map --all s9', "can't map data", "can't map logs", "can't map odd", code=5)
    equal('disks', done.out, '')
    # What is mapped already is as good as new.
    host.disk(n=1, session='s9', path='logs')
    host.disk(n=2, session='s9', path='odd')
    host.refuse(MAP, 'EEXIST')
    host.lists(LIST)
    host.says('map --all s9', 'rnbd0 data', 'rnbd1 logs', 'rnbd2 odd')
    host.lists('')
    host.says('map --all s9', 'no volume', code=3)
    host.lists(LIST)
    host.says('map --all s9 --save=x', 'no name', code=2)
    equal('asked', asked(host), '')


def test_map_all_and_save(host):
    host.client()
    host.session('s9')
    for n, name in enumerate(('data', 'logs', 'odd')):
        host.disk(n=n, session='s9', path=name)
    host.lists(LIST)
    host.run('map --all 10.0.0.1 session=s9 --save')
    equal('saved', [line.split()[0:4:3] for line in host.volumes.read_text().splitlines()
                    if line and line[0] != '#'],
          [['data', 'data'], ['logs', 'logs'], ['odd', 'odd']])


def test_map_all_dry(host):
    host.client()
    host.lists(LIST)
    done = host.run('map --all 10.0.0.1 session=s9 -n')
    equal('written', host.written(MAP), '')
    equal('told', done.err.count('map_device'), 3)
