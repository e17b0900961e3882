# SPDX-License-Identifier: GPL-2.0
"""map, unmap, remap, resize, close"""

import os
import subprocess
import time

from rig import CTL, equal

MAP = CTL + '/map_device'
PATH = '192.168.100.1'


def test_map(host):
    host.client()
    host.session()
    host.disk()
    done = host.run(f'map vol1 from s1 {PATH}')
    equal('written', host.written(MAP), 'sessname=s1 device_path=vol1 path=ip:192.168.100.1')
    equal('output', done.out, f'{host.dev}/rnbd0\n')
    equal('json', host.run('map vol1 from s1 json').json()['name'], 'rnbd0')


def test_map_words(host):
    host.client()
    host.session()
    for words, want in [
            ('ip:10.0.0.2,ip:10.0.0.1 10.0.1.2@10.0.1.1',
             'path=ip:10.0.0.2,ip:10.0.0.1 path=ip:10.0.1.2,ip:10.0.1.1'),
            ('fd00::1 ro', 'path=ip:fd00::1 access_mode=ro'),
            ('gid:0000:0000:0000:0000:0000:ffff:c0a8:6401 migration dest_port=1235',
             'path=gid:0000:0000:0000:0000:0000:ffff:c0a8:6401 access_mode=migration '
             'dest_port=1235'),
            ('handover', 'access_mode=handover'),
            ('failover_timeout=300 10.0.0.1 mpath_policy=rr',
             'failover_timeout=300 path=ip:10.0.0.1 mp_policy=round-robin'),
            ('fe80::1%a=b', 'path=ip:fe80::1%a=b'),
            ('', '')]:
        done = host.run(f'-n map vol1 from s1 {words}')
        line = f"'sessname=s1 device_path=vol1{' ' if want else ''}{want}'"
        equal(words, line in done.err, True)
    equal('dry run', host.written(MAP), '')


def test_map_wrong_lines(host):
    host.client()
    host.refuses('map {}', [
        ('', 'map VOLUME [from SESSION] [PATH...]'),
        ('vol1', 'map vol1: add from SESSION, or a path to the server'),
        ('vol1 ro', 'map vol1: add from SESSION, or a path to the server'),
        ('vol1 from', 'the session is missing'),
        ('vol1 10.0.0.1 from s1', 'from SESSION comes right after the volume'),
        ('vol1 from s1 10.0.0', 'no path'), ('vol1 from s1 ip:x', 'no path'),
        ('vol1 from s1 10.0.0.1,', 'no path')])
    host.says('map vol1 fron s1', 'host name fron does not resolve', 'did you mean from?', code=3)
    host.says(['map', 'a b', 'from', 's1'], 'no blanks', code=2)
    host.says('server map vol1 from s1', 'not for the server', code=2)
    equal('written', host.written(MAP), '')


def session_of(host, words):
    """The session of what is written to map_device"""
    return host.run(f'-n map vol1 {words}').err.split("'sessname=")[1].split()[0]


def test_map_names_the_session(host):
    """After this host and the server; the kernel accepts the name, and a reboot changes nothing."""
    host.client()
    (host.top / 'hosts').write_text('storage1.example.org 10.0.0.1\n')
    for name, words, want in [
            ('client1', '10.0.0.1 10.0.1.1', 'client1_10-0-0-1'),
            ('client1', '10.0.0.2@ip:10.0.0.1 10.0.1.1', 'client1_10-0-0-1'),
            ('client1', 'ro failover_timeout=300 10.0.0.2,10.0.0.1', 'client1_10-0-0-1'),
            ('client1', 'storage1.example.org', 'client1_storage1-example-org'),
            ('client1.example.org', '10.0.0.1', 'client1-example-org_10-0-0-1'),
            ('client1', 'fd00:0::0001', 'client1_fd00::1'), ('client1', 'fe80::1%1', 'client1_fe80::1-lo'),
            ('client1', 'fe80::1%lo', 'client1_fe80::1-lo'), ('client1', 'gid:fe80::1', 'client1_fe80::1'),
            ('a*b [1]/..', '10.0.0.1', 'a-b--1----_10-0-0-1')]:
        host.name(name)
        equal(f'{name} {words}', session_of(host, words), want)
    for name in 'localhost', 'localhost.localdomain', '(none)', '':
        host.name(name)
        host.says('map vol1 10.0.0.1', 'this machine has no name for the session: add from SESSION', code=2)
    equal('written', host.written(MAP), '')
    host.name('client1')
    host.disk(session='client1_10-0-0-1')
    equal('output', host.run('map vol1 10.0.0.1').out, f'{host.dev}/rnbd0\n')
    host.run('map vol1 10.0.0.1 10.0.1.1 --save')
    equal('saved', host.volumes.read_text(), 'vol1 client1_10-0-0-1 10.0.0.1,10.0.1.1 vol1\n')


def test_map_joins_the_session_to_the_same_server(host):
    host.client()
    host.server()
    host.name('client1')
    host.server_path('server-side', net=0)
    equal('of the server', session_of(host, '192.168.100.2'), 'client1_192-168-100-2')
    host.session('other')
    host.path('other', net=0)
    host.path('other', net=1)
    equal('other server', session_of(host, '192.168.102.1'), 'client1_192-168-102-1')
    for words in '192.168.100.1', 'ip:192.168.101.1', '192.168.9.9@192.168.101.1 10.0.0.1':
        equal(words, session_of(host, words), 'other')
    host.session('s1')
    host.path('s1', net=0)
    host.says('map vol1 192.168.100.1', 'sessions other and s1 lead to 192.168.100.1: add from SESSION',
              code=2)
    equal('one of them', session_of(host, '192.168.101.1'), 'other')
    host.session('client1_192-168-100-1')
    host.path('client1_192-168-100-1', net=0)
    equal('its own', session_of(host, '192.168.100.1'), 'client1_192-168-100-1')


def test_map_joins_a_session_of_the_table(host):
    host.client()
    host.name('client1')
    host.volumes.write_text('a s1 - vol2\nb s1 10.0.0.1,10.0.0.2@10.0.5.1 vol3\nwrong\n')
    equal('session', session_of(host, '10.0.5.1'), 's1')
    equal('the source', session_of(host, '10.0.0.2'), 'client1_10-0-0-2')
    host.disk()
    host.run('map vol1 10.0.5.1 --save')
    equal('written', host.written(MAP), 'sessname=s1 device_path=vol1 path=ip:10.0.5.1')
    equal('saved with the paths of its session', host.volumes.read_text().splitlines()[-1],
          'vol1 s1 10.0.0.1,10.0.0.2@10.0.5.1 vol1')


def test_map_host_names(host):
    host.client()
    host.session()
    host.disk()
    (host.top / 'hosts').write_text('storage1 fd00::1\nstorage1 10.0.0.1\nme.example.org 10.0.0.2\n'
                                    'link fe80::1%1\n10.0.0 10.0.0.9\n0x7f 10.0.0.9\n1x 10.0.0.3\n')
    for words, want in [
            ('storage1', 'ip:fd00::1'), ('10.0.0.2@storage1', 'ip:10.0.0.2,ip:10.0.0.1'),
            ('me.example.org,storage1', None), ('me.example.org.', None),
            ('me.example.org,10.0.0.1', 'ip:10.0.0.2,ip:10.0.0.1'),
            ('link', 'ip:fe80::1%lo'), ('1x', 'ip:10.0.0.3')]:
        if want is None:
            host.says(f'-n map vol1 from s1 {words}', 'does not resolve', code=3)
        else:
            host.says(f'-n map vol1 from s1 {words}', f'path={want}\'')
            host.says(f'-n path add s1 {words}', f"echo '{want}'")
    for words in '10.0.0', '10', 'a.0x7f', '0x7f', 'a..b', '-a', 'a.-b', 'a_b', 'ip:storage1', \
            'gid:storage1', 'storage1,', '@storage1', 'storage1%lo', '.', 'a.1.':
        host.says(['map', 'vol1', 'from', 's1', '--', words], f"'{words}' is no path", code=2)
        host.says(['path', 'add', 's1', '--', words], f"'{words}' is no path", code=2)
    host.says('map vol1 from s1 10.0.0.2,absent', 'host name absent does not resolve: ', code=3)
    host.says('map vol1 from s1 handovr', 'does not resolve', 'did you mean handover?', code=3)
    host.says('path add s1 absent', 'host name absent does not resolve: ', code=3)
    equal('mapped', host.written(MAP), '')
    host.run('map vol1 from s1 storage1 --save')
    equal('saved', host.volumes.read_text(), 'vol1 s1 fd00::1 vol1\n')


def test_map_wrong_options(host):
    host.client()
    host.refuses(f'map vol1 from s1 {PATH} {{}}', [
        ('failover_timout=300', "no option 'failover_timout=300'; did you mean failover_timeout?"),
        ('failover-timeout=300', 'did you mean failover_timeout?'),
        ('nr_queue=4', 'did you mean nr_queues?'),
        ('x=300', "no option 'x=300'; see: rnbd help map"),
        ('nr_queues', 'nr_queues takes a value: nr_queues=VALUE'),
        ('sessname=s2', "no option 'sessname=s2'"),
        ('path=10.0.0.1', "'path=10.0.0.1': paths are given without path="),
        ('failover_timeout=2000000', 'not a number from -1 to 1000000'),
        ('failover_timeout=', 'not a number from -1 to 1000000'),
        ('dest_port=0', 'not a number from 1 to 65535'),
        ('access_mode=wo', 'it is one of ro rw'),
        ('mp_policy=best', 'it is one of round-robin'),
        ('key=', 'key= has no value'),
        ('ro access_mode=rw', 'access_mode is given twice'),
        ('hb_max_missed=3 hb_max_missed=4', 'hb_max_missed is given twice')])
    equal('written', host.written(MAP), '')


def test_map_refused(host):
    host.client()
    for error, why in [('ENOENT', 'dev_search_path'), ('EEXIST', 'mapped already'),
                       ('ENXIO', 'give a path'), ('EBUSY', 'server list'), ('EROFS', 'with ro'),
                       ('ECONNREFUSED', 'rnbd_server'), ('EHOSTUNREACH', 'rping'),
                       ('EINVAL', "log"), ('ENOTCONN', 'rnbd recover')]:
        host.refuse(MAP, error, 'rnbd_client: s1: this is why')
        done = host.says(f'map vol1 from s1 {PATH}', error, why,
                         'kernel: rnbd_client: s1: this is why', code=1)
        equal('old lines', 'old line' in done.err, False)
    host.refuse(MAP, 'EIO', 'usb: not this')
    done = host.says(f'map vol1 from s1 {PATH}', 'EIO', code=1)
    equal('lines of others', 'usb' in done.err, False)


def test_map_without_module_or_permission(host):
    host.says('map vol1 from s1', 'modprobe rnbd_client', code=4)
    host.client()
    host.refuse(MAP, 'EACCES')
    done = host.says('map vol1 from s1', 'Permission denied', code=5)
    equal('said to root', 'as root' in done.err, os.geteuid() != 0)
    equal('cause told to root', "server's rules" in done.err, not os.geteuid())


def test_unmap(host):
    host.client()
    host.session()
    folder = host.disk()
    for name in 'rnbd0', '/dev/rnbd0', 'vol1', 'vol1@s1':
        host.attributes(folder + '/rnbd', unmap_device='')
        host.run(f'unmap {name}')
        equal(name, host.written(folder + '/rnbd/unmap_device'), 'normal')
    host.attributes(folder + '/rnbd', unmap_device='')
    host.run('unmap vol1 from s1 force')
    equal('force', host.written(folder + '/rnbd/unmap_device'), 'force')
    host.says('unmap vol1 from s2', 'vol1', code=3)
    host.says('unmap rnbd0 nonsense', 'unmap DEVICE', code=2)
    host.refuse(folder + '/rnbd/unmap_device', 'EBUSY')
    host.says('unmap rnbd0', 'unmount it first', code=1)


def test_unmap_while_udev_looks(host):
    """It has the disk open for a moment when somebody has written to it."""
    host.client()
    host.session()
    unmap = host.disk() + '/rnbd/unmap_device'
    host.volumes.write_text('data s1 10.0.0.1 vol1\n')
    for line in 'unmap rnbd0', 'volume unmap data':
        host.attributes('block/rnbd0/rnbd', unmap_device='')
        host.kmsg.write_text('')
        host.refuse(unmap, 'EBUSY', 'it is open')
        process = subprocess.Popen(host.command(line), env=host.environment(),
                                   stderr=subprocess.PIPE, text=True)
        while not host.kmsg.read_text() and process.poll() is None:
            time.sleep(0.01)
        (host.sys / (unmap + '.refuse')).unlink()
        equal(f'said by {line}', process.communicate(timeout=60)[1], '')
        equal('written', host.written(unmap), 'normal')


def test_unmap_of_two_of_one_name(host):
    host.client()
    host.disk()
    host.disk(n=1, session='s2')
    host.says('unmap vol1', '2 devices', 'say which one', code=3)
    host.run('unmap vol1 from s2')
    equal('other', host.written('block/rnbd0/rnbd/unmap_device'), '')


def test_remap(host):
    host.client()
    folder = host.disk(state='closed')
    host.run('remap rnbd0')
    equal('written', host.written(folder + '/rnbd/remap_device'), '1')
    host.refuse(folder + '/rnbd/remap_device', 'EALREADY')
    host.says('remap rnbd0', 'nothing to do', code=1)
    host.refuse(folder + '/rnbd/remap_device', 'ESTALE')
    host.says('remap rnbd0', 'another disk by that name', code=1)


def test_resize(host):
    host.client()
    folder = host.disk(sectors=2097152)
    for size, sectors in [('2G', '4194304'), ('4194305s', '4194305'), ('0', '0'),
                          ('2147483648', '4194304'), ('2147483648B', '4194304'), ('2 g', '4194304'),
                          ('4194304 s', '4194304'), ('2 T', '4294967296'), ('1P', '2199023255552'),
                          ('2097152k force', '4194304')]:
        host.attributes(folder + '/rnbd', resize='')
        host.run(f'resize rnbd0 {size}')
        equal(size, host.written(folder + '/rnbd/resize'), sectors)
    host.attributes(folder + '/rnbd', resize='')
    host.says('resize rnbd0 512M', 'smaller', code=2)
    host.says('resize rnbd0 4194304', 'smaller', code=2)
    host.run('resize rnbd0 512M force')
    equal('force', host.written(folder + '/rnbd/resize'), '1048576')
    for wrong in 'x', '1X', '-1', '99999999999999P', '1GG', '4194305', '1GB', 'G':
        host.says(['resize', '--', 'rnbd0', wrong], 'no size', code=2)
    for wrong in ['1G', 'G'], ['1', 'x'], ['1G', 'nonsense'], ['1', ''], \
            ['1024', '1024'], ['1', '024'], ['1', '+1'], ['1', ' 1'], ['', '1024']:
        host.says(['resize', 'rnbd0', *wrong], 'no size', code=2)
    host.says('resize rnbd0 1 G nonsense', 'resize DEVICE', code=2)


def test_resize_beyond_the_server(host):
    host.client()
    folder = host.disk(sectors=1048576, server_sectors=2097152)
    for words in '2097153s', '2G', '2G force':
        host.says(f'resize rnbd0 {words}', 'has 2097152s on the server', 'resize to 0', code=2)
    equal('written', host.written(folder + '/rnbd/resize'), '')
    for words, sectors in ('1G', '2097152'), ('0', '0'), ('256M force', '524288'):
        host.attributes(folder + '/rnbd', resize='')
        host.run(f'resize rnbd0 {words}')
        equal(words, host.written(folder + '/rnbd/resize'), sectors)


def test_resize_of_what_has_shrunk_on_the_server(host):
    host.client()
    folder = host.disk(sectors=2097152, server_sectors=1048576)
    host.says('resize rnbd0 512M', 'smaller', code=2)
    host.run('resize rnbd0 512M force')
    equal('written', host.written(folder + '/rnbd/resize'), '1048576')
    host.says('resize rnbd0 1G', 'on the server', code=2)


def test_close(host):
    host.pair()
    host.export(session='s2')
    host.says('server close vol1', '2 devices', code=3)
    host.run('server close sda s2')
    equal('s2', host.written('class/rnbd-server/ctl/devices/sda/sessions/s2/force_close'), '1')
    equal('s1', host.written('class/rnbd-server/ctl/devices/sda/sessions/s1/force_close'), '')
    host.says('client close sda', 'not for the client', code=2)
