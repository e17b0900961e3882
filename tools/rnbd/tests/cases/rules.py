# SPDX-License-Identifier: GPL-2.0
"""The server's rules: the file of settings, and what is read from and told to the kernel"""

import os

from rig import Wrong, equal
import schema

RULES = 'kernel/config/rnbd'
UUID = '6f1d6e0a-6f5f-4d6c-8e0a-1b2c3d4e5f60'


def kernel(host, policy='listed', listen=1):
    """A server with the hosts web and db, and the volumes data and logs"""
    host.server()
    host.attributes('module/rnbd_server/parameters', port_nr=1234, listen='Y')
    host.attributes(RULES, policy=policy, listen=listen)
    host.attributes(f'{RULES}/hosts/web', sessions='web-*', addresses='ip:10.0.0.0/8\nip:fd00::/64',
                    keys='rnbd:web\nrnbd:new', max_sessions=4, max_memory=512,
                    cgroup='/clients/web', **no_limits('paths', 'connections', 'slots'))
    host.attributes(f'{RULES}/hosts/db', sessions='db', addresses='', keys='', cgroup='',
                    **no_limits('sessions', 'paths', 'connections', 'slots', 'memory'))
    volume(host, 'data', '/dev/vg0/da ta', 'web', modes='ro rw', exclusive=1, uuid=UUID)
    volume(host, 'logs', '/dev/vg0/logs', 'db', 'web')
    volume(host, 'pub', '/dev/vg0/pub', modes='ro', allow_any_host=1, enable=0)


def no_limits(*names):
    return {f'max_{name}': 0 for name in names}


def volume(host, name, path, *hosts, **more):
    values = dict(path=path, modes='ro rw migration handover', exclusive=0, allow_any_host=0, enable=1)
    values.update(more)
    host.attributes(f'{RULES}/volumes/{name}', **values)
    links = host.sys / f'{RULES}/volumes/{name}/hosts'
    links.mkdir()
    for n, other in enumerate(hosts):
        # A link's own name says nothing.
        (links / f"{n}{other.split('/')[-1]}").symlink_to(host.sys / f'{RULES}/hosts/{other}')


SAVED = f'''policy = listed

[host db]
sessions = db

[host web]
sessions = web-*
addresses = ip:10.0.0.0/8 ip:fd00::/64
keys = rnbd:web rnbd:new
max_sessions = 4
max_memory = 512
cgroup = /clients/web

[volume data]
path = /dev/vg0/da ta
uuid = {UUID}
modes = ro rw
exclusive = 1
hosts = web

[volume logs]
path = /dev/vg0/logs
hosts = db web

[volume pub]
path = /dev/vg0/pub
modes = ro
allow_any_host = 1
enable = 0
'''


def told(done):
    """What it would do, without the folder's beginning"""
    lines = []
    for line in done.err.splitlines():
        lines.append(''.join(part.split(RULES + '/')[-1] for part in line.split("'")))
    return lines


def test_rules_are_shown(host):
    kernel(host)
    host.says('server rules', 'policy: listed', 'VOLUME', 'HOST', 'web-*', '/dev/vg0/da ta')
    equal('policy', host.run('server policy').out, 'listed\n')
    document = host.run('server rules -j').json()
    schema.check('rules', document)
    equal('hosts', document['hosts'][1], {'name': 'web', 'sessions': 'web-*',
                                          'addresses': ['ip:10.0.0.0/8', 'ip:fd00::/64'],
                                          'keys': ['rnbd:web', 'rnbd:new'],
                                          'max_sessions': 4, 'max_memory': 512,
                                          'cgroup': '/clients/web'})
    equal('volumes', document['volumes'][0],
          {'name': 'data', 'path': '/dev/vg0/da ta', 'uuid': UUID, 'modes': ['ro', 'rw'],
           'exclusive': True, 'allow_any_host': False, 'hosts': ['web'], 'enable': True})
    equal('a volume of older modules', document['volumes'][1]['uuid'], None)
    equal('enabled', [v['enable'] for v in document['volumes']], [True, True, False])
    equal('of one kind', list(host.run('server volume list -j').json()), ['volumes'])
    equal('of the other', list(host.run('server host list -j').json()), ['hosts'])


def test_rules_are_saved(host):
    """In the place of those that were there; parameters and comments in front of them stay."""
    kernel(host)
    host.run('server save')
    equal('a new file', host.server_conf.read_text(), SAVED)
    head = '\n# comment\n\nport_nr = 1235\n'
    host.server_conf.write_text(head + 'policy=open\n[volume x]\n# another\npath=/x\n')
    host.server_conf.chmod(0o640)
    host.run('server save')
    equal('a file', host.server_conf.read_text(), head + SAVED)
    host.run('server save')
    equal('saved again', host.server_conf.read_text(), head + SAVED)
    equal('its mode', host.server_conf.stat().st_mode & 0o777, 0o640)
    equal('nothing is left', [p.name for p in host.top.glob('server.conf*')], ['server.conf'])
    equal('told', host.run('-n server save').out, SAVED)
    host.run(f'server save {host.top}/other')
    equal('another file', (host.top / 'other').read_text(), SAVED)
    host.says('server save /nonexistent/x', 'No such file', code=1)


def test_what_is_saved_is_what_is_loaded(host):
    """With it, there is nothing to do."""
    kernel(host)
    host.run('server save')
    equal('nothing', told(host.run('server load -v')), [])
    host.says('server check', 'policy listed, 0 tenants, 2 hosts, 3 volumes')


def test_rules_are_loaded(host):
    """Only what differs is changed, a path while the volume is off; what isn't in the file goes."""
    kernel(host, policy='open')
    host.server_conf.write_text('''
policy = listed
[host web]
sessions = web-?
addresses = 10.0.0.1/8 gid:fe80::1 ip:fe80::5%lo/64 FE80::5%7 fe80::6%nosuchdev
keys = rnbd:new
max_memory = 016
[host new]
[volume data]
path = "/dev/sdb"
modes = rw ro rw
exclusive = y
hosts = web
[volume logs]
path = /dev/vg0/logs
hosts = new
''')
    equal('told', told(host.run('server load -n')), [
        'echo web-? > hosts/web/sessions',
        'echo ip:10.0.0.1/8 gid:fe80:0000:0000:0000:0000:0000:0000:0001/128 ip:fe80::5%1/64 '
        'ip:fe80::5%7/128 ip:fe80::6%nosuchdev/128 > hosts/web/addresses',
        'echo rnbd:new > hosts/web/keys',
        'echo 0 > hosts/web/max_sessions',
        'echo 16 > hosts/web/max_memory',
        'echo  > hosts/web/cgroup',
        'mkdir hosts/new',
        'echo 0 > volumes/data/enable',
        'echo /dev/sdb > volumes/data/path',
        'echo 1 > volumes/data/enable',
        'ln -s hosts/new volumes/logs/hosts/new',
        'rm volumes/logs/hosts/0db',
        'rm volumes/logs/hosts/1web',
        'rmdir volumes/pub',
        'rmdir hosts/db',
        'echo listed > policy'])


def test_uuids_are_loaded(host):
    """While the volume is off; one that isn't in the file stays as it is."""
    kernel(host)
    old, other = UUID, '00000000-0000-0000-0000-00000000000f'
    text = SAVED.replace(old, other.upper())
    host.server_conf.write_text(text.replace('[volume logs]', '[volume new]\npath = /x\nuuid = '
                                             f'{old}\n[volume logs]'))
    equal('told', told(host.run('server load -n')), [
        'echo 0 > volumes/data/enable', f'echo {other} > volumes/data/uuid',
        'echo 1 > volumes/data/enable', 'mkdir volumes/new', 'echo /x > volumes/new/path',
        f'echo {old} > volumes/new/uuid', 'echo 1 > volumes/new/enable'])
    host.server_conf.write_text(SAVED.replace(f'uuid = {old}\n', ''))
    equal('kept', told(host.run('server load -n')), [])
    equal('set', told(host.run(f'server volume set data uuid={other} -n')), [
        'echo 0 > volumes/data/enable', f'echo {other} > volumes/data/uuid',
        'echo 1 > volumes/data/enable'])
    for wrong in 'x', old[1:], old + '0', old.replace('-', ''), '0' * 8 + '-0000-0000-0000-' + '0' * 12, \
            old.replace('6f', 'g0'):
        host.says(f'server volume set data uuid={wrong}', 'is no UUID', code=2)


def test_nobody_connects_before_the_rules_are_there(host):
    host.server_conf.write_text('port_nr = 1235\n[volume v]\npath = /dev/sda\nenable = 1\n')
    equal('told', told(host.run('server load -n')), [
        'modprobe rtrs_server', 'modprobe rnbd_server port_nr="1235" listen="N"',
        'mkdir volumes/v', 'echo /dev/sda > volumes/v/path', 'echo 1 > volumes/v/enable',
        'echo 1 > listen'])
    kernel(host, listen=0)
    host.server_conf.write_text('policy = listed\n')
    host.refuse(f'{RULES}/volumes/data/hosts/0web', 'EBUSY')
    host.says('server load', "doesn't listen", code=1)
    equal('listen', host.written(f'{RULES}/listen'), '0')
    host.server_conf.write_text(SAVED)
    host.run('server load')
    equal('listen', host.written(f'{RULES}/listen'), '1')


def test_the_own_driver_of_the_kernel_is_refused(host):
    """It exports everything to everybody, so it is refused before it is loaded, and after that."""
    log = host.top / 'log'
    host.program('modprobe', f'echo "$@" >>{log}\n')
    host.server_conf.write_text('policy = listed\n')
    for module, parameters in ('rtrs_server', 'listen:x'), ('rnbd_server', 'slot_size:x'):
        host.program('modinfo', f'echo "listening:x"; echo "{parameters}"\n')
        host.says('server load', f"{module} would be the kernel's own driver", 'dkms autoinstall',
                  code=1)
    host.program('modinfo', 'exit 1\n')
    host.says('server load', "rtrs_server can't be loaded", code=1)
    equal('loaded', log.exists(), False)
    host.program('modinfo', 'exit 0\n')
    kernel(host)
    host.server_conf.write_text('port_nr = 1234\n')
    host.run('server load')
    for module, parameter in ('rnbd_server', 'listen'), ('rtrs_server', 'slot_size'):
        host.attributes(f'module/{module}/parameters', **{parameter: None})
        for command in 'load', 'stop':
            if command == 'load' or module == 'rnbd_server':
                host.says(f'server {command}', f"{module} is the kernel's own driver",
                          'modprobe -r rnbd_server', code=1)
        host.attributes(f'module/{module}/parameters', **{parameter: 'Y'})


def test_the_server_is_stopped(host):
    """All sessions end, those of tenants as well, and the rules stay. It can be started again."""
    host.run('server stop')
    kernel(host)
    host.server_conf.write_text('port_nr = 1234\n')
    host.attributes(f'{RULES}/tenants/blue', listen=1, netns=1)
    for kind in 'hosts', 'volumes':
        (host.sys / RULES / 'tenants/blue' / kind).mkdir()
    equal('told', told(host.run('-n server stop')),
          ['echo 0 > listen', 'echo 0 > tenants/blue/listen'])
    host.run('server stop')
    equal('listen', host.written(f'{RULES}/listen'), '0')
    equal('of a tenant', host.written(f'{RULES}/tenants/blue/listen'), '0')
    equal('rules', sorted(os.listdir(host.sys / RULES / 'volumes')), ['data', 'logs', 'pub'])
    host.run('server load')
    equal('without rules in the file', host.written(f'{RULES}/listen'), '1')
    host.attributes(RULES, listen=1)
    host.refuse(f'{RULES}/tenants/blue/listen', 'EIO')
    host.says('server stop', 'EIO', code=1)
    equal('the others', host.written(f'{RULES}/listen'), '0')


def test_interfaces_are_saved_by_name(host):
    """An ifindex is another one after a reboot. In a tenant, it may be of another namespace."""
    kernel(host)
    host.attributes(f'{RULES}/hosts/web', addresses='ip:fe80::%1/10')
    saved = host.run('-n server save').out
    if 'addresses = ip:fe80::%lo/10\n' not in saved:
        raise Wrong(saved)
    host.attributes(f'{RULES}/tenants/blue/hosts/web', sessions='web', addresses='ip:fe80::%1/10')
    saved = host.run('-n server save').out
    if 'addresses = ip:fe80::%1/10\n' not in saved:
        raise Wrong(saved)


def test_without_rules_in_the_file_those_in_the_kernel_stay(host):
    kernel(host)
    host.server_conf.write_text('port_nr = 1234\n')
    equal('told', told(host.run('server load -v')), [])


WRONG = [
    ('policy = closed', "1: 'closed' is no policy"),
    ('policy = open\npolicy = open', '2: policy is given twice'),
    ('[volume v', '1: '), ('[volume]\npath = /x', "1: '' can't be the name"),
    ('[disk v]\nx = y', "1: there are sections of a tenant, a host or a volume, none of 'disk'"),
    ('[volume v]\npath = /x\n[volume v]\npath = /y', '3: there is a volume v already'),
    ('[volume a/b]\npath = /x', '1: volume a/b: there is no tenant a'),
    ('[host a/b]', '1: host a/b: there is no tenant a'),
    ('[tenant a]\n[tenant b]\n[host b/h]\n[volume a/v]\npath = /x\nhosts = h',
     '4: volume a/v: there is no host a/h'),
    ('[volume a/b/c]\npath = /x', "1: 'a/b/c' can't be"), ('[volume 1/b]\npath = /x', "1: '1/b' can't"),
    ('[volume /b]\npath = /x', "1: '/b' can't"), ('[volume a/]\npath = /x', "1: 'a/' can't"),
    ('[tenant a]\n[host a/h]\n[volume v]\npath = /x\nhosts = a/h', "5: 'a/h': hosts are"),
    ('[tenant a.b]', "1: 'a.b' can't be a tenant"), ('[tenant]', "1: '' can't"),
    (f"[tenant {'a' * 32}]", '1: '), ('[tenant a/b]', "1: 'a/b' can't"),
    ('[tenant a]\nnetns = blue', "2: 'blue' is no network namespace"),
    ('[tenant a]\nsessions = x', "2: a tenant has no 'sessions'"), ('[volume .a]\npath = /x', "1: '.a' can't"),
    ('[host a b]', "1: 'a b' can't be the name of a host"),
    ('[volume v]', '1: volume v has no path'), ('[volume v]\npath = sda', "2: 'sda' is no path"),
    ('[volume v]\npath = "/x "', "2: '/x ' is no path"),
    ('[volume v]\npath = /x\nhosts = h', '1: volume v: there is no host h'),
    ('[volume v]\npath = /x\nmodes = ro wo', "3: modes: 'wo'"),
    ('[volume v]\npath = /x\nexclusive = 2', "3: '2' is neither"),
    ('[volume v]\npath = /x\npath = /y', '3: path is given twice'),
    ('[volume v]\npath = /x\nsessions = s', "3: a volume has no 'sessions'"),
    ('[host h]\npath = /x', "2: a host has no 'path'"),
    ('[host h]\nsessions =', "2: '' is no pattern"),
    ('[host h]\naddresses = 10.0.0.0/33', "2: '10.0.0.0/33' is no address"),
    ('[host h]\naddresses = gid:1.2.3.4', '2: '), ('[host h]\naddresses = a', '2: '),
    ('[host h]\naddresses =' + ' 10.0.0.1' * 65, '2: more than 64'),
    ('[host h]\nkeys = web', "2: 'web' is no name of a key"),
    ('[host h]\nkeys = a:b a:c a:d', '2: more than two keys'),
    ('[host h]\nsessions', "2: 'sessions' is not NAME = VALUE"),
    ('[host h]\nmax_memory = 4G', "2: '4G' is no limit"),
    ('[host h]\nmax_sessions = -1', "2: '-1' is no limit"),
    ('[host h]\nmax_memory = 4294967296', '2: '), ('[host h]\ncgroup = web', "2: 'web' is no cgroup"),
    ('[host h]\nmax_paths = 1', "2: a host has no 'max_paths'"),
]


def test_wrong_lines(host):
    """Each is told with its number, and nothing is changed."""
    kernel(host)
    for text, why in WRONG:
        host.server_conf.write_text(text + '\n')
        host.says('server check', f'{host.server_conf}:{why}', code=1)
        host.says('server load', f'{host.server_conf}:{why}', code=2)
    host.server_conf.write_text('[volume v\nx\n\n[host h]\nx = 1\npolicy = x\n')
    done = host.says('server check', ':1:', ':2:', ':5:', ':6:', code=1)
    equal('lines', len(done.err.splitlines()), 4)
    host.server_conf.write_bytes(b'policy = open\n[host a]\0\n')
    host.says('server check', ':2: there is a NUL', code=1)
    host.server_conf.unlink()
    host.says('server check', 'No such file', code=3)


def test_exports(host):
    """What is in the file, and what the kernel has, by any name"""
    kernel(host)
    host.server_conf.write_text('[volume a]\npath = /dev/disk/by-id/none\n[volume b]\n'
                                f'path = {host.top}/link\n[volume c\n')
    (host.top / 'disk').touch()
    (host.top / 'link').symlink_to(host.top / 'disk')
    for paths, code in [('/dev/sdx', 3), ('/dev/sdx /dev/disk/by-id/none', 0),
                        (f'{host.top}/disk', 0), ('/dev/vg0/logs', 0), ('/dev/vg0/log', 3)]:
        host.run('server exports ' + paths, code=code)
    links = ('/dev/disk/by-id/wwn-1 /dev/disk/by-label/x /dev/disk/by-uuid/1-2 /dev/vg/by-label '
             '/dev/disk/by-partlabel/x /dev/disk/by-partuuid/1-2 /dev/disk/by-path/pci-1')
    equal('the links that are kept',
          host.run('server exports /dev/disk/by-id/none links ' + links).out.split(),
          ['disk/by-id/wwn-1', 'vg/by-label', 'disk/by-path/pci-1'])
    host.server_conf.unlink()
    host.run('server exports /dev/disk/by-id/none', code=3)


def test_single_rules(host):
    kernel(host)
    equal('add', told(host.run(['-n', 'server', 'volume', 'add', 'v', 'path=/dev/sdb',
                                'hosts=web db', 'modes=ro'])),
          ['mkdir volumes/v', 'echo /dev/sdb > volumes/v/path', 'echo ro > volumes/v/modes',
           'ln -s hosts/web volumes/v/hosts/web', 'ln -s hosts/db volumes/v/hosts/db',
           'echo 1 > volumes/v/enable'])
    equal('set', told(host.run(['-n', 'server', 'volume', 'set', 'logs', 'hosts=db', 'enable=0'])),
          ['rm volumes/logs/hosts/1web', 'echo 0 > volumes/logs/enable'])
    equal('delete', told(host.run('-n server volume delete data')),
          ['rm volumes/data/hosts/0web', 'rmdir volumes/data'])
    equal('host', told(host.run(['-n', 'server', 'host', 'add', 'h', 'addresses=10.0.0.0/8'])),
          ['mkdir hosts/h', 'echo ip:10.0.0.0/8 > hosts/h/addresses'])
    equal('clear', told(host.run('-n server clear'))[-1], 'rmdir hosts/web')
    host.run('server host set web sessions=web-1')
    equal('sessions', host.written(f'{RULES}/hosts/web/sessions'), 'web-1')
    host.run('server policy open')
    # The file in the attribute's place keeps the rest of what was longer.
    equal('policy', host.written(f'{RULES}/policy').splitlines()[0], 'open')
    for line, code, why in [('volume add v', 2, 'volume add NAME'),
                            ('volume add v modes=ro', 2, 'volume v has no path'),
                            ('volume add data path=/x', 2, 'there is a volume data already'),
                            ('volume add v path=/x hosts=h', 3, 'there is no host h'),
                            ('volume set v path=/x', 3, 'there is no volume v'),
                            ('volume set data colour=red', 2, "a volume has no 'colour'"),
                            ('volume set data modes', 2, "'modes' is not ATTRIBUTE=VALUE"),
                            ('host delete db', 1, 'volume logs is for host db'),
                            ('host delete x', 3, 'there is no host x'),
                            ('policy none', 2, "'none' is no policy"),
                            ('volume map data', 2, 'not for the server')]:
        host.says('server ' + line, why, code=code)


TENANT = """policy = listed

[tenant blue]

[host blue/web]
sessions = x-*

[volume blue/data]
path = /dev/vg0/blue
hosts = web
"""


def tenant(host, name, netns, listen):
    host.attributes(f'{RULES}/tenants/{name}', netns=netns, listen=listen)
    for part in 'hosts', 'volumes':
        (host.sys / f'{RULES}/tenants/{name}/{part}').mkdir()


def test_tenants(host):
    """Their hosts and volumes are named after them, and are in their folder; rules come first."""
    host.server()
    host.attributes('module/rnbd_server/parameters', port_nr=1234, listen='Y')
    host.attributes(RULES, policy='listed', listen=1)
    host.server_conf.write_text(TENANT.replace('blue]\n\n[host', 'blue]\nnetns = /proc/self/ns/net\n\n[host'))
    host.says('server check', 'policy listed, 1 tenants, 1 hosts, 1 volumes')
    equal('told', told(host.run('-n server load')), [
        'mkdir tenants/blue', 'mkdir tenants/blue/hosts/web',
        'echo x-* > tenants/blue/hosts/web/sessions',
        'mkdir tenants/blue/volumes/data', 'echo /dev/vg0/blue > tenants/blue/volumes/data/path',
        'ln -s tenants/blue/hosts/web tenants/blue/volumes/data/hosts/web',
        'echo 1 > tenants/blue/volumes/data/enable',
        'nsenter --net=/proc/self/ns/net:', 'echo 1 > tenants/blue/listen'])

    tenant(host, 'blue', 0, 0)
    host.attributes(f'{RULES}/tenants/blue/hosts/web', sessions='x-*', addresses='', keys='',
                    cgroup='', **no_limits('sessions', 'paths', 'connections', 'slots', 'memory'))
    volume(host, '../tenants/blue/volumes/data', '/dev/vg0/blue', '../tenants/blue/hosts/web')
    host.run('server save')
    equal('saved', host.server_conf.read_text(), TENANT)
    document = host.run('server rules -j').json()
    schema.check('rules', document)
    equal('tenants', document['tenants'], [{'name': 'blue', 'netns': '', 'listen': False}])
    equal('names', [document[kind][0]['name'] for kind in ('hosts', 'volumes')],
          ['blue/web', 'blue/data'])
    host.says('server rules', 'TENANT', 'blue/data')
    host.says('server tenant list', 'NETNS', 'blue')
    for line, code, why in [('tenant delete blue', 1, 'host blue/web is there'),
                            ('host delete blue/web', 1, 'volume blue/data is for host blue/web'),
                            ('tenant add blue', 2, 'there is a tenant blue already'),
                            ('volume add red/v path=/x', 3, 'there is no tenant red'),
                            ('volume add v path=/x hosts=web', 3, 'there is no host web'),
                            ('tenant set blue netns=/nonexistent/n', 1, '/nonexistent/n: No such file')]:
        host.says('server ' + line, why, code=code)
    equal('clear', told(host.run('-n server clear')), [
        'rm tenants/blue/volumes/data/hosts/0web',
        'rmdir tenants/blue/volumes/data', 'rmdir tenants/blue/hosts/web', 'rmdir tenants/blue'])
    here = '/proc/self/ns/net'
    host.attributes(f'{RULES}/tenants/blue', listen=1, netns=os.stat(here).st_ino)
    host.server_conf.write_text(TENANT.replace('[tenant blue]\n', f'[tenant blue]\nnetns = {here}\n'))
    equal('as it is', told(host.run('-n server load')), [])
    host.server_conf.write_text(TENANT)
    equal('nowhere', told(host.run('-n server load')), ['echo 0 > tenants/blue/listen'])
    equal('sessions end first', told(host.run('-n server unload'))[:2],
          ['echo 0 > listen', 'echo 0 > tenants/blue/listen'])
    host.refuse(f'{RULES}/tenants/blue/hosts/web/keys', 'EKEYREJECTED')
    host.attributes(f'{RULES}/tenants/blue', listen=0, netns=0)
    host.server_conf.write_text(TENANT.replace('[tenant blue]\n', f'[tenant blue]\nnetns = {here}\n')
                                .replace('sessions = x-*', 'sessions = x-*\nkeys = rnbd:web'))
    host.says('server load', 'rejected', code=1)
    equal('it listens', host.written(f'{RULES}/tenants/blue/listen'), '0')


def test_no_server(host):
    for line in 'rules', 'policy', 'save', 'clear', 'tenant list', 'host list', 'volume list':
        host.says('server ' + line, 'rnbd_server', code=4)
