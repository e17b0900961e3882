# SPDX-License-Identifier: GPL-2.0
"""path add, delete, readd, reconnect, disconnect, reset; session reconnect, set; recover"""

from rig import CLIENT, SERVER, equal

ADD = CLIENT + '/s1/add_path'


def client(host):
    host.client()
    host.session()
    return host.path(net=0), host.path(net=1)


def test_add(host):
    client(host)
    host.run('path add s1 10.0.0.2,10.0.0.1')
    equal('written', host.written(ADD), 'ip:10.0.0.2,ip:10.0.0.1')
    host.says('path add s2 10.0.0.1', "no session is called 's2'", code=3)
    host.says('path add s1 10.0.0', 'no path', code=2)
    host.says('path add s1', 'SESSION PATH', code=2)
    host.refuse(ADD, 'EEXIST', 'rtrs_client: s1: there is one')
    host.says('path add s1 10.0.0.1', 'EEXIST', 'has a path between', 'rtrs_client: s1: there',
              code=1)


def test_by_all_its_names(host):
    first, _ = client(host)
    for name in ('ip:192.168.100.2@ip:192.168.100.1', 'ip:192.168.100.1', '192.168.100.2', 'rxe0',
                 'rxe0:1', 's1/rxe0', 's1 rxe0', 's1/192.168.100.1'):
        host.attributes(first, disconnect='')
        host.run(f'path disconnect {name}')
        equal(name, host.written(first + '/disconnect'), '1')
    host.says('path disconnect rxe0:2', 'no path', code=3)
    host.says('path disconnect s2 rxe0', "no session is called 's2'", code=3)


def test_delete_and_readd(host):
    first, second = client(host)
    host.run('path delete rxe0')
    equal('deleted', host.written(first + '/remove_path'), '1')
    equal('other', host.written(second + '/remove_path'), '')
    host.run('path readd s1 rxe1')
    equal('removed', host.written(second + '/remove_path'), '1')
    equal('added', host.written(ADD), 'ip:192.168.101.2,ip:192.168.101.1')


def test_session_set(host):
    client(host)
    # Here a write leaves the rest of a longer value in the file.
    host.attributes(f'{CLIENT}/s1', mp_policy='')
    host.run('session set s1 failover_timeout=300 hb_interval_ms=1000 mpath_policy=rr')
    for name, want in ('failover_timeout', '300'), ('hb_interval_ms', '1000'), ('mp_policy', 'round-robin'):
        equal(name, host.written(f'{CLIENT}/s1/{name}'), want)
    host.says('-n session set s1 hb_max_missed=7', "echo '7' > '", 's1/hb_max_missed')
    equal('dry run', host.written(f'{CLIENT}/s1/hb_max_missed'), '5')
    host.refuses('session set s1 hb_max_missed=6 {}', [
        ('failover_timout=1', 'did you mean failover_timeout?'),
        ('failover_timeout', 'takes a value: failover_timeout=VALUE'),
        ('failover_timeout=5 failover_timeout=6', 'failover_timeout is given twice'),
        ('failover_timeout', 'rnbd: failover_timeout takes'),
        ('x=5', "no option 'x=5'; see: rnbd help session set"),
        ('failover_timeout=-2', 'not a number from -1 to 1000000'),
        ('key=x', "key can't be changed later"),
        ('path=10.0.0.1', "no option 'path=10.0.0.1'")])
    host.says(['session', 'set', 's1', 'failover_timeout= 5'], 'not a number', code=2)
    equal('nothing written', host.written(f'{CLIENT}/s1/hb_max_missed'), '5')
    host.says('session set s2 hb_max_missed=6', "no session is called 's2'", code=3)
    host.says('session set s1', 'SESSION SETTING=VALUE', code=2)
    host.refuse(f'{CLIENT}/s1/failover_timeout', 'EINVAL')
    host.says('session set s1 failover_timeout=5 hb_max_missed=6', "can't set failover_timeout of s1",
              code=1)
    equal('after an error', host.written(f'{CLIENT}/s1/hb_max_missed'), '5')


def test_readd_of_a_path_without_source(host):
    _, second = client(host)
    host.attributes(second, src_addr='-')
    equal('json', host.run('path show rxe1 json').json()['src_addr'], None)
    host.says('path show rxe1', 'src_addr                -')
    host.run('path readd s1 rxe1')
    equal('added', host.written(ADD), 'ip:192.168.101.1')
    host.attributes(CLIENT + '/s1', add_path='')
    host.refuse(ADD, 'EHOSTUNREACH')
    host.says('path readd s1 rxe1', 'EHOSTUNREACH', "rnbd path add 's1' 'ip:192.168.101.1'", code=1)
    host.refuse(second + '/remove_path', 'EBUSY')
    done = host.says('path readd s1 rxe1', 'EBUSY', code=1)
    equal('it is still there', 'rnbd path add' in done.err, False)


def test_link_local_addresses(host):
    """The kernel writes the scope as an ifindex; a name is as good. lo is number 1 everywhere."""
    client(host)
    host.run('path add s1 fe80::2%lo,ip:fe80::1%7')
    equal('written', host.written(ADD), 'ip:fe80::2%lo,ip:fe80::1%7')
    for wrong in ('fe80::1%', 'fe80::1%0', 'fe80::1%lo%lo', 'fe80::1%a/b', 'fd00::1%lo', '10.0.0.1%lo',
                  'gid:fe80::1%lo', '%lo', 'ip:%lo'):
        host.says(f'path add s1 {wrong}', 'no path', code=2)
    folders = {}
    for scope in 1, 7:
        src, dst = f'ip:fe80::2%{scope}', f'ip:fe80::1%{scope}'
        folders[scope] = f'{CLIENT}/s1/paths/{src}@{dst}'
        host.attributes(folders[scope], state='connected', src_addr=src, dst_addr=dst,
                        hca_name=f'rxe{scope}', hca_port=1, disconnect='', remove_path='')
    for scope, names in {1: ['ip:fe80::1%lo', 'fe80::1%1', 'ip:fe80::2%lo@ip:fe80::1%lo',
                             's1/fe80::2%lo'],
                         7: ['fe80::1%7', 'ip:fe80::2%7@ip:fe80::1%7']}.items():
        for name in names:
            host.attributes(folders[scope], disconnect='')
            host.run(f'path disconnect {name}')
            equal(name, host.written(folders[scope] + '/disconnect'), '1')
    host.attributes(folders[1], disconnect='')
    host.says('path disconnect fe80::1', 'no path', code=3)
    host.says('path disconnect fe80::1%nosuchdev', 'no path', code=3)
    host.run('path readd s1 fe80::1%lo')
    equal('removed', host.written(folders[1] + '/remove_path'), '1')
    equal('other', host.written(folders[7] + '/remove_path'), '')
    equal('added', host.written(ADD), 'ip:fe80::2%1,ip:fe80::1%1')


def test_what_vanished_meanwhile(host):
    first, _ = client(host)
    host.refuse(first + '/reconnect', 'ENOENT')
    host.says('path reconnect rxe0', 'is gone', code=3)
    host.refuse(first + '/reconnect', 'ENODEV')
    host.says('path reconnect rxe0', 'No such device', code=1)
    host.refuse(first + '/reconnect', 'EKEYREJECTED')
    host.says('path reconnect rxe0', 'EKEYREJECTED', 'another key', code=1)
    (host.sys / first / 'disconnect').unlink()
    host.says('path disconnect rxe0', 'is gone', code=3)


def test_reconnect_all(host):
    first, second = client(host)
    host.session('s2')
    other = host.path('s2')
    host.refuse(first + '/reconnect', 'ETIMEDOUT')
    host.says('path reconnect s1 all', 'ETIMEDOUT', code=1)
    equal('second', host.written(second + '/reconnect'), '1')
    equal('of the other session', host.written(other + '/reconnect'), '')
    host.run('session reconnect s2')
    equal('of the other session', host.written(other + '/reconnect'), '1')
    host.run('session disconnect s2')
    equal('disconnect', host.written(other + '/disconnect'), '1')


def test_reset(host):
    first, second = client(host)
    host.run('path reset all')
    for folder in first, second:
        equal(folder, host.written(folder + '/stats/reset_all'), '1')


def test_server(host):
    host.pair()
    host.says('path disconnect s1/rxe0', 'which side', code=3)
    host.run('server path disconnect s1/rxe0')
    folder = SERVER + '/s1/paths/ip:192.168.100.1@ip:192.168.100.2'
    equal('written', host.written(folder + '/disconnect'), '1')
    host.says('server path reconnect rxe0', 'not for the server', code=2)


def test_recover(host):
    client(host)
    host.disk()
    equal('nothing to do', host.run('recover').out, '')
    second = host.path(net=1, state='disconnected')
    host.disk(n=1, state='closed', path='vol2')
    host.says('recover', 's1: ip:192.168.101.2@ip:192.168.101.1 is connected', 's1: rnbd1 is open')
    equal('path', host.written(second + '/reconnect'), '1')
    equal('device', host.written('block/rnbd1/rnbd/remap_device'), '1')
    equal('other device', host.written('block/rnbd0/rnbd/remap_device'), '')
    done = host.says('-n recover', "echo '1' >", 'reconnect', 'remap_device')
    equal('nothing was done', done.out, '')
    host.refuse('block/rnbd1/rnbd/remap_device', 'EALREADY')
    host.says('recover rnbd1', 'rnbd1 is open')
    host.refuse(second + '/reconnect', 'EHOSTUNREACH')
    host.says('recover s1', 'rping', 'rnbd1 is open', code=1)
    host.says('recover nothing', "called 'nothing'", code=3)


def test_recover_of_paths_leaves_devices_alone(host):
    """The server's administrator may have taken them away."""
    client(host)
    host.session('s2')
    first = host.path(net=1, state='disconnected')
    other = host.path('s2', state='disconnected')
    host.disk(state='closed')
    done = host.says('path recover s1 all', 'is connected')
    equal('lines', len(done.out.splitlines()), 1)
    equal('other session', host.written(other + '/reconnect'), '')
    host.attributes(first, reconnect='')
    done = host.says('path recover all', 's1: ', 's2: ')
    equal('lines', len(done.out.splitlines()), 2)
    equal('both', [host.written(f + '/reconnect') for f in (first, other)], ['1', '1'])
    equal('device', host.written('block/rnbd0/rnbd/remap_device'), '')
    host.says('path recover s3 all', "no session is called 's3'", code=3)


def test_all_is_a_name_of_sessions_and_devices(host):
    client(host)
    host.disk(state='closed')
    for line in 'session recover all', 'session remap all', 'device recover all':
        host.says(line, "is called 'all'", code=3)
    equal('device', host.written('block/rnbd0/rnbd/remap_device'), '')
    host.session('all')
    host.disk(n=1, session='all', path='vol2', state='closed')
    host.says('session recover all', 'rnbd1 is open')
    host.run('session remap all')
    equal('device', host.written('block/rnbd0/rnbd/remap_device'), '')
    host.says('recover all', 'rnbd0 is open', 'rnbd1 is open')
